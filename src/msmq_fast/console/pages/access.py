"""Pages about access lists: the entries in words, whether an account has rights and why, grant and revoke.

Without a queue, the pages are about the access list of the queue manager.
"""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied, refusal_of
from msmq_fast.console.formats import RIGHTS
from msmq_fast.console.formats import account as account_name
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_QUEUE: Final = {
    "send": "send messages",
    "receive": "receive messages",
    "peek": "peek at messages",
    "journal": "receive messages of the journal",
    "get-properties": "read the settings",
    "set-properties": "change the settings",
    "get-permissions": "read the access list",
    "change-permissions": "change the access list",
    "take-ownership": "take the ownership",
    "delete": "delete the queue",
    "all": "all rights",
}
_MACHINE: Final = {
    "create-queue": "create queues",
    "deadletter": "receive dead letters",
    "peek-deadletter": "peek at dead letters",
    "journal": "receive messages of the machine journal",
    "peek-journal": "peek at the machine journal",
    "get-properties": "read the settings",
    "set-properties": "administer the queue manager",
    "get-permissions": "read the access list",
    "change-permissions": "change the access list",
    "take-ownership": "take the ownership",
    "all": "all rights",
}
_ALL: Final = (0x000F_003F, 0x000F_00F7)  # the masks of all rights on a queue, and on the queue manager
_VERBS: Final = {"allow": "may", "deny": "may not", "other": "has another kind of entry for:"}


def _words(rights: list[str]) -> str:
    """Return the names of rights, such as MQSEC_WRITE_MESSAGE, in words."""
    return ", ".join(RIGHTS.get(name.removeprefix("MQSEC_"), name) for name in rights) or "no rights"


def _of(visit: Visit) -> dict[str, str]:
    """Return the query of an access operation for the queue of a page."""
    queue = visit.get("queue")
    return {"queue": queue} if queue else {}


async def _entries(visit: Visit) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the access list and its entries with `verb` and `words`. Raises as Api.perform."""
    shown = await visit.perform("access.show", query=_of(visit))
    entries = [
        {
            **one,
            "verb": _VERBS.get(one["type"], one["type"]),
            "words": "do everything" if one["mask"] in _ALL else _words(one["rights"]),
        }
        for one in shown.get("entries") or ()
    ]
    return shown, entries


async def _show(visit: Visit) -> web.Response:
    queue, account, right = visit.get("queue"), visit.get("account").strip(), visit.get("right")
    rights = _QUEUE if queue else _MACHINE
    shown: dict[str, Any] | None = None
    entries: list[dict[str, Any]] = []
    decision, error = None, ""
    if await visit.may("get-permissions", queue):
        shown, entries = await _entries(visit)
    if right:
        try:
            decision = await visit.perform(
                "access.explain", query={**_of(visit), "account": account, "rights": right}
            )
        except Exception as failure:
            refusal = refusal_of(failure)
            if refusal is None:
                raise
            error = str(refusal)
    return await visit.page(
        "access.html",
        f"Access to {queue}" if queue else "Access to the queue manager",
        queue=queue,
        shown=shown,
        entries=entries,
        rights=rights,
        account=account,
        right=right,
        decision=decision,
        missing=_words(decision["missing"]) if decision and decision["missing"] else "",
        error=error,
        changes=await visit.may("change-permissions", queue),
    )


async def _grant(visit: Visit) -> web.Response:
    form = await visit.form()
    action, account = str(form.get("action", "")), str(form.get("account", "")).strip()
    known = _QUEUE if visit.get("queue") else _MACHINE
    rights = [name for name in known if name in form]
    if action not in ("grant", "deny"):
        raise bad_request("action must be grant or deny")
    if not account:
        raise bad_request("enter a user, a group, a SID, everyone or anonymous")
    if not rights:
        raise bad_request(f"check at least one right to {action}")
    body = {"action": action, "account": account, "rights": ",".join(rights)}
    await visit.perform("access.edit", query=_of(visit), body=body)
    words = ", ".join(known[name] for name in rights)
    text = f"{'Granted to' if action == 'grant' else 'Denied to'} {account}: {words}."
    raise visit.back(link("access", queue=visit.get("queue")), Notice("done", text))


async def _confirm(visit: Visit) -> web.Response:
    account, queue = visit.get("account"), visit.get("queue")
    if not await visit.may("change-permissions", queue):
        raise denied(f"you do not have the right to change the access list of {queue or 'the queue manager'}")
    _, entries = await _entries(visit)
    found = [one for one in entries if account and account in (one["sid"], one["name"])]
    if not found:
        text = f"No entry of the access list names {account or 'this account'}."
        raise visit.back(link("access", queue=visit.get("queue")), Notice("failed", text))
    return await visit.page(
        "access_revoke.html",
        f"Revoke the rights of {account_name(found[0])}",
        queue=visit.get("queue"),
        account=account,
        entries=found,
    )


async def _revoke(visit: Visit) -> web.Response:
    account = visit.get("account")
    if not account:
        raise bad_request("account is missing; nothing was changed")
    await visit.perform("access.edit", query=_of(visit), body={"action": "revoke", "account": account})
    raise visit.back(
        link("access", queue=visit.get("queue")), Notice("done", f"The entries of {account} are removed.")
    )


PAGES = [
    ("GET", "/access", _show),
    ("POST", "/access", _grant),
    ("GET", "/access/revoke", _confirm),
    ("POST", "/access/revoke", _revoke),
]
