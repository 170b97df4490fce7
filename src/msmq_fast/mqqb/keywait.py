"""A session whose current message waits for its turn to use a private key (`security.keyturns`)."""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast.security.keyturns import KeyTurns, Turn

__all__ = ["KeyWait"]


class KeyWait:
    """Keeps the bytes that come meanwhile: the receive buffer holds the message, and must not move. Few come,
    as the transport is not read.
    """

    def __init__(self) -> None:
        self.turn: Turn | None = None
        """None: no message waits."""
        self._room = bytearray()
        self._came = bytearray()

    def ask(self, turns: KeyTurns, address: str, act: Callable[[float], object], now: float) -> bool:
        """Ask for a turn as in `KeyTurns.ask`; False: the message need not wait for it."""
        self.turn = turns.ask(address, act, now)
        return self.turn is not None

    def buffer(self, hint: int) -> memoryview:
        """The buffer that the transport may write to."""
        self._room = bytearray(max(hint, 1 << 16))
        return memoryview(self._room)

    def commit(self, count: int) -> None:
        """`count` bytes were written there."""
        self._came += memoryview(self._room)[:count]

    def end(self) -> bytes:
        """Ends the wait; returns the bytes that arrived meanwhile."""
        if self.turn is not None:
            self.turn.cancel()
            self.turn = None
        came, self._came = bytes(self._came), bytearray()
        return came
