"""The actions on many messages of a queue: move, copy, delete, send dead letters again.

1. The list of messages or dead letters is a form: it selects messages, or all that match its filter, and
   names the action and the target.
2. A preview (GET) counts the messages by a dry run, shows the first of them with their targets, and changes
   nothing. The messages that arrive after it are left out.
3. The button of the preview (POST, with the same query string) acts. To delete more messages than
   `TYPED_ABOVE`, the name of the queue must be typed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied, refusal_of
from msmq_fast.console.formats import count, plural, sentence
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit
from msmq_fast.protocol.moments import parse_moment

__all__ = ["DEAD_LETTERS", "PAGES", "TYPED_ABOVE", "dead_letters_of", "filters_of", "selecting"]

DEAD_LETTERS: Final = {"express": ".\\system$;deadletter", "transactional": ".\\system$;deadxact"}
"""The dead-letter queues by the kind of their messages."""
_NEEDED: Final = {
    "move": "receive from",
    "copy": "peek at",
    "remove": "receive from",
    "resubmit": "receive from",
}
_DONE: Final = {"move": "moved", "copy": "copied", "remove": "deleted", "resubmit": "sent again"}
_TARGETED: Final = ("move", "copy")
_OPERATIONS: Final = {"remove": "messages.remove_selected"}
_TITLES: Final = {
    "move": "Move messages",
    "copy": "Copy messages",
    "remove": "Delete messages",
    "resubmit": "Send dead letters again",
}
_FILTERS: Final = ("label", "class", "arrived_from", "arrived_to", "message_id", "correlation_id")
"""The parameters that select messages, in the lists and here."""
TYPED_ABOVE: Final = 1000
"""Messages above which a deletion needs the typed name of the queue."""
_SHOWN: Final = 20  # messages of a preview
_LATEST: Final = 2**64 - 1  # Unix microseconds
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
    filters: Mapping[str, str]
    until: int

    @classmethod
    def of(cls, visit: Visit) -> _Batch:
        """Return the batch of a request. Raises Refusal (BAD_REQUEST)."""
        action, scope, until = visit.get("action"), visit.get("scope", "selected"), visit.get("until")
        target = visit.get("target").strip() if action in _TARGETED else ""
        ids = visit.request.query.getall("id", []) if scope == "selected" else []
        if action not in _DONE:
            raise bad_request("action must be move, copy, remove or resubmit")
        if scope not in ("selected", "all"):
            raise bad_request("scope must be selected or all")
        if scope == "selected" and not 0 < len(ids) <= _MOST_SELECTED:
            raise bad_request(f"select 1 to {_MOST_SELECTED} messages, or all messages that match the filter")
        if action in _TARGETED and not target:
            raise bad_request(f"enter the queue to which to {action} the messages")
        return cls(
            action,
            visit.get("queue"),
            target,
            scope,
            tuple(_whole(one, "id") for one in ids),
            {} if ids else filters_of(visit),
            _whole(until, "until") if until else time.time_ns() // 1000,
        )

    def selection(self) -> dict[str, Any]:
        """Return the properties of the management API that select the messages."""
        found = selecting(self.filters)
        if self.ids:
            found["lookup_ids"] = list(self.ids)
        return found | {"until": min(self.until, found.get("until", self.until))}

    def url(self) -> str:
        """Return the URL of the preview and the action."""
        return link(
            "messages/batch",
            action=self.action,
            queue=self.queue,
            target=self.target,
            scope=self.scope,
            id=self.ids,
            until=self.until,
            **self.filters,
        )

    async def perform(self, visit: Visit, *, dry_run: bool) -> dict[str, Any]:
        """Perform or count; returns the result of the management API."""
        body = {**self.selection(), "limit": _LIMIT, "dry_run": dry_run}
        if self.target:
            body["target"] = self.target
        done: dict[str, Any] = await visit.perform(
            _OPERATIONS.get(self.action, f"messages.{self.action}"), path={"queue": self.queue}, body=body
        )
        return done


def dead_letters_of(queue: str) -> str:
    """Return the kind of the dead letters in a queue, "" for other queues: `HOST\\system$;deadletter` is
    `.\\system$;deadletter`.
    """
    local = queue.casefold().partition("\\")[2]
    return next((kind for kind, name in DEAD_LETTERS.items() if name.partition("\\")[2] == local), "")


def filters_of(visit: Visit) -> dict[str, str]:
    """Return the filters of the query string that are not empty."""
    return {name: visit.get(name).strip() for name in _FILTERS if visit.get(name).strip()}


def selecting(filters: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties of the management API for filters. Raises Refusal (BAD_REQUEST)."""
    found: dict[str, Any] = dict(filters)
    if "class" in found:
        found["class"] = _whole(found["class"], "class")
    if "message_id" in found:
        found["id"] = found.pop("message_id")
    if "arrived_from" in found:
        found["since"] = 1_000_000 * _time(found.pop("arrived_from"), "arrived from", last=False)
    if "arrived_to" in found:
        # The last microsecond of the day, minute or second: the pages show seconds.
        found["until"] = 1_000_000 * _time(found.pop("arrived_to"), "arrived to", last=True) + 999_999
    if found.get("since", 0) > found.get("until", _LATEST):
        raise bad_request("the first time of arrival must not be later than the last one")
    return found


def _time(text: str, name: str, *, last: bool) -> int:
    """Return the first or the last second of a time. Raises Refusal (BAD_REQUEST)."""
    try:
        return parse_moment(text, last=last)
    except ValueError as error:
        raise bad_request(f"{name}: {error}") from None


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise bad_request(f"{name} must be a whole number")
    return int(text)


def _list_of(visit: Visit) -> str:
    """Return the URL of the list that the form was on."""
    queue, more = visit.get("queue"), filters_of(visit)
    kind = dead_letters_of(queue)
    return link("deadletters", kind=kind, **more) if kind else link("messages", queue=queue, **more)


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
        raise visit.back(_list_of(visit), Notice("failed", sentence(str(refusal)))) from None
    targets = Counter(one["destination_queue"] or "(none)" for one in first["items"])
    return await visit.page(
        "messages_confirm.html",
        _TITLES[batch.action],
        batch=batch,
        counted=counted,
        first=first["items"],
        targets=targets.most_common(),
        url=batch.url(),
        back=_list_of(visit),
        typed=batch.action == "remove" and counted["count"] > TYPED_ABOVE,
    )


async def _act(visit: Visit) -> web.Response:
    batch = _Batch.of(visit)
    if batch.action == "remove":
        counted = await batch.perform(visit, dry_run=True)
        typed = str((await visit.form()).get("typed", "")).strip()
        if counted["count"] > TYPED_ABOVE and typed != batch.queue:
            raise bad_request(f"the typed name must be {batch.queue}; nothing was changed")
    done = await batch.perform(visit, dry_run=False)
    text = f"{plural(done['count'], 'message is', 'messages are')} {_DONE[batch.action]}"
    text += f" to {batch.target}." if batch.target else "."
    details = [
        f"{plural(one['count'], 'message stays', 'messages stay')}: {one['reason']}"
        for one in done["refused"]
    ]
    if not done["finished"]:
        details.append(f"One action takes {count(_LIMIT)} messages; repeat it for the others.")
    kind = "partial" if details else "done"
    if done["refused"] and not done["count"]:
        kind = "failed"
    raise visit.back(_list_of(visit), Notice(kind, text, tuple(details)))


PAGES = [("GET", "/messages/batch", _preview), ("POST", "/messages/batch", _act)]
