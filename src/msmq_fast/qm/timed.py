"""A group of objects with deadlines (its members); an exception of one member does not affect the others.

1. `next_deadline()` of a member has no side effects and may be called at any time.
2. `expire(now)` of a member does the work whose deadline has passed at `now`. A member with many deadlines
   isolates them itself: if the work for one deadline raises, the work for the others is done nevertheless.
3. An exception that a member raises nevertheless is counted and logged (`Faults`), and the next member runs.
4. A member that raised is not called again for a while: 0.1 s after its first fault, twice as long after each
   further fault in succession, `LONGEST` at most. A success resets this.

To add something with a deadline: give it these two methods and pass it to `TimedGroup.add`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from msmq_fast.qm.faults import Faults

__all__ = ["LONGEST", "Timed", "TimedGroup"]

_FIRST: Final = 0.1  # seconds for which a member is not called after its first fault
LONGEST: Final = 30.0
"""The longest time, in seconds, for which a member is not called after a fault."""


class Timed(Protocol):
    """An object with deadlines, in monotonic seconds."""

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never. Has no side effects."""

    def expire(self, now: float) -> object:
        """Do the work whose deadline has passed at `now`."""


class _Member:
    def __init__(self, name: str, timed: Timed) -> None:
        self.name = name
        self.timed = timed
        self.next_deadline = timed.next_deadline
        self.faults = 0  # in succession
        self.not_before = 0.0


class TimedGroup:
    """Objects with deadlines, in the order in which they were added. A group is itself a `Timed`, so groups
    can be nested.

    With `monotonic`, `expire` calls only the members whose deadline has passed. It reads the clock before
    each member, since the member before may have taken long. Without `monotonic`, `expire` calls every
    member; a member without due work does nothing.
    """

    def __init__(self, faults: Faults, monotonic: Callable[[], float] | None = None) -> None:
        self._faults = faults
        self._monotonic = monotonic
        self._members: list[_Member] = []
        self._now = 0.0  # when `expire` was called last

    def add(self, name: str, timed: Timed) -> None:
        """Add a member. `name` identifies its faults in log and metrics."""
        self._members.append(_Member(name, timed))

    def next_deadline(self) -> float | None:
        """The nearest deadline of all members."""
        nearest = None
        for member in self._members:
            # As `_due`, without a call of its own: this is asked after almost every turn of the loop.
            try:
                due = member.next_deadline()
            except Exception:
                due = self._due(member)
            if due is None:
                continue
            if due < member.not_before:
                due = member.not_before
            if nearest is None or due < nearest:
                nearest = due
        return nearest

    def expire(self, now: float) -> None:
        """Call `expire(now)` of the members, in order; an exception of one does not keep the others from
        running.
        """
        self._now = now
        for member in self._members:
            if self._monotonic is not None:
                due = self._due(member)
                now = max(now, self._monotonic())  # afterwards: a deadline may be "now"
                if due is None or due > now:
                    continue
            self._now = now
            if now < member.not_before:
                continue
            try:
                member.timed.expire(now)
            except Exception as error:
                self._failed(member, error)
            else:
                member.faults, member.not_before = 0, 0.0

    def _due(self, member: _Member) -> float | None:
        try:
            due = member.timed.next_deadline()
        except Exception as error:
            if self._now >= member.not_before:
                self._failed(member, error)
            return member.not_before
        return due if due is None else max(due, member.not_before)

    def _failed(self, member: _Member, error: Exception) -> None:
        self._faults.note(f"deadline of {member.name}", error)
        pause: float = min(_FIRST * 2 ** min(member.faults, 16), LONGEST)
        member.faults += 1
        member.not_before = self._now + pause
