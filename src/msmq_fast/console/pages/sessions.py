"""Pages about connections: the open ones of the server, and the user's own log-ons to the console."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_KINDS: Final = {
    "mqqb": "queue manager",
    "program": "program",
    "rpc": "remote reader (RPC)",
    "http": "HTTP (SRMP)",
    "admin": "admin port",
}
"""What is at the other end, by the kind of the connection."""
_HOWS: Final = {"password": "password", "token": "token", "local": "account of this computer"}


async def _list(visit: Visit) -> web.Response:
    kind = visit.get("kind") if visit.get("kind") in _KINDS else ""
    query: dict[str, Any] = {"after": visit.number("after"), "limit": 100}
    if kind:
        query["kind"] = kind
    own = [
        {
            "number": one.number,
            "address": one.address,
            "how": _HOWS[one.logon.how],
            "age": visit.sessions.age(one),
            "idle": visit.sessions.idle(one),
            "this": one.number == visit.session.number,
        }
        for one in visit.sessions.all()
        if one.logon.caller.name == visit.caller.name
    ]
    return await visit.page(
        "sessions.html",
        "Sessions",
        found=await visit.perform("sessions.list", query=query) if visit.observes else None,
        kind=kind,
        kinds=_KINDS,
        own=own,
    )


async def _confirm(visit: Visit) -> web.Response:
    number = visit.number("number")
    if not await visit.administers():
        raise denied("you do not have the right to close sessions")
    page = await visit.perform("sessions.list", query={"after": max(0, number - 1), "limit": 1})
    found = next((one for one in page["items"] if one["number"] == number), None)
    if found is None:
        raise visit.back(link("sessions"), Notice("failed", f"Session {number} has ended already."))
    facts = {
        "Other end": _KINDS.get(found["kind"], found["kind"]),
        "Address": found["address"] or "–",
        "User": found["user"] or "–",
        "Direction": found["direction"],
        "State": found["state"],
    }
    return await visit.confirm(
        f"Close session {number}",
        "This closes the connection at once. Open transactions of a program are aborted. The other end may "
        "connect again.",
        facts,
        button="Close the session",
        back=link("sessions"),
    )


async def _close(visit: Visit) -> web.Response:
    number = visit.number("number")
    if not number:
        raise bad_request("number must be the number of a session")
    await visit.perform("sessions.close", path={"number": number})
    raise visit.back(link("sessions"), Notice("done", f"Session {number} is closed."))


async def _end(visit: Visit) -> web.Response:
    number = str((await visit.form()).get("number", ""))
    known = number.isascii() and number.isdigit() and len(number) < 18
    if not known or not visit.sessions.revoke(int(number), visit.caller.name):
        raise bad_request("this log-on has ended already")
    raise visit.back(link("sessions"), Notice("done", "The log-on is ended."))


PAGES = [
    ("GET", "/sessions", _list),
    ("GET", "/sessions/close", _confirm),
    ("POST", "/sessions/close", _close),
    ("POST", "/sessions/end", _end),
]
