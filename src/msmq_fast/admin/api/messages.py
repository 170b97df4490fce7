"""Operations on messages of a queue: browse them, show or download one. Browsing never removes a message."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msmq_fast.admin.api.errors import bad_request
from msmq_fast.admin.api.operation import QUEUE, Call, Download, Operation, Parameter
from msmq_fast.admin.api.schema import array, flag, number, of, record, text
from msmq_fast.bodies.preview import preview
from msmq_fast.client.exchange import Filter
from msmq_fast.client.message import ReceivedMessage, parse_message_id
from msmq_fast.client.queue import Queue
from msmq_fast.protocol.errors import MessageAlreadyReceived, MessageLocked, MessageNotFound
from msmq_fast.protocol.frames import MAX_PRIORITY, Access
from msmq_fast.protocol.resources import MessageInfo

__all__ = [
    "FILTER",
    "LOOKUP_ID",
    "OPERATIONS",
    "PAGE",
    "PAGING",
    "SELECTION",
    "identifier",
    "list_messages",
    "wanted",
]

_U64: Final = 2**64 - 1
_SEQUENCE: Final = 2**56 - 1
_PAGE_BYTES: Final = 4 << 20  # of packets that one page examines; one message may be larger
_PREVIEW: Final = 200  # characters
_LONGEST_ID: Final = 64  # characters
_MOST_IDS: Final = 10_000  # the application protocol takes no more

LOOKUP_ID: Final = Parameter("lookup_id", number("lookup id of the message", most=_U64))

FILTER: Final = {
    "label": text("pattern for the label, with * ? and []", most=249),
    "class": number("message class", most=0xFFFF),
    "since": number("earliest arrival, in Unix microseconds; not later than `until`", most=_U64),
    "until": number("latest arrival, in Unix microseconds; it is included", most=_U64),
    "id": text(r"message identifier, `{GUID}\NUMBER` or 40 hexadecimal digits", most=_LONGEST_ID),
    "correlation_id": text("correlation identifier, in the forms of `id`", most=_LONGEST_ID),
    "priority": number("priority", most=MAX_PRIORITY),
    "lookup_ids": array(number(most=_U64), "lookup ids of the messages", least=1, most=_MOST_IDS),
}
"""The properties that select messages; a message must match all that are given."""


def wanted(given: Any) -> Filter:
    """Return the filter for the properties of FILTER; those that are missing or None select everything.
    Raises Refusal (BAD_REQUEST) for a text that is not an identifier, and for an empty range of arrivals.
    """
    since, until = given.get("since"), given.get("until")
    if since is not None and until is not None and since > until:
        raise bad_request("since must not be later than until")
    return Filter(
        given.get("label"),
        given.get("class"),
        since,
        until,
        identifier(given.get("id"), "id"),
        identifier(given.get("correlation_id"), "correlation_id"),
        given.get("priority"),
        tuple(given.get("lookup_ids") or ()) or None,
    )


def identifier(given: str | None, name: str) -> bytes | None:
    """Return the 20 bytes of the identifier in the parameter `name`; None for None. Raises Refusal
    (BAD_REQUEST).
    """
    if given is None:
        return None
    try:
        return parse_message_id(given)
    except ValueError as error:
        raise bad_request(f"{name}: {error}") from None


async def list_messages(call: Call) -> dict[str, Any]:
    """Return the page of messages of a queue that the path and the query of `call` select."""
    query = call.query
    async with call.client.open(call.path["queue"], Access.PEEK) as queue:
        found: list[ReceivedMessage] = []
        after, upto, finished, locked, size = query["after"], query["upto"], False, 0, 0
        while not finished and len(found) < query["limit"] and size < _PAGE_BYTES:
            page = await call.client.admin.messages.browse(
                queue, wanted(query), after, upto, query["limit"] - len(found)
            )
            after, upto, finished, locked = page.next, page.upto, page.finished, page.locked
            size += sum(len(one.packet) for one in page.messages)
            read = await asyncio.gather(*(_look(queue, one.lookup_id) for one in page.messages))
            found += [message for message in read if message is not None]
    rows = [one.to_json() if query["bodies"] else _row(one) for one in found]
    return {"items": rows, "next": after, "upto": upto, "finished": finished, "locked": locked}


async def _look(queue: Queue, lookup_id: int) -> ReceivedMessage | None:
    """Return a message; None if a reader has taken or locked it since the batch was read."""
    try:
        return await queue.lookup(lookup_id)
    except (MessageNotFound, MessageAlreadyReceived, MessageLocked):
        return None


def _row(message: ReceivedMessage) -> dict[str, Any]:
    row: dict[str, Any] = {**message.to_json()}
    del row["body_b64"], row["extension_b64"]
    return row | {"preview": preview(bytes(message.body), message.body_type, _PREVIEW)}


async def _show(call: Call) -> dict[str, Any]:
    async with call.client.open(call.path["queue"], Access.PEEK) as queue:
        message = await queue.lookup(call.path["lookup_id"])
    return {**message.to_json()}


async def _body(call: Call) -> Download:
    async with call.client.open(call.path["queue"], Access.PEEK) as queue:
        message = await queue.lookup(call.path["lookup_id"])
    return Download(bytes(message.body), f"message-{message.lookup_id}.bin")


async def _packet(call: Call) -> Download:
    lookup_id = call.path["lookup_id"]
    chosen = Filter(lookup_ids=(lookup_id,))
    async with call.client.open(call.path["queue"], Access.PEEK) as queue:
        after, upto, finished = 0, 0, False
        while not finished:
            page = await call.client.admin.messages.browse(queue, chosen, after, upto, 1)
            after, upto, finished = page.next, page.upto, page.finished
            for message in page.messages:
                return Download(message.packet, f"message-{lookup_id}.packet")
    raise MessageNotFound(f"the queue has no message {lookup_id} that no reader has locked")


_MESSAGE: Final = of(MessageInfo)
_ROW: Final = record(
    "MessageRow",
    {
        **_MESSAGE["properties"],
        "preview": text(f"the first {_PREVIEW} characters of the body", most=_PREVIEW),
    },
    about="A message; `body_b64` and `extension_b64` are there only with `bodies`, `preview` only without.",
)

PAGE: Final = record(
    "MessagePage",
    {
        "items": array(_ROW),
        "next": number("pass this as `after` for the next page", most=_SEQUENCE),
        "upto": number("pass this as `upto`, to leave out later messages", most=_SEQUENCE),
        "finished": flag("there is no further page"),
        "locked": number("messages that a reader has locked, which are not shown"),
    },
)

SELECTION: Final = tuple(
    Parameter(name, schema, schema["type"] == "array") for name, schema in FILTER.items()
)
"""FILTER as parameters of the query string."""

PAGING: Final = (
    Parameter("after", number("arrival number after which to begin", most=_SEQUENCE, default=0)),
    Parameter("upto", number("last arrival number; 0: the newest now", most=_SEQUENCE, default=0)),
    Parameter("limit", number("most messages of one page", least=1, most=1000, default=50)),
    Parameter("bodies", flag("with whole bodies instead of previews", default=False)),
)
"""The parameters of a page of messages."""

OPERATIONS: Final = [
    Operation(
        "messages.list",
        "GET",
        "/queues/{queue}/messages",
        "Browse the messages of a queue in the order of arrival",
        list_messages,
        PAGE,
        verb="peek",
        about="Messages stay in the queue. A page may have fewer messages than `limit`, or none: continue "
        "until `finished` is true.",
        path_parameters=(QUEUE,),
        parameters=(
            *SELECTION,
            *PAGING,
        ),
    ),
    Operation(
        "messages.show",
        "GET",
        "/queues/{queue}/messages/{lookup_id}",
        "Show one message with its body",
        _show,
        _MESSAGE,
        verb="peek",
        path_parameters=(QUEUE, LOOKUP_ID),
    ),
    Operation(
        "messages.body",
        "GET",
        "/queues/{queue}/messages/{lookup_id}/body",
        "Download the body of a message",
        _body,
        None,
        verb="peek",
        path_parameters=(QUEUE, LOOKUP_ID),
    ),
    Operation(
        "messages.packet",
        "GET",
        "/queues/{queue}/messages/{lookup_id}/packet",
        "Download the UserMessage packet of a message",
        _packet,
        None,
        about="The packet (MS-MQMQ 2.2.20) is what MS-MQQB carries: all headers, and the body.",
        path_parameters=(QUEUE, LOOKUP_ID),
    ),
]
