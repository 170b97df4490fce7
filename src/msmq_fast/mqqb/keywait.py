"""A session whose current message waits: for its turn to use a private key (`security.keyturns`), or for the
groups of its sender (`security.domainaccounts`).
"""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast.security.keyturns import KeyTurns, Turn
from msmq_fast.store.completion import Completion

__all__ = ["KeyWait"]


class KeyWait:
    """Keeps the bytes that arrive while a message waits.

    The receive buffer contains that message and must not move. Few bytes arrive, since reading from the
    transport is paused.
    """

    def __init__(self) -> None:
        self.turn: Turn | None = None
        """What the message waits for; None if no message waits."""
        self._room = bytearray()
        self._came = bytearray()

    def ask(self, turns: KeyTurns, address: str, act: Callable[[float], object], now: float) -> bool:
        """Request a turn to use a private key; returns False if the message need not wait.

        If the message waits, `act(now)` is called when its turn has come. Raises TooManyWait.
        """
        self.turn = turns.ask(address, act, now)
        return self.turn is not None

    def until(self, learnt: Completion[float], address: str, act: Callable[[float], object]) -> None:
        """Wait until `learnt` is resolved with the time; `act(now)` is called then."""
        turn = self.turn = Turn(address, act)

        def resume(done: Completion[float]) -> None:
            if turn.act is not None:
                turn.act(done.result())

        learnt.add_done_callback(resume)

    def buffer(self, hint: int) -> memoryview:
        """Returns the buffer into which the transport may write."""
        self._room = bytearray(max(hint, 1 << 16))
        return memoryview(self._room)

    def commit(self, count: int) -> None:
        """Keep the `count` bytes that were written into the buffer."""
        self._came += memoryview(self._room)[:count]

    def end(self) -> bytes:
        """End the wait; returns the bytes that arrived meanwhile."""
        if self.turn is not None:
            self.turn.cancel()
            self.turn = None
        came, self._came = bytes(self._came), bytearray()
        return came
