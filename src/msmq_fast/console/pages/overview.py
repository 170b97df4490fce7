"""The first page: what the server holds, and what needs attention."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.console.pages.history import history
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_MOST_REFUSALS: Final = 10  # reasons with the most refusals


async def _show(visit: Visit) -> web.Response:
    deepest = await visit.perform(
        "queues.list",
        query={
            "sort": "messages",
            "descending": True,
            "limit": 10,
            "fields": ("name", "messages", "bytes"),
        },
    )
    outgoing = await visit.perform("outgoing.list", query={"limit": 1000})
    system = await visit.perform(
        "queues.list", query={"kind": "system", "limit": 100, "fields": ("kind", "messages")}
    )
    stalled = [one for one in outgoing["items"] if one["stalled"]]
    dead = sum(_messages(one) for one in system["items"] if one["kind"].endswith("deadletter"))
    refusals = (await visit.perform("server.stats"))["refusals"]
    most = sorted(refusals.items(), key=lambda one: (-one[1], one[0]))[:_MOST_REFUSALS]
    return await visit.page(
        "overview.html",
        "Overview",
        history=await history(visit),
        deepest=deepest,
        outgoing=outgoing,
        stalled=stalled,
        dead=dead,
        refusals=[(*what.partition(": ")[::2], times) for what, times in most],
        creates=await visit.may("create-queue"),
    )


def _messages(queue: dict[str, Any]) -> int:
    return int(queue["messages"])


async def _root(visit: Visit) -> web.Response:
    raise web.HTTPSeeOther("/ui/overview")


PAGES = [("GET", "", _root), ("GET", "/", _root), ("GET", "/overview", _show)]
