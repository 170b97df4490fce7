"""The page about outgoing queues: messages on their way to other computers, and why they wait."""

from __future__ import annotations

from aiohttp import web

from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]


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


PAGES = [("GET", "/outgoing", _list)]
