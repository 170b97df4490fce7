"""Turns for operations with private keys. A turn is the permission for one operation; a budget for turns
limits the calculations that all peers together can cause.

A private RSA operation takes about a millisecond, and any peer that may send a message can ask for one. The
library cryptography holds the GIL meanwhile (measured with version 50.0), so another thread would not relieve
the event loop. Therefore the time of these operations has a budget.

1. An operation runs in `KeyTurns.run`; each turn allows one operation. Outside of a turn, `run` raises
   `KeyNeeded`, and the caller abandons its work without any effect.
2. The caller requests a turn with `ask`. If the budget is not used up and no request waits, the caller may
   `take` a turn at once, up to a limit for each iteration of the event loop. Otherwise its request is queued
   under the address group of its peer.
3. `expire` grants turns: one group after the other, and in each group the oldest request first. Groups whose
   operations have recently failed often get a turn only when no other group waits.
4. `run` measures the time of an operation, by the clock of its thread. The budget refills at `share` seconds
   a second, up to `burst` (by default the refill of one second); one operation may overdraw it.
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
)  # failures, and seconds; a group with more of them is served after the others


class KeyNeeded(Exception):
    """Raised if an operation with a private key is needed and the caller does not have a turn."""


class TooManyWait(Exception):
    """Raised if the queue of requests is full, for this address group or in total."""


class Turn:
    """A queued request for the permission to do one operation with a private key.

    `act` is called when the permission is granted; it is None after the request was cancelled. `address` is
    the address of the peer that causes the operation.
    """

    __slots__ = ("act", "address")

    def __init__(self, address: str, act: Callable[[float], object]) -> None:
        self.address = address
        self.act: Callable[[float], object] | None = act

    def cancel(self) -> None:
        """Withdraw the request."""
        self.act = None


class KeyTurns:
    """The budget, and the queue of requests for turns. Times are monotonic seconds; `clock` returns the
    processor time of the calling thread in seconds.
    """

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
        self._taking: str | None = None  # the group whose turn it is
        self._at_once = False
        self._giving = False  # turns, to waiting requests
        self._taken = 0.0  # seconds of operations that did not wait, in this turn of the loop
        self.waiting = 0
        """Number of queued requests, also cancelled ones."""
        self.spent = 0.0
        """Time of all operations since the start, in seconds."""

    # ---- asking

    def ask(self, address: str, act: Callable[[float], object], now: float) -> Turn | None:
        """Request a turn. Return None if the caller may call `take` now. Otherwise return the queued request;
        `act(now)` is called in a turn when the request is granted.

        Raises TooManyWait if the queue of requests is full.
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
        """Call `act` in a turn, which allows `act` one operation. Return its result."""
        before, self._taking = self._taking, address
        try:
            return act()
        finally:
            self._taking = before

    def at_once(self, act: Callable[[], T]) -> T:
        """Call `act`, which cannot wait for a turn, and return its result. Its operations need no turn until
        the budget is overdrawn by `burst`; then they raise KeyNeeded.
        """
        before, self._at_once = self._at_once, True
        try:
            return act()
        finally:
            self._at_once = before

    # ---- operations

    def run(self, operation: Callable[[], T], now: float) -> T:
        """Runs `operation` and returns its result. If the operation raises, this counts as a failure of the
        group that has the turn.

        Raises KeyNeeded if the caller does not have a turn.
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
        """Return the time at which `expire` is due. Return None if no request waits and no turn was taken
        since the last call of `expire`.
        """
        if not self._good and not self._bad:
            return self._at if self._taken else None
        return self._at + max(-self._left, 0.0) / self._share

    def expire(self, now: float) -> None:
        """Grant turns until the budget is used up, for a bounded time."""
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
        """Drop cancelled requests."""
        for lines in (self._good, self._bad):
            for group in list(lines):
                line = deque(turn for turn in lines[group] if turn.act is not None)
                self.waiting -= len(lines[group]) - len(line)
                if line:
                    lines[group] = line
                else:
                    del lines[group]
