"""The audit log of refused access. Every refusal is counted; equal ones are written at most once per
interval.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.signals import Signal

__all__ = ["Audit", "AuditRecord", "log_record"]

_log = logging.getLogger("msmq_fast.audit")
MAX_KEYS: Final = 1024
"""Number of distinct refusals that are tracked; the one that was written longest ago is dropped first."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One refused access. `detail` describes this occurrence only, for example with the id of a message."""

    caller: str
    caller_sid: str
    target: str
    operation: str
    rights: tuple[str, ...]
    reason: str
    entry: str = ""
    detail: str = ""
    address: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """The key for grouping: two refusals with the same key count as equal."""
        return (self.caller_sid, self.target, self.operation, self.rights)

    def fields(self) -> dict[str, Any]:
        """Return the fields for structured logs."""
        return {
            "caller": self.caller,
            "sid": self.caller_sid,
            "address": self.address,
            "object": self.target,
            "operation": self.operation,
            "rights": list(self.rights),
            "reason": self.reason,
            "entry": self.entry,
            "detail": self.detail,
        }


def log_record(record: AuditRecord, repeated: int) -> None:
    """Write a record to the audit log. `repeated` is the number of equal refusals before it that were not
    written.
    """
    rights = ", ".join(record.rights)
    text = f"denied {record.operation} on {record.target} to {record.caller}: {rights}; {record.reason}"
    for part in (record.entry, record.detail, f"{repeated} more like it" if repeated else ""):
        text += f" ({part})" if part else ""
    _log.warning("%s", text, extra={"fields": record.fields() | {"repeated": repeated}})


@dataclass(slots=True)
class _Seen:
    record: AuditRecord
    written: float
    unwritten: int = 0


class Audit:
    """Counts refusals and writes them to the log. Of equal refusals, at most one is written every `interval`
    seconds: `write` is called, and then `written`, with its record and the number of equal refusals that were
    not written before it. Times are monotonic seconds.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        write: Callable[[AuditRecord, int], None] = log_record,
        interval: float = 10.0,
    ) -> None:
        self._monotonic = monotonic
        self._to_log = write
        self.written: Signal[[AuditRecord, int]] = Signal()
        self._interval = interval
        self._seen: OrderedDict[tuple[object, ...], _Seen] = OrderedDict()
        self.counts: Counter[str] = Counter()  # by operation

    @property
    def total(self) -> int:
        """The number of refusals since the start."""
        return self.counts.total()

    def refused(self, record: AuditRecord) -> None:
        """Count a refusal. Write it unless an equal one was written within the interval."""
        self.counts[record.operation] += 1
        now = self._monotonic()
        seen = self._seen.get(record.key)
        if seen is not None and now - seen.written < self._interval:
            seen.unwritten += 1
            seen.record = record
            return
        repeated = seen.unwritten if seen is not None else 0
        self._seen[record.key] = _Seen(record, now)
        self._seen.move_to_end(record.key)
        self._write(record, repeated)
        while len(self._seen) > MAX_KEYS:
            self._tell(self._seen.popitem(last=False)[1])

    def flush(self, *, everything: bool = False) -> None:
        """Of each set of equal refusals that were not written yet, write the latest, if its interval is over.
        With `everything`, write it in any case.
        """
        now = self._monotonic()
        for key, seen in list(self._seen.items()):
            if everything or now - seen.written >= self._interval:
                del self._seen[key]
                self._tell(seen)

    def _write(self, record: AuditRecord, repeated: int) -> None:
        self._to_log(record, repeated)
        self.written(record, repeated)

    def _tell(self, seen: _Seen) -> None:
        if seen.unwritten:
            self._write(seen.record, seen.unwritten - 1)
