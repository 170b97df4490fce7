"""The actions on many messages of a queue: move, copy, send dead letters again.

1. The list of messages or dead letters is a form: it selects messages, or all that match its filter, and
   names the action and the target.
2. A preview (GET) counts the messages by a dry run, shows the first of them with their targets, and changes
   nothing. The messages that arrive after it are left out.
3. The button of the preview (POST, with the same query string) acts.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied, refusal_of
from msmq_fast.console.formats import count
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit

__all__ = ["DEAD_LETTERS", "PAGES"]

DEAD_LETTERS: Final = {"express": ".\\system$;deadletter", "transactional": ".\\system$;deadxact"}
"""The dead-letter queues by the kind of their messages."""
_DONE: Final = {"move": "moved", "copy": "copied", "resubmit": "sent again"}
_NEEDED: Final = {"move": "receive from", "copy": "peek at", "resubmit": "receive from"}
_SHOWN: Final = 20  # messages of a preview
_MOST_SELECTED: Final = 1000
_LIMIT: Final = 100_000  # messages of one action


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the query string asks for. `until` (Unix microseconds) leaves out the messages that arrived after
    the preview.
    """

    action: str
    queue: str
    target: str
    scope: str
    ids: tuple[int, ...]
    label: str
    message_class: str
    until: int

    @classmethod
    def of(cls, visit: Visit) -> _Batch:
        """Return the batch of a request. Raises Refusal (BAD_REQUEST)."""
        action, scope, until = visit.get("action"), visit.get("scope", "selected"), visit.get("until")
        target = "" if action == "resubmit" else visit.get("target").strip()
        ids = visit.request.query.getall("id", []) if scope == "selected" else []
        if action not in _DONE:
            raise bad_request("action must be move, copy or resubmit")
        if scope not in ("selected", "all"):
            raise bad_request("scope must be selected or all")
        if scope == "selected" and not 0 < len(ids) <= _MOST_SELECTED:
            raise bad_request(f"select 1 to {_MOST_SELECTED} messages, or all messages that match the filter")
        if action != "resubmit" and not target:
            raise bad_request(f"enter the queue to which to {action} the messages")
        return cls(
            action,
            visit.get("queue"),
            target,
            scope,
            tuple(_whole(one, "id") for one in ids),
            "" if ids else visit.get("label"),
            "" if ids else visit.get("class"),
            _whole(until, "until") if until else time.time_ns() // 1000,
        )

    def selection(self) -> dict[str, Any]:
        """Return the properties of the management API that select the messages."""
        found: dict[str, Any] = {"until": self.until}
        if self.ids:
            found["lookup_ids"] = list(self.ids)
        if self.label:
            found["label"] = self.label
        if self.message_class:
            found["class"] = _whole(self.message_class, "class")
        return found

    def url(self) -> str:
        """Return the URL of the preview and the action."""
        return link(
            "messages/batch",
            action=self.action,
            queue=self.queue,
            target=self.target,
            scope=self.scope,
            id=self.ids,
            label=self.label,
            until=self.until,
            **{"class": self.message_class},
        )

    async def perform(self, visit: Visit, *, dry_run: bool) -> dict[str, Any]:
        """Perform or count; returns the result of the management API."""
        body = {**self.selection(), "limit": _LIMIT, "dry_run": dry_run}
        if self.target:
            body["target"] = self.target
        done: dict[str, Any] = await visit.perform(
            f"messages.{self.action}", path={"queue": self.queue}, body=body
        )
        return done


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise bad_request(f"{name} must be a whole number")
    return int(text)


def _list_of(visit: Visit) -> str:
    """Return the URL of the list that the form was on."""
    queue, more = visit.get("queue"), {"label": visit.get("label"), "class": visit.get("class")}
    for kind, name in DEAD_LETTERS.items():
        if queue == name:
            return link("deadletters", kind=kind, **more)
    return link("messages", queue=queue, **more)


async def _preview(visit: Visit) -> web.Response:
    try:
        batch = _Batch.of(visit)
        rights = await visit.perform("queues.rights", path={"queue": batch.queue})
        if not rights["peek" if batch.action == "copy" else "receive"]:
            raise denied(f"you do not have the right to {_NEEDED[batch.action]} {batch.queue}")
        counted = await batch.perform(visit, dry_run=True)
        if batch.target:
            rights = await visit.perform("queues.rights", path={"queue": batch.target})
            if not rights["send"]:
                raise denied(f"you do not have the right to send to {batch.target}")
        first = await visit.perform(
            "messages.list", path={"queue": batch.queue}, query={**batch.selection(), "limit": _SHOWN}
        )
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        raise visit.back(_list_of(visit), Notice("failed", str(refusal))) from None
    targets = Counter(one["destination_queue"] or "(none)" for one in first["items"])
    return await visit.page(
        "messages_confirm.html",
        {"move": "Move messages", "copy": "Copy messages", "resubmit": "Send dead letters again"}[
            batch.action
        ],
        batch=batch,
        counted=counted,
        first=first["items"],
        targets=targets.most_common(),
        url=batch.url(),
        back=_list_of(visit),
    )


async def _act(visit: Visit) -> web.Response:
    batch = _Batch.of(visit)
    done = await batch.perform(visit, dry_run=False)
    text = f"{count(done['count'])} messages are {_DONE[batch.action]}"
    text += f" to {batch.target}." if batch.target else "."
    details = [f"{count(one['count'])} messages stay: {one['reason']}" for one in done["refused"]]
    if not done["finished"]:
        details.append(f"One action takes {count(_LIMIT)} messages; repeat it for the others.")
    kind = "partial" if details else "done"
    if done["refused"] and not done["count"]:
        kind = "failed"
    raise visit.back(_list_of(visit), Notice(kind, text, tuple(details)))


PAGES = [("GET", "/messages/batch", _preview), ("POST", "/messages/batch", _act)]
