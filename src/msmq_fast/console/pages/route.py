"""The page that explains where messages for a name go, and what stops them."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import refusal_of
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_LONGEST: Final = 1024  # characters of a name


async def _show(visit: Visit) -> web.Response:
    wanted = visit.get("name").strip()[:_LONGEST]
    found: dict[str, Any] | None = None
    error = ""
    if wanted:
        try:
            found = await visit.perform("routes.explain", path={"name": wanted})
        except Exception as problem:
            refusal = refusal_of(problem)
            if refusal is None or refusal.status != 400:
                raise
            error = str(refusal)
    return await visit.page(
        "route.html", "Explain a route", status=400 if error else 200, wanted=wanted, error=error, route=found
    )


PAGES = [("GET", "/route", _show)]
