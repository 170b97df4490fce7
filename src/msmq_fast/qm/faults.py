"""Unexpected exceptions: all are counted, and each cause is logged once.

An expected error is an `MSMQError` and is handled where it is raised. An exception that is counted here is a
defect of this server. It must affect only the deadline, the message or the callback that raised it.
Everything else continues, so that a peer that provokes a fault cannot cause an outage, and a fault that
repeats a thousand times a second cannot fill the log.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from traceback import walk_tb
from typing import Final, TypeVar

__all__ = ["Faults", "for_each"]

T = TypeVar("T")

_log = logging.getLogger(__name__)
_MOST_CAUSES: Final = 256  # that are logged; further causes are only counted


class Faults:
    """Counts exceptions by the place where they were caught."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._causes: set[tuple[str, str, str, int]] = set()

    @property
    def total(self) -> int:
        """The number of unexpected exceptions since the start."""
        return self.counts.total()

    def note(self, where: str, error: BaseException) -> None:
        """Count an exception that was caught at `where`, such as "deadline of leases".

        The traceback is logged if this cause is new. Each exception in an exception group counts.
        """
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                self.note(where, each)
            return
        self.counts[where] += 1
        file, line = "", 0
        for frame, number in walk_tb(error.__traceback__):
            file, line = frame.f_code.co_filename, number
        cause = where, type(error).__name__, file, line
        if cause in self._causes or len(self._causes) >= _MOST_CAUSES:
            return
        self._causes.add(cause)
        _log.error(
            "fault in %s: %s (a defect of this server; it is counted from now on and not logged again)",
            where,
            type(error).__name__,
            exc_info=error,
        )


def for_each(items: Iterable[T], action: Callable[[T], object]) -> None:
    """Call `action` for every item, even if it raises for one of them. At the end, raises these exceptions as
    a group.
    """
    raised: list[Exception] = []
    for item in items:
        try:
            action(item)
        except Exception as error:
            raised.append(error)
    if raised:
        raise ExceptionGroup("some items failed", raised)
