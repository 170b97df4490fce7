"""The page that tells where a message is: its events as a timeline, the queues that hold it, the cause."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

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
    hosts = await _next_hosts(visit, events)
    return await visit.page(
        "trace.html",
        "Find a message",
        status=status,
        wanted=wanted,
        error=error,
        found=found,
        events=[(event, detail_of(event), actor_of(event)) for event in events],
        elsewhere=[(host, _console_at(visit, host, wanted)) for host in hosts],
        fine=found is not None and found["verdict"]["cause"] in _FINE,
    )


async def _next_hosts(visit: Visit, events: list[MessageEvent]) -> list[str]:
    """Return the hosts that have the message now, or get it next: where the rest of its events are."""
    sent = next((one for one in reversed(events) if one.queue_kind == "outgoing" and one.queue), None)
    if sent is None:
        return []
    try:
        route = await visit.perform("routes.explain", path={"name": sent.queue})
    except Exception as problem:
        if refusal_of(problem) is None:
            raise
        return []
    return [host for host in route["addresses"] or route["hops"] if not host.startswith("{")]


def _console_at(visit: Visit, host: str, message_id: str) -> str:
    """Return the URL of the same page on another host, which a console has only if it listens there on the
    same port.
    """
    request = visit.request
    at = f"[{host}]" if ":" in host else host
    port = f":{request.url.port}" if request.url.port else ""
    return f"{request.scheme}://{at}{port}/ui/trace?{urlencode({'id': message_id})}"


PAGES = [("GET", "/trace", _show)]
