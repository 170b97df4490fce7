"""The page that tells where a message is: its events as a timeline, the queues that hold it, the cause."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import refusal_of
from msmq_fast.console.visit import Visit
from msmq_fast.protocol.resources import MessageEvent
from msmq_fast.protocol.verdicts import actor_of, detail_of

__all__ = ["PAGES"]

_LONGEST: Final = 100  # characters of an identifier
_FINE: Final = frozenset(("received", "waiting", "journaled", "forwarded", "moved", "duplicate"))


async def _show(visit: Visit) -> web.Response:
    wanted = visit.get("id").strip()[:_LONGEST]
    found: dict[str, Any] | None = None
    error, status = "", 200
    if wanted:
        try:
            found = await visit.perform("trace.show", path={"message_id": wanted})
        except Exception as failure:
            refusal = refusal_of(failure)
            if refusal is None:
                raise
            error, status = str(refusal), refusal.status
    events = [] if found is None else [MessageEvent.from_map(one) for one in found["events"]]
    return await visit.page(
        "trace.html",
        "Find a message",
        status=status,
        wanted=wanted,
        error=error,
        found=found,
        events=[(event, detail_of(event), actor_of(event)) for event in events],
        fine=found is not None and found["verdict"]["cause"] in _FINE,
    )


PAGES = [("GET", "/trace", _show)]
