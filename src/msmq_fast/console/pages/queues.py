"""Pages about queues: the list, one queue, create, change, purge, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied, refusal_of
from msmq_fast.console.formats import plural
from msmq_fast.console.pages.batches import TYPED_ABOVE
from msmq_fast.console.pages.history import history
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit
from msmq_fast.protocol.text import noun_of

__all__ = ["PAGES"]

PAGE_SIZE: Final = 50
_KINDS: Final = ("user", "system", "subqueue", "journal")
_SORTS: Final = ("name", "messages", "bytes", "oldest", "in_per_second", "out_per_second")
_COLUMNS: Final = (
    "name",
    "label",
    "messages",
    "bytes",
    "oldest",
    "in_per_second",
    "out_per_second",
    "quota_kb",
    "transactional",
    "journal",
    "authenticated",
)
"""The fields that the list shows."""
_DESTROYS: Final = {"purge": "receive", "delete": "delete"}
"""The right that each of these actions needs."""
_NO_LIMIT: Final = 0xFFFF_FFFF  # KiB
_NUMBERS: Final = ("quota_kb", "journal_quota_kb", "base_priority", "poison_after")


async def _list(visit: Visit) -> web.Response:
    kind, sort = visit.get("kind", "user"), visit.get("sort", "name")
    kind, sort = kind if kind in _KINDS else "user", sort if sort in _SORTS else "name"
    descending = visit.get("order") == "down"
    offset = visit.get("offset", "0")
    found = await visit.perform(
        "queues.list",
        query={
            "kind": kind,
            "filter": visit.get("filter")[:249],
            "sort": sort,
            "descending": descending,
            "fields": _COLUMNS,
            "rights": True,
            "limit": PAGE_SIZE,
            "offset": offset if offset.isascii() and offset.isdigit() else "0",
        },
    )
    return await visit.page(
        "queues.html",
        "Queues",
        found=found,
        kind=kind,
        kinds=_KINDS,
        sort=sort,
        descending=descending,
        pattern=visit.get("filter")[:249],
        creates=not visit.follows and await visit.may("create-queue"),
    )


async def _show(visit: Visit) -> web.Response:
    name = visit.get("name")
    queue = await visit.perform("queues.show", path={"queue": name})
    rights = await visit.perform("queues.rights", path={"queue": name})
    past = await history(visit, queue["name"])
    return await visit.page("queue.html", queue["name"], queue=queue, rights=rights, history=past)


async def _new(visit: Visit) -> web.Response:
    if not await visit.may("create-queue"):
        raise denied("you do not have the right to create queues")
    return await visit.page("queue_new.html", "Create a queue", values={}, error="")


async def _create(visit: Visit) -> web.Response:
    form = await visit.form()
    values = {name: str(value) for name, value in form.items()}
    try:
        body = {"name": values.get("name", "").strip(), **_properties(values, ("transactional",))}
        made = await visit.perform("queues.create", body=body)
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        return await visit.page(
            "queue_new.html", "Create a queue", status=refusal.status, values=values, error=str(refusal)
        )
    raise visit.back(link("queue", name=made["name"]), Notice("done", f"Queue {made['name']} is created."))


async def _set(visit: Visit) -> web.Response:
    form = await visit.form()
    name = visit.get("name")
    values = {field: str(value) for field, value in form.items()}
    properties = _properties(values, ())
    for quota in ("quota_kb", "journal_quota_kb"):
        if values.get(quota, "-").strip() == "":
            properties[quota] = _NO_LIMIT
    await visit.perform("queues.set", path={"queue": name}, body=properties)
    raise visit.back(link("queue", name=name), Notice("done", "The settings are saved."))


async def _confirm(visit: Visit) -> web.Response:
    action = visit.get("action")
    if action not in _DESTROYS:
        raise bad_request("action must be purge or delete")
    queue = await visit.perform("queues.show", path={"queue": visit.get("name")})
    rights = await visit.perform("queues.rights", path={"queue": visit.get("name")})
    if not rights[_DESTROYS[action]]:
        raise denied(f"you do not have the right to {action} {queue['name']}")
    return await visit.page(
        "queue_confirm.html",
        f"{action.capitalize()} {queue['name']}",
        queue=queue,
        action=action,
        typed=queue["messages"] > TYPED_ABOVE,
    )


async def _destroy(visit: Visit) -> web.Response:
    action, name = visit.get("action"), visit.get("name")
    form = await visit.form()
    queue = await visit.perform("queues.show", path={"queue": name})
    if queue["messages"] > TYPED_ABOVE and str(form.get("typed", "")).strip() != queue["name"]:
        raise bad_request(f"the typed name must be {queue['name']}; nothing was changed")
    if action == "purge":
        done = await visit.perform("queues.purge", path={"queue": name})
        deleted = done["purged"] or 0
        text = f"{plural(deleted, 'message')} of {queue['name']} {noun_of(deleted, 'is', 'are')} deleted."
        raise visit.back(link("queue", name=name), Notice("done", text))
    if action != "delete":
        raise bad_request("action must be purge or delete")
    await visit.perform("queues.delete", path={"queue": name})
    raise visit.back(link("queues"), Notice("done", f"Queue {queue['name']} and its messages are deleted."))


def _properties(values: Mapping[str, str], more_flags: tuple[str, ...]) -> dict[str, Any]:
    """Return the properties that a form gives. A browser does not send an unchecked box, so each box that is
    missing is False; `more_flags` are boxes that only some forms have.
    """
    found: dict[str, Any] = {}
    if "label" in values:
        found["label"] = values["label"]
    for name in ("journal", "authenticated", *more_flags):
        found[name] = name in values
    for name in _NUMBERS:
        text = values.get(name, "").strip()
        if text:
            if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 12):
                raise bad_request(f"{name} must be a whole number")
            found[name] = int(text)
    return found


PAGES = [
    ("GET", "/queues", _list),
    ("GET", "/queue", _show),
    ("POST", "/queue", _set),
    ("GET", "/queues/new", _new),
    ("POST", "/queues/new", _create),
    ("GET", "/queue/confirm", _confirm),
    ("POST", "/queue/confirm", _destroy),
]
