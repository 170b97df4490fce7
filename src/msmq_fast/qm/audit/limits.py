"""Limits how many entries of the audit its callers can cause.

1. Each source, a caller at an address, has a bucket of `burst` entries, which refills by one entry every
   `interval` seconds. All sources together have a bucket of `TOGETHER` entries, which refills by `RATE` a
   second.
2. An entry for which a bucket is empty is left out and counted. The next entry of its source has this count
   in `more`; if there is none within `interval`, the last one that was left out is written with the count.
3. At most `MOST_SOURCES` sources are remembered. The counts of a source that is forgotten go to one entry
   that stands for all such sources.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

from msmq_fast.protocol.resources import AuditEntry

__all__ = ["EntryLimits", "Source"]

MOST_SOURCES: Final = 1024
TOGETHER: Final = 200
RATE: Final = 2.0
_LOOKS: Final = 10  # looks at the sources in one interval

Source = tuple[str, str]
"""The group of an address and a SID; either may be empty."""

_OTHERS: Final[Source] = ("", "other callers")


@dataclass(slots=True)
class _Bucket:
    full_at: float = 0.0
    last: AuditEntry | None = None  # the last entry that was left out
    left_out: int = 0
    wrote_at: float = 0.0


class EntryLimits:
    """The buckets of one kind of entries. Times are monotonic seconds."""

    def __init__(self, burst: int, interval: float) -> None:
        self._span = burst * interval
        self._interval = interval
        self._sources: OrderedDict[Source, _Bucket] = OrderedDict()
        self._all_full_at = 0.0
        self._due: float | None = None

    def admit(self, source: Source, entry: AuditEntry, now: float) -> AuditEntry | None:
        """Return the entry as it is to be written; None if it is left out for now."""
        bucket = self._sources.get(source)
        if bucket is None:
            bucket = self._sources[source] = _Bucket()
            self._forget()
        self._sources.move_to_end(source)
        full_at = max(bucket.full_at, now) + self._interval
        if full_at - now > self._span or not self._take(now):
            bucket.last = entry
            bucket.left_out += entry.more + 1
            self._due = now + self._interval if self._due is None else self._due
            return None
        bucket.full_at, bucket.wrote_at = full_at, now
        entry = replace(entry, more=entry.more + bucket.left_out)
        bucket.last, bucket.left_out = None, 0
        return entry

    def collect(self, now: float, *, everything: bool = False) -> list[AuditEntry]:
        """Return the entries that stand for those that were left out, if the interval of their source is
        over. With `everything`, return them in any case.
        """
        if self._due is None or not (everything or now >= self._due):
            return []
        found: list[AuditEntry] = []
        self._due = None
        for bucket in self._sources.values():
            if bucket.last is None:
                continue
            if everything or (now - bucket.wrote_at >= self._interval and self._take(now)):
                found.append(replace(bucket.last, more=bucket.left_out - 1))
                bucket.last, bucket.left_out, bucket.wrote_at = None, 0, now
            else:
                self._due = now + self._interval / _LOOKS
        return found

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `collect` is due, None if nothing was left out."""
        return self._due

    def _take(self, now: float) -> bool:
        full_at = max(self._all_full_at, now) + 1 / RATE
        if full_at - now > TOGETHER / RATE:
            return False
        self._all_full_at = full_at
        return True

    def _forget(self) -> None:
        while len(self._sources) > MOST_SOURCES:
            source, bucket = next((s, b) for s, b in self._sources.items() if s != _OTHERS)
            del self._sources[source]
            if bucket.last is None:
                continue
            others = self._sources.setdefault(_OTHERS, _Bucket())
            others.left_out += bucket.left_out
            others.last = replace(bucket.last, caller="other callers", sid="", address="", more=0)
