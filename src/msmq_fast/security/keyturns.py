"""Turns for operations with keys: what all peers together may make this server calculate.

A private RSA operation takes about a millisecond, and any peer that may send a message can ask for one.
cryptography holds the GIL meanwhile (measured with 50.0), so that a thread of its own relieves the event loop
of nothing: a budget does.

1. An operation runs in `KeyTurns.run`, one in each turn. Outside of a turn that raises `KeyNeeded`, and the
   caller leaves what it does without any effect.
2. It asks for a turn with `ask`. If the budget is not used up and no request waits, it may `take` one at
   once, until these have taken what one turn of the event loop may; else its request is queued under the
   address group of its peer.
3. `expire` gives turns: one group after the other, in each the oldest request first. Groups whose operations
   failed often of late come when no other waits.
4. `run` measures what an operation takes, by the clock of its thread. The budget refills at `share` seconds a
   second, up to `burst` (by default that of a second); it may be overdrawn by one operation.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from msmq_fast.security.addresses import address_group
from msmq_fast.security.allowance import Allowance

__all__ = ["KeyNeeded", "KeyTurns", "TooManyWait", "Turn"]

T = TypeVar("T")

_AT_A_TIME: Final = 0.002  # seconds of operations in one turn of the event loop
_TURNS_AT_A_TIME: Final = 64  # also of those that find that they need no operation any more
_ROUNDING: Final = 1e-9  # seconds
_FAILURES, _REMEMBERED = (
    10,
    60.0,
)  # so many failures within so many seconds, and a group comes after the others


class KeyNeeded(Exception):
    """An operation with a key is due, and it is not the caller's turn."""


class TooManyWait(Exception):
    """No more requests of this address group, or of all, are queued."""


class Turn:
    """A request that waits."""

    __slots__ = ("act", "address")

    def __init__(self, address: str, act: Callable[[float], object]) -> None:
        self.address = address
        self.act: Callable[[float], object] | None = act

    def cancel(self) -> None:
        """The caller that asked is gone."""
        self.act = None


class KeyTurns:
    """Times are monotonic seconds; `clock` gives those that this thread has calculated."""

    def __init__(
        self,
        share: float,
        burst: float | None = None,
        *,
        clock: Callable[[], float] = time.thread_time,
        per_group: int = 1024,
        in_all: int = 8192,
    ) -> None:
        self._share = share
        self._burst = self._left = share if burst is None else burst
        self._clock = clock
        self._per_group = per_group
        self._in_all = in_all
        self._at = 0.0  # when `_left` was right
        self._failures = Allowance(_FAILURES, _REMEMBERED)
        self._good: dict[str, deque[Turn]] = {}  # the group whose turn is next comes first
        self._bad: dict[str, deque[Turn]] = {}
        self._taking: str | None = None  # whose turn it is
        self._at_once = False
        self._giving = False  # turns, to waiting requests
        self._taken = 0.0  # seconds of operations that did not wait, in this turn of the loop
        self.waiting = 0
        """Requests that wait, those that were cancelled included."""
        self.spent = 0.0
        """Seconds that operations took since the start."""

    # ---- asking

    def ask(self, address: str, act: Callable[[float], object], now: float) -> Turn | None:
        """None: the caller may `take` a turn now. Else `act(now)` is called when it has one.

        Raises TooManyWait.
        """
        if not self._good and not self._bad and self._refilled(now) > 0 and self._taken < _AT_A_TIME:
            return None
        group = address_group(address)
        lines = self._good if self._failures.has(address, 1, now) else self._bad
        line = lines.get(group, ())
        if len(line) >= self._per_group or self.waiting >= self._in_all:
            self._sweep()
            line = lines.get(group, ())
            if len(line) >= self._per_group or self.waiting >= self._in_all:
                raise TooManyWait
        turn = Turn(address, act)
        lines.setdefault(group, deque()).append(turn)
        self.waiting += 1
        return turn

    def take(self, address: str, act: Callable[[], T]) -> T:
        """Do something in a turn, which is good for one operation."""
        before, self._taking = self._taking, address
        try:
            return act()
        finally:
            self._taking = before

    def at_once(self, act: Callable[[], T]) -> T:
        """Do something that cannot wait: its operations overdraw the budget, up to `burst`. KeyNeeded: it is
        overdrawn so far.
        """
        before, self._at_once = self._at_once, True
        try:
            return act()
        finally:
            self._at_once = before

    # ---- operations

    def run(self, operation: Callable[[], T], now: float) -> T:
        """Runs `operation` and returns its result. Its exception counts against the group whose turn it is.

        Raises KeyNeeded.
        """
        whose, self._taking = self._taking, None
        if whose is None and not (self._at_once and self._refilled(now) > -self._burst):
            raise KeyNeeded
        began = self._clock()
        try:
            return operation()
        except Exception:
            if whose is not None:
                self._failures.take(whose, 1, now)
            raise
        finally:
            took = max(self._clock() - began, 0.0)
            self._refilled(now)
            self._left -= took
            self.spent += took
            if not self._giving:
                self._taken += took

    def _refilled(self, now: float) -> float:
        if now > self._at:
            self._left = min(self._left + (now - self._at) * self._share, self._burst)
            self._at = now
        return self._left

    # ---- giving turns

    def next_deadline(self) -> float | None:
        """When `expire` is due."""
        if not self._good and not self._bad:
            return self._at if self._taken else None
        return self._at + max(-self._left, 0.0) / self._share

    def expire(self, now: float) -> None:
        """Gives turns within the budget, for a bounded time."""
        self._taken, self._giving = 0.0, True
        try:
            self._give(now)
        finally:
            self._giving = False

    def _give(self, now: float) -> None:
        limit = self.spent + _AT_A_TIME
        for _ in range(_TURNS_AT_A_TIME):
            if self._refilled(now) < -_ROUNDING or self.spent >= limit:
                return
            turn = self._next()
            if turn is None:
                return
            act = turn.act
            if act is not None:
                self.take(turn.address, lambda act=act: act(now))  # type: ignore[misc]

    def _next(self) -> Turn | None:
        for lines in (self._good, self._bad):
            for group in lines:
                line = lines.pop(group)
                turn = line.popleft()
                self.waiting -= 1
                if line:
                    lines[group] = line  # behind the others
                return turn
        return None

    def _sweep(self) -> None:
        """Forget requests that were cancelled."""
        for lines in (self._good, self._bad):
            for group in list(lines):
                line = deque(turn for turn in lines[group] if turn.act is not None)
                self.waiting -= len(lines[group]) - len(line)
                if line:
                    lines[group] = line
                else:
                    del lines[group]
