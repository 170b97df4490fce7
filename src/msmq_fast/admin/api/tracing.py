"""Operations that find out what happened to messages: the trace of one message, and the dead letters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from msmq_fast.admin.api.errors import bad_request
from msmq_fast.admin.api.messages import FILTER, PAGING, identifier, list_messages
from msmq_fast.admin.api.messages import PAGE as MESSAGE_PAGE
from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.schema import array, number, of, record, text
from msmq_fast.client.places import places_of
from msmq_fast.protocol.classes import parse_class
from msmq_fast.protocol.resources import MessageEvent
from msmq_fast.protocol.verdicts import Verdict, verdict_of

__all__ = ["OPERATIONS"]

_DEAD_LETTERS: Final = r".\system$;deadletter"


async def _trace(call: Call) -> dict[str, Any]:
    wanted = identifier(call.path["message_id"], "message_id")
    assert wanted is not None  # noqa: S101 - a path has all its parameters
    events = await call.client.admin.trace(wanted)
    places = await places_of(call.client, wanted, events)
    return {
        "events": [event.as_map() for event in events],
        "places": places,
        "verdict": verdict_of(events, places).as_map(),
    }


async def _dead_letters(call: Call) -> dict[str, Any]:
    reason = call.query["reason"]
    try:
        chosen = parse_class(reason) if reason is not None else None
    except ValueError:
        raise bad_request("reason must be a message class, such as NACK_Q_PURGED or 0xC001") from None
    query = {**call.query, "class": chosen}
    return await list_messages(replace(call, path={"queue": query["queue"]}, query=query))


_PLACE: Final = record(
    "Place",
    {
        "queue": text("the queue that holds the message"),
        "queue_kind": text("the kind of this queue"),
        "lookup_id": number("its lookup id there", most=2**64 - 1),
        "state": text("why it waits, or why the queue cannot be read; else empty"),
        "stalled": text("the cause of the stall of an outgoing queue; else empty"),
    },
)

OPERATIONS: Final = [
    Operation(
        "trace.show",
        "GET",
        "/trace/{message_id}",
        "Show what happened to a message, where it is, and the conclusion",
        _trace,
        record(
            "Trace",
            {"events": array(of(MessageEvent)), "places": array(_PLACE), "verdict": of(Verdict)},
        ),
        verb="trace",
        about="Reads the event feed, as far back as it reaches; unlike the command, searches no queues.",
        path_parameters=(Parameter("message_id", FILTER["id"]),),
    ),
    Operation(
        "dlq.list",
        "GET",
        "/dead-letters",
        "Browse the dead letters of a queue by their reason, in the order of arrival",
        _dead_letters,
        MESSAGE_PAGE,
        verb="dlq list",
        parameters=(
            Parameter(
                "queue",
                text(
                    r"queue with dead letters, such as `.\system$;deadxact`",
                    least=1,
                    most=1024,
                    default=_DEAD_LETTERS,
                ),
            ),
            Parameter("reason", text("name or number of the class that gives the reason", most=64)),
            *(
                Parameter(name, schema, schema["type"] == "array")
                for name, schema in FILTER.items()
                if name != "class"
            ),
            *PAGING,
        ),
    ),
]
