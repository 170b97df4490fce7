"""Pages about transactions that are open or prepared: abort them, commit a prepared one."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request
from msmq_fast.console.formats import count, moment
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_TEXTS: Final = {
    "abort": "This aborts the transaction: what it sent is deleted, and what it received returns to its "
    "queue.",
    "commit": "This commits the transaction although its coordinator has not decided. Do so only if the "
    "other parts of the transaction are committed.",
}


async def _list(visit: Visit) -> web.Response:
    found = await visit.perform("transactions.list", query={"offset": visit.number("offset")})
    return await visit.page("transactions.html", "Transactions", found=found)


async def _confirm(visit: Visit) -> web.Response:
    action, identifier = visit.get("action"), visit.get("id")
    if action not in _TEXTS:
        raise bad_request("action must be abort or commit")
    found = await visit.perform("transactions.list", query={"limit": 1000})
    one = next((one for one in found["items"] if one["identifier"] == identifier), None)
    if one is None:
        raise visit.back(link("transactions"), Notice("failed", "The transaction has ended already."))
    sent, received, moved = (count(one[name]) for name in ("sent", "received", "moved"))
    facts = {
        "Transaction": identifier,
        "User": one["user"] or "–",
        "State": one["state"],
        "Began": f"{moment(one['began'])} UTC",
        "Messages": f"{sent} sent, {received} received, {moved} moved",
    }
    name = action.capitalize()
    return await visit.confirm(
        f"{name} a transaction",
        _TEXTS[action],
        facts,
        button=f"{name} the transaction",
        back=link("transactions"),
    )


async def _act(visit: Visit) -> web.Response:
    action, identifier = visit.get("action"), visit.get("id")
    if action not in _TEXTS:
        raise bad_request("action must be abort or commit")
    done = await visit.perform(f"transactions.{action}", path={"identifier": identifier})
    raise visit.back(link("transactions"), Notice("done", f"The transaction is {done['state']}."))


PAGES = [
    ("GET", "/transactions", _list),
    ("GET", "/transactions/end", _confirm),
    ("POST", "/transactions/end", _act),
]
