"""Finds the queues that hold a message now, from the events of the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msmq_fast.client.connection import Connection
from msmq_fast.protocol.errors import AccessDenied, MessageNotFound, MSMQError
from msmq_fast.protocol.frames import Access, Lookup
from msmq_fast.protocol.resources import MessageEvent

__all__ = ["places_of"]

_ENTERS = frozenset(("sent", "arrived", "journaled", "dead_lettered", "moved"))


async def places_of(
    connection: Connection, wanted: bytes, events: Sequence[MessageEvent]
) -> list[dict[str, Any]]:
    """Return the queues in `events` that hold the message now, each with the state of the message."""
    places: list[dict[str, Any]] = []
    last = {event.queue: event for event in events if event.queue and event.lookup_id}
    for name, event in last.items():
        stalled = ""
        if event.queue_kind == "outgoing":
            state, stalled = await _waiting(connection, name) if event.event in _ENTERS else (None, "")
        else:
            state = await _in_queue(connection, name, event.lookup_id, wanted)
        if state is not None:
            places.append(
                {
                    "queue": name,
                    "queue_kind": event.queue_kind,
                    "lookup_id": event.lookup_id,
                    "state": state,
                    "stalled": stalled,
                }
            )
    return places


async def _waiting(connection: Connection, name: str) -> tuple[str | None, str]:
    """Return (why a message is still in the outgoing queue `name`, the cause in the words of
    `OutgoingQueueInfo.stalled`); None if that queue, and with it the message, no longer exists.
    """
    try:
        queue = await connection.admin.outgoing.get(name)
    except MSMQError:
        return None, ""
    return queue.reason or f"waits to be sent, the queue is {queue.state.replace('_', ' ')}", queue.stalled


async def _in_queue(connection: Connection, name: str, lookup_id: int, wanted: bytes) -> str | None:
    """Look for the message `wanted` in the queue `name`. Return "" if it can be read, None if it is not in
    the queue, otherwise the reason why the queue cannot be read.
    """
    try:
        async with await connection.open(name, Access.PEEK) as queue:
            message = await queue.lookup(lookup_id, Lookup.CURRENT)
    except AccessDenied:
        return "you do not have the right to peek this queue"
    except MessageNotFound:
        return None
    except MSMQError as error:
        return str(error)
    return "" if message.id == wanted else None
