"""The connections of the server as operators see them: lists and closes the slots of the connection table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from heapq import nsmallest
from typing import Any, Final

from msmq_fast.protocol.resources import SessionInfo, SessionPage
from msmq_fast.server.net.connections import ConnectionTable, Slot, Standing

__all__ = ["Sessions"]

_KINDS: Final = {
    "session": "mqqb",
    "app connection": "program",
    "rpc connection": "rpc",
    "http connection": "http",
    "admin connection": "admin",
}
"""The kind of a session, by the name that the shares of its port have, without "outgoing"."""

_STATES: Final = {
    Standing.SILENT: "silent",
    Standing.IDLE: "idle",
    Standing.BUSY: "busy",
    Standing.SETTLED: "open",
}


class Sessions:
    """Implements `app.service.OpenSessions`. Each call walks the table once; between calls it costs
    nothing.
    """

    def __init__(
        self,
        table: ConnectionTable,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        wall_s: Callable[[], int],
        touch: Callable[[], None],
    ) -> None:
        """`touch` is called before a connection is closed, because its end may write to the store."""
        self._table = table
        self._loop = loop
        self._monotonic = monotonic
        self._wall_s = wall_s
        self._touch = touch

    def page(self, kind: str, after: int, limit: int) -> SessionPage:
        """Return up to `limit` sessions of a kind ("": of all kinds) with numbers above `after`."""
        slots = [slot for slot in self._slots() if not kind or _kind(slot) == kind]
        later = [slot for slot in slots if slot.number > after]
        found = nsmallest(limit, later, key=lambda slot: slot.number)
        following = found[-1].number if len(found) < len(later) else 0
        return SessionPage(tuple(map(self._info, found)), len(slots), following)

    def find(self, number: int) -> SessionInfo | None:
        """Return the session with this number; None if there is none."""
        slot = self._slot(number)
        return None if slot is None else self._info(slot)

    def end(self, number: int) -> None:
        """Close the connection, if it is still open, after the next turn of the event loop: the reply to a
        caller that closes its own connection is sent in that turn.
        """
        self._loop.call_soon(self._loop.call_soon, self._end, number)

    def _end(self, number: int) -> None:
        slot = self._slot(number)
        if slot is not None:
            self._touch()
            slot.end()

    def _slots(self) -> Iterator[Slot]:
        for pool in self._table:
            yield from pool

    def _slot(self, number: int) -> Slot | None:
        return next((slot for slot in self._slots() if slot.number == number), None)

    def _info(self, slot: Slot) -> SessionInfo:
        outgoing = slot.share.pool is self._table.outgoing
        unopened = "connecting" if outgoing else "handshake"
        fields: dict[str, Any] = {
            "number": slot.number,
            "kind": _kind(slot),
            "direction": "outgoing" if outgoing else "incoming",
            "address": slot.address or "local",
            "state": _STATES[slot.standing] if slot.followed else unopened,
            "since": self._wall_s() - round(self._monotonic() - slot.since),
        }
        return SessionInfo(**fields | dict(slot.described()))


def _kind(slot: Slot) -> str:
    return _KINDS[slot.share.what.removeprefix("outgoing ")]
