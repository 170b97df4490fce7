"""Refusals: a count per (what, reason), and log lines at a bounded rate."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from msmq_fast.qm.outgoing.messagelog import LineLimit

__all__ = ["MAX_REASONS", "About", "RefusalCounters"]

MAX_REASONS = (
    200  # reasons come from a fixed vocabulary; this stops a bug from growing the metrics without bound
)

_log = logging.getLogger("msmq_fast.refusals")


About = Callable[[], Mapping[str, str]]
"""Returns further fields of a log line, by name; fields with an empty value are left out."""


_ASKING = ("bulk request",)
_ORDINARY = (
    "BAD_REQUEST",
    "INCARNATION",
    "METHOD_NOT_ALLOWED",
    "NOT_FOUND",
    "NOT_READY",
    "QUEUE_NOT_FOUND",
    "STAGE_NOT_FOUND",
    "SUBSCRIPTION_NOT_FOUND",
)
"""Ordinary errors of clients, such as requests for missing objects: operators need not see them, so they are
only counted.
"""


class RefusalCounters:
    """Counts refusals by what was refused ("connection", "packet", "message") and by reason.

    At most `lines_per_second` log lines are written; each line states how many lines were left out before it.
    """

    def __init__(self, monotonic: Callable[[], float], lines_per_second: int) -> None:
        self._limit = LineLimit(monotonic, lines_per_second)
        self._counts: Counter[tuple[str, str]] = Counter()
        self.repeated = 0
        """Number of messages received again after they had been accepted: normal after a lost connection."""

    def set_rate(self, lines_per_second: int) -> None:
        """Set the maximum number of log lines per second."""
        self._limit.set_rate(lines_per_second)

    def refuse(
        self,
        what: str,
        reason: str,
        detail: str = "",
        count: int = 1,
        about: About | None = None,
        *,
        peer: str = "",
    ) -> None:
        """Count a refusal, and log it if the rate allows. `peer` is the address of the other side. `about`
        returns further fields of the log line; it is called for written lines only, so that a flood of
        refusals costs little more than counting.
        """
        key = (what, reason)
        if key not in self._counts and len(self._counts) >= MAX_REASONS:
            key = (what, "other")
        self._counts[key] += count
        if what in _ASKING and reason in _ORDINARY:
            _log.debug("refused %s: %s (%s)", what, reason, detail)
            return
        suppressed = self._limit.admit()
        if suppressed is None:
            return
        further = {} if about is None else {name: value for name, value in about().items() if value}
        if peer:
            further = {"peer": peer} | further
        fields = {"what": what, "reason": reason, "detail": detail, "suppressed": suppressed} | further
        parts = [detail] if detail else []
        parts += [f"{name} {value}" for name, value in further.items() if value not in detail]
        text = f" ({', '.join(parts)})" if parts else ""
        _log.warning("refused %s: %s%s", what, reason, text, extra={"fields": fields})

    def repeat(self, detail: str) -> None:
        """Count a message that was received again after it had been accepted: neither a refusal nor a
        warning. `detail` is its identifier.
        """
        self.repeated += 1
        _log.debug("duplicate message: %s", detail)

    def items(self) -> Iterator[tuple[str, str, int]]:
        """Yield (what, reason, count), sorted."""
        for (what, reason), count in sorted(self._counts.items()):
            yield what, reason, count

    def total(self, what: str) -> int:
        """Return the number of refusals of `what`, over all reasons."""
        return sum(count for (kind, _), count in self._counts.items() if kind == what)
