"""The page about users and groups. It only shows them: the users file is edited on the server's computer."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_PAGE_SIZE: Final = 100
_MOST_GROUPS: Final = 1000


async def _list(visit: Visit) -> web.Response:
    query = {"limit": _PAGE_SIZE, "offset": visit.number("offset")}
    return await visit.page(
        "users.html",
        "Users and groups",
        found=await visit.perform("users.list", query=query),
        groups=await visit.perform("groups.list", query={"limit": _MOST_GROUPS}),
    )


PAGES = [("GET", "/users", _list)]
