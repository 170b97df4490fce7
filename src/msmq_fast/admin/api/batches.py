"""Operations that send messages, and that move, copy, remove or resubmit selected messages in one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from msmq_fast.admin.api.errors import bad_request, code_of
from msmq_fast.admin.api.messages import FILTER, LOOKUP_ID, wanted
from msmq_fast.admin.api.operation import OUTGOING, QUEUE, Call, Operation, Parameter
from msmq_fast.admin.api.schema import array, decoded, flag, number, record, text
from msmq_fast.client.exchange import Done, Filter, Plan
from msmq_fast.client.message import Message
from msmq_fast.client.transaction import SINGLE_MESSAGE
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import INFINITE, LONG_LIVED, MAX_LABEL, MAX_MESSAGE, MAX_PRIORITY, Access
from msmq_fast.protocol.properties import Delivery

__all__ = ["OPERATIONS"]

_MOST: Final = 1_000_000  # messages of one call
_BATCH: Final = 1000
_NAMED: Final = 10_000  # lookup ids of one reason in an answer

_FIELDS: Final = {
    **FILTER,
    "limit": number("most messages of this call", least=1, most=_MOST, default=10_000),
    "dry_run": flag("tell what would happen, and change nothing", default=False),
}
_TARGET: Final = text("path or format name of the target, a queue of this computer", least=1, most=1024)


class _Totals:
    """The result of the batches of one call."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.left: int = body["limit"]
        self._dry_run: bool = body["dry_run"]
        self.plan: Plan | None = () if self._dry_run else None
        self.after, self.upto, self.finished = 0, 0, False
        self.count = self.size = 0
        self._refused: dict[str, tuple[MSMQError, list[int]]] = {}

    @property
    def going(self) -> bool:
        return not self.finished and self.left > 0

    def add(self, done: Done) -> None:
        self.after, self.upto, self.finished, self.plan = done.next, done.upto, done.finished, done.plan
        self.count += done.count
        self.size += done.size
        self.left -= done.count
        for one in done.refused:
            _, lookup_ids = self._refused.setdefault(str(one.error), (one.error, []))
            lookup_ids += one.lookup_ids

    def answer(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "bytes": self.size,
            "refused": [
                {
                    "code": code_of(error),
                    "reason": error.detail or str(error),
                    "count": len(lookup_ids),
                    "lookup_ids": lookup_ids[:_NAMED],
                }
                for error, lookup_ids in self._refused.values()
            ],
            "finished": self.finished,
            "dry_run": self._dry_run,
        }


async def _move(call: Call) -> dict[str, Any]:
    return await _relocate(call, keep=False)


async def _copy(call: Call) -> dict[str, Any]:
    return await _relocate(call, keep=True)


async def _relocate(call: Call, *, keep: bool) -> dict[str, Any]:
    body, messages = call.body, call.client.admin.messages
    totals, chosen = _Totals(body), wanted(body)
    async with (
        call.client.open(call.path["queue"], Access.PEEK if keep else Access.RECEIVE) as source,
        call.client.open(body["target"], Access.SEND) as target,
    ):
        run = messages.copy if keep else messages.move
        while totals.going:
            batch, plan = min(totals.left, _BATCH), totals.plan
            totals.add(
                await run(source, target, chosen, totals.after, totals.upto, batch, each=True, plan=plan)
            )
    return totals.answer()


async def _resubmit(call: Call) -> dict[str, Any]:
    totals, chosen, messages = _Totals(call.body), wanted(call.body), call.client.admin.messages
    async with call.client.open(call.path["queue"], Access.RECEIVE) as source:
        while totals.going:
            batch, plan = min(totals.left, _BATCH), totals.plan
            totals.add(await messages.resubmit(source, chosen, totals.after, totals.upto, batch, plan=plan))
    return totals.answer()


async def _remove(call: Call) -> dict[str, Any]:
    async with call.client.open(call.path["queue"], Access.RECEIVE) as queue:

        async def batch(wanted: Filter, after: int, upto: int, limit: int, dry_run: bool) -> Done:
            return await call.client.admin.messages.remove(queue, wanted, after, upto, limit, dry_run=dry_run)

        return await _removed(call, batch)


async def _remove_outgoing(call: Call) -> dict[str, Any]:
    async def batch(wanted: Filter, after: int, upto: int, limit: int, dry_run: bool) -> Done:
        return await call.client.admin.messages.remove_outgoing(
            call.path["name"], wanted, after, upto, limit, dry_run=dry_run
        )

    return await _removed(call, batch)


_Remove = Callable[[Filter, int, int, int, bool], Awaitable[Done]]


async def _removed(call: Call, batch: _Remove) -> dict[str, Any]:
    body = call.body
    if not any(name in body for name in FILTER):
        raise bad_request(f"select messages by {', '.join(FILTER)}; to remove all of them, purge the queue")
    totals, chosen = _Totals(body), wanted(body)
    while totals.going:
        totals.add(await batch(chosen, totals.after, totals.upto, min(totals.left, _BATCH), body["dry_run"]))
    return totals.answer()


async def _remove_one(call: Call) -> dict[str, Any]:
    lookup_id, dry_run = call.path["lookup_id"], call.query["dry_run"]
    async with call.client.open(call.path["queue"], Access.RECEIVE) as queue:
        done = await call.client.admin.messages.remove(
            queue, Filter(lookup_ids=(lookup_id,)), dry_run=dry_run
        )
    if not done.count:
        raise done.refused[0].error
    return {"removed": lookup_id, "bytes": done.size, "dry_run": dry_run}


async def _send(call: Call) -> dict[str, Any]:
    body = call.body
    if "body" in body and "body_b64" in body:
        raise bad_request("give body or body_b64, not both")
    content = body["body"].encode() if "body" in body else decoded(body.get("body_b64", ""), "body_b64")
    message = Message(
        content,
        label=body["label"],
        delivery=Delivery.RECOVERABLE if body["recoverable"] else Delivery.EXPRESS,
        priority=body["priority"],
        body_type=body["body_type"],
        app_specific=body["app_specific"],
        extension=decoded(body.get("extension_b64", ""), "extension_b64"),
        response_queue=body.get("response_queue"),
        admin_queue=body.get("admin_queue"),
        acknowledge=body["acknowledge"],
        journal=body["journal"],
        time_to_reach_queue=body["time_to_reach_queue"],
        time_to_be_received=body["time_to_be_received"],
    )
    if body.get("correlation_id"):
        message.correlation_id = bytes.fromhex(body["correlation_id"])
    single = SINGLE_MESSAGE if body["transactional"] else None
    async with call.client.open(call.path["queue"], Access.SEND) as queue:
        return {"count": 1, "message_id": await queue.send(message, transaction=single)}


_DONE: Final = record(
    "BatchResult",
    {
        "count": number("messages that were moved, copied, removed or sent; with `dry_run`: that would be"),
        "bytes": number("size of their packets", most=2**63),
        "refused": {
            "type": "array",
            "items": record(
                "Refused",
                {
                    "code": text("code of the error"),
                    "reason": text("the error in words"),
                    "count": number("messages that stay for this reason"),
                    "lookup_ids": array(number(most=2**64 - 1), f"the first {_NAMED} of them"),
                },
            ),
            "description": "messages that stay, by reason",
        },
        "finished": flag("all selected messages were handled; false: `limit` was reached"),
        "dry_run": flag("whether nothing was changed"),
    },
)
_BASE64: Final = (MAX_MESSAGE + 2) // 3 * 4


def _batch(verb: str, summary: str, handler: Any, cli: str, body: dict[str, Any], *needed: str) -> Operation:
    return Operation(
        f"messages.{verb}",
        "POST",
        f"/queues/{{queue}}/messages/{verb}",
        summary,
        handler,
        _DONE,
        verb=cli,
        path_parameters=(QUEUE,),
        body=record(f"{verb.title()}Messages", body, *needed),
    )


_REMOVAL: Final = (
    "The body must select messages by at least one property. Senders that asked for it get a negative "
    "acknowledgment. `refused` names the lookup ids of the selection that were not removed."
)

OPERATIONS: Final = [
    _batch(
        "move",
        "Move the selected messages to another queue",
        _move,
        "queue move",
        {"target": _TARGET, **_FIELDS},
        "target",
    ),
    _batch(
        "copy",
        "Copy the selected messages to another queue",
        _copy,
        "queue copy",
        {"target": _TARGET, **_FIELDS},
        "target",
    ),
    _batch(
        "resubmit",
        "Send the selected dead letters to their destinations again",
        _resubmit,
        "dlq resubmit",
        {**_FIELDS},
    ),
    Operation(
        "messages.remove",
        "DELETE",
        "/queues/{queue}/messages/{lookup_id}",
        "Remove one message",
        _remove_one,
        record(
            "RemovedMessage",
            {
                "removed": number("lookup id of the message", most=2**64 - 1),
                "bytes": number("size of its packet"),
                "dry_run": flag("whether nothing was changed"),
            },
        ),
        verb="queue purge",
        about="Its sender gets a negative acknowledgment if it asked for one.",
        path_parameters=(QUEUE, LOOKUP_ID),
        parameters=(Parameter("dry_run", flag("tell what would happen, and change nothing", default=False)),),
    ),
    replace(
        _batch("remove", "Remove the selected messages", _remove, "queue purge", {**_FIELDS}),
        name="messages.remove_selected",
        about=_REMOVAL,
    ),
    Operation(
        "outgoing.remove_selected",
        "POST",
        "/outgoing/{name}/messages/remove",
        "Remove the selected messages of an outgoing queue",
        _remove_outgoing,
        _DONE,
        verb="outgoing purge",
        about=_REMOVAL,
        path_parameters=(OUTGOING,),
        body=record("RemoveOutgoingMessages", {**_FIELDS}),
    ),
    Operation(
        "messages.send",
        "POST",
        "/queues/{queue}/messages",
        "Send one message to a queue, local or of another computer",
        _send,
        record("Sent", {"count": number(), "message_id": text(r"`{GUID}\ORDINAL`")}),
        verb="send",
        path_parameters=(QUEUE,),
        body=record(
            "NewMessage",
            {
                "body": text("the body as text, stored as UTF-8", most=MAX_MESSAGE),
                "body_b64": text("the body in base64", most=_BASE64),
                "label": text("label", most=MAX_LABEL, default=""),
                "recoverable": flag("kept over a restart", default=False),
                "transactional": flag("sent in a transaction of its own", default=False),
                "priority": number("priority", most=MAX_PRIORITY, default=3),
                "body_type": number("VT_ type of the body", default=0),
                "app_specific": number("a number for the application", default=0),
                "correlation_id": text("40 hexadecimal digits", most=40, pattern="([0-9A-Fa-f]{40})?"),
                "extension_b64": text("the extension in base64", most=_BASE64),
                "response_queue": text("queue for answers", most=1024),
                "admin_queue": text("queue for acknowledgments", most=1024),
                "acknowledge": number("acknowledgment flags", most=255, default=0),
                "journal": number("1: dead letter, 2: journal, 3: both", most=3, default=0),
                "time_to_reach_queue": number("seconds", default=LONG_LIVED),
                "time_to_be_received": number("seconds", default=INFINITE),
            },
        ),
        status=201,
    ),
]
