"""The page that finds a message by its identifier: where it is, what happened to it, and the conclusion."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from msmq_fast.admin.api.errors import refusal_of
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]


async def _show(visit: Visit) -> web.Response:
    wanted = visit.get("id").strip()[:64]
    found: dict[str, Any] | None = None
    error = ""
    if wanted:
        try:
            found = await visit.perform("trace.show", path={"message_id": wanted})
        except Exception as failure:
            refusal = refusal_of(failure)
            if refusal is None:
                raise
            error = str(refusal)
    return await visit.page("trace.html", "Find a message", wanted=wanted, found=found, error=error)


PAGES = [("GET", "/trace", _show)]
