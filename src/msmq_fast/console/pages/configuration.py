"""The pages about the configuration in force, and a check of a text that could replace its file."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import denied
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_PAGE_SIZE: Final = 200
_CHOICES: Final = {"": "all keys", "set": "keys that are set", "changed": "keys changed since the start"}


async def _list(visit: Visit) -> web.Response:
    pattern, only = visit.get("filter")[:249], visit.get("only")
    query: dict[str, Any] = {"limit": _PAGE_SIZE, "offset": visit.number("offset"), "filter": pattern}
    if only in ("set", "changed"):
        query[only] = True
    return await visit.page(
        "configuration.html",
        "Configuration",
        found=await visit.perform("config.show", query=query),
        pattern=pattern,
        only=only,
        choices=_CHOICES,
    )


async def _form(visit: Visit) -> web.Response:
    if not visit.observes and not await visit.administers():
        raise denied("the configuration is for administrators and readers")
    return await visit.page("configuration_check.html", "Check a configuration", content="", checked=None)


async def _check(visit: Visit) -> web.Response:
    content = str((await visit.form()).get("text", "")).replace("\r\n", "\n")
    checked = await visit.perform("config.check", body={"text": content})
    return await visit.page(
        "configuration_check.html", "Check a configuration", content=content, checked=checked
    )


PAGES = [
    ("GET", "/configuration", _list),
    ("GET", "/configuration/check", _form),
    ("POST", "/configuration/check", _check),
]
