"""Operations on outgoing queues. The name of an outgoing queue is the format name of its destination."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import OUTGOING, Call, Operation, Parameter
from msmq_fast.admin.api.queues import LIMIT, OFFSET, PAGE, page_of
from msmq_fast.admin.api.schema import array, number, of, record, text
from msmq_fast.protocol.resources import OutgoingQueueInfo, RouteInfo

__all__ = ["OPERATIONS"]


async def _list(call: Call) -> dict[str, Any]:
    pattern = call.query["filter"].casefold()
    found = [one.as_map() for one in await call.client.admin.outgoing.all()]
    chosen = [one for one in found if pattern in one["name"].casefold()]
    chosen.sort(key=lambda one: str(one["name"]).casefold())
    return page_of(chosen, call) | {
        "messages": sum(one["messages"] for one in chosen),
        "bytes": sum(one["bytes"] for one in chosen),
    }


async def _show(call: Call) -> dict[str, Any]:
    return (await call.client.admin.outgoing.get(call.path["name"])).as_map()


async def _pause(call: Call) -> dict[str, Any]:
    await call.client.admin.outgoing.pause(call.path["name"])
    return {"paused": call.path["name"]}


async def _resume(call: Call) -> dict[str, Any]:
    await call.client.admin.outgoing.resume(call.path["name"])
    return {"resumed": call.path["name"]}


async def _kick(call: Call) -> dict[str, Any]:
    return (await call.client.admin.outgoing.kick(call.path["name"])).as_map()


async def _purge(call: Call) -> dict[str, Any]:
    name = call.path["name"]
    return {"purged": await call.client.admin.outgoing.purge(name), "name": name}


async def _delete(call: Call) -> dict[str, Any]:
    await call.client.admin.queues.delete((await call.client.admin.outgoing.get(call.path["name"])).name)
    return {"deleted": call.path["name"]}


async def _explain(call: Call) -> dict[str, Any]:
    return (await call.client.admin.outgoing.explain_route(call.path["name"])).as_map()


def _change(verb: str, summary: str, handler: Any, answer: dict[str, Any]) -> Operation:
    return Operation(
        f"outgoing.{verb}",
        "POST",
        f"/outgoing/{{name}}/{verb}",
        summary,
        handler,
        record(f"Outgoing{verb.title()}", answer),
        verb=f"outgoing {verb}",
        path_parameters=(OUTGOING,),
    )


OPERATIONS: Final = [
    Operation(
        "routes.explain",
        "GET",
        "/routes/{name}",
        "Explain what would happen to a message for a name: queue, next hops, and what stops it",
        _explain,
        of(RouteInfo),
        verb="route explain",
        about="Nothing is sent, and no queue is created.",
        path_parameters=(
            Parameter(
                "name", text("path or format name of the destination, percent-encoded", least=1, most=1024)
            ),
        ),
    ),
    Operation(
        "outgoing.list",
        "GET",
        "/outgoing",
        "List outgoing queues by name, one page at a time",
        _list,
        record(
            "OutgoingPage",
            {
                "items": array(of(OutgoingQueueInfo)),
                **PAGE,
                "messages": number("messages in the queues of all pages", most=2**63),
                "bytes": number("bytes in the queues of all pages", most=2**63),
            },
        ),
        verb="outgoing list",
        parameters=(
            Parameter("filter", text("only queues whose name contains this text", most=249, default="")),
            LIMIT,
            OFFSET,
        ),
    ),
    Operation(
        "outgoing.show",
        "GET",
        "/outgoing/{name}",
        "Show the state of an outgoing queue",
        _show,
        of(OutgoingQueueInfo),
        verb="outgoing show",
        path_parameters=(OUTGOING,),
    ),
    _change("pause", "Stop sending from an outgoing queue", _pause, {"paused": text()}),
    _change("resume", "Send from a paused outgoing queue again", _resume, {"resumed": text()}),
    Operation(
        "outgoing.kick",
        "POST",
        "/outgoing/{name}/kick",
        "Connect now, and send again what the receiver has not acknowledged",
        _kick,
        of(OutgoingQueueInfo),
        verb="outgoing kick",
        about="The answer is the state at the start of the attempt.",
        path_parameters=(OUTGOING,),
    ),
    _change("purge", "Delete the messages that wait", _purge, {"purged": number(), "name": text()}),
    Operation(
        "outgoing.delete",
        "DELETE",
        "/outgoing/{name}",
        "Delete an outgoing queue",
        _delete,
        record("OutgoingDeleted", {"deleted": text()}),
        verb="outgoing delete",
        path_parameters=(OUTGOING,),
    ),
]
