"""The page about the audit: administrative acts, denials and log-ons. For administrators and readers."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.audit import KINDS
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_TEXTS: Final = ("caller", "operation", "object")
_ROWS: Final = 100  # entries of a page, unless one answer has more
_ANSWERS: Final = 20  # answers of the management API that one page reads; each examines 500 entries


async def _list(visit: Visit) -> web.Response:
    kind, start = visit.get("kind"), visit.get("start", "0")
    query: dict[str, Any] = {name: visit.get(name).strip()[:256] for name in _TEXTS}
    query["kind"] = kind if kind in KINDS else ""
    items: list[dict[str, Any]] = []
    following, finished = (start if start.isascii() and start.isdigit() else "0"), False
    for _ in range(_ANSWERS):
        found = await visit.perform("audit.list", query={**query, "newest_first": True, "start": following})
        items += found["items"]
        following, finished = found["next"], found["finished"]
        if finished or len(items) >= _ROWS:
            break
    return await visit.page(
        "audit.html", "Audit", items=items, following=following, finished=finished, query=query, kinds=KINDS
    )


PAGES = [("GET", "/audit", _list)]
