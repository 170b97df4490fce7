"""Pages about outgoing queues: messages on their way to other computers, why they wait, and what to do."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied
from msmq_fast.console.formats import plural
from msmq_fast.console.pages.batches import TYPED_ABOVE
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit
from msmq_fast.protocol.text import noun_of

__all__ = ["PAGES"]

_DONE: Final = {
    "pause": "Sending to {name} is paused.",
    "resume": "Sending to {name} is resumed.",
    "kick": "An attempt to send to {name} has begun.",
}


async def _list(visit: Visit) -> web.Response:
    offset = visit.get("offset", "0")
    query = {
        "filter": visit.get("filter")[:249],
        "offset": offset if offset.isascii() and offset.isdigit() else "0",
    }
    found = await visit.perform("outgoing.list", query=query)
    return await visit.page(
        "outgoing.html", "Outgoing queues", found=found, pattern=visit.get("filter")[:249]
    )


async def _queue(visit: Visit) -> dict[str, Any]:
    found: dict[str, Any] = await visit.perform("outgoing.show", path={"name": visit.get("name")})
    return found


async def _show(visit: Visit) -> web.Response:
    queue = await _queue(visit)
    return await visit.page(
        "outgoing_queue.html", queue["name"], queue=queue, administers=await visit.administers()
    )


async def _change(visit: Visit) -> web.Response:
    action, name = str((await visit.form()).get("action", "")), visit.get("name")
    if action not in _DONE:
        raise bad_request("action must be pause, resume or kick")
    await visit.perform(f"outgoing.{action}", path={"name": name})
    raise visit.back(visit.request.path_qs, Notice("done", _DONE[action].format(name=name)))


async def _confirm(visit: Visit) -> web.Response:
    queue = await _queue(visit)
    if not await visit.administers():
        raise denied(f"you do not have the right to purge {queue['name']}")
    return await visit.page(
        "outgoing_purge.html",
        f"Purge {queue['name']}",
        queue=queue,
        typed=queue["messages"] > TYPED_ABOVE,
    )


async def _purge(visit: Visit) -> web.Response:
    form, queue = await visit.form(), await _queue(visit)
    if queue["messages"] > TYPED_ABOVE and str(form.get("typed", "")).strip() != queue["name"]:
        raise bad_request(f"the typed name must be {queue['name']}; nothing was changed")
    done = await visit.perform("outgoing.purge", path={"name": queue["name"]})
    deleted = done["purged"]
    text = f"{plural(deleted, 'message')} to {queue['name']} {noun_of(deleted, 'is', 'are')} deleted."
    raise visit.back(link("outgoing"), Notice("done", text))


PAGES = [
    ("GET", "/outgoing", _list),
    ("GET", "/outgoing/queue", _show),
    ("POST", "/outgoing/queue", _change),
    ("GET", "/outgoing/purge", _confirm),
    ("POST", "/outgoing/purge", _purge),
]
