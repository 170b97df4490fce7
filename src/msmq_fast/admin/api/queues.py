"""Operations on queues of this computer: list, show, create, change, delete, purge."""

from __future__ import annotations

from typing import Any, Final, cast

from msmq_fast.admin.api.errors import bad_request
from msmq_fast.admin.api.operation import QUEUE, Call, Operation, Parameter
from msmq_fast.admin.api.schema import array, choice, flag, number, of, record, text
from msmq_fast.protocol.frames import Access, Frame
from msmq_fast.protocol.resources import QueueInfo, QueueProperties
from msmq_fast.protocol.versions import queue_settings

__all__ = ["NAME", "OPERATIONS", "PAGE", "PROPERTIES", "page_of"]

MAX_PAGE: Final = 1000
_KINDS: Final = ("user", "system", "subqueue", "journal")
_SORTS: Final = ("name", "messages", "bytes", "oldest", "in_per_second", "out_per_second")

LIMIT: Final = Parameter("limit", number("most items of one page", least=1, most=MAX_PAGE, default=100))
OFFSET: Final = Parameter("offset", number("items to leave out before the page", default=0))
PAGE: Final = {
    "total": number("items on all pages"),
    "offset": number("items before this page"),
    "limit": number("most items of one page"),
}

PROPERTIES: Final = of(QueueProperties)["properties"] | {
    name: number(least=0) for name in ("quota_kb", "journal_quota_kb", "poison_after")
}
NAME: Final = text(r"path of the queue, such as `.\private$\orders` or `orders`", least=1, most=1024)


def page_of(items: list[Any], call: Call) -> dict[str, Any]:
    """Return the page of a list that the parameters `offset` and `limit` of a call select."""
    offset, limit = call.query["offset"], call.query["limit"]
    return {
        "items": items[offset : offset + limit],
        "total": len(items),
        "offset": offset,
        "limit": limit,
    }


async def _list(call: Call) -> dict[str, Any]:
    query = call.query
    # The maps of the reply as they are: the client's classes would add the fields that are not wanted.
    names = ("kind", "filter", "glob", "sort", "descending", "limit", "offset", "fields", "rights")
    found = await call.client.request(Frame.PAGE_QUEUES, [query[name] for name in names])
    items = found.pop("queues")
    return {"items": items, **found, "offset": query["offset"], "limit": query["limit"]}


async def _show(call: Call) -> dict[str, Any]:
    return (await call.client.admin.queues.get(call.path["queue"])).as_map()


async def _create(call: Call) -> dict[str, Any]:
    properties = dict(call.body)
    name = properties.pop("name")
    return (await call.client.admin.queues.create(name, **cast(QueueProperties, properties))).as_map()


async def _set(call: Call) -> dict[str, Any]:
    if not call.body:
        raise bad_request("the body must name a property to change")
    return (
        await call.client.admin.queues.set(call.path["queue"], expected=call.expected, **call.body)
    ).as_map()


async def _delete(call: Call) -> dict[str, Any]:
    name = call.path["queue"]
    await call.client.admin.queues.delete(name, expected=call.expected)
    return {"deleted": name}


async def _purge(call: Call) -> dict[str, Any]:
    name = call.path["queue"]
    async with call.client.open(name, Access.RECEIVE) as queue:
        return {"purged": await queue.purge(call.expected), "name": name}


_ROW: Final = record(
    "QueueRow",
    {
        **of(QueueInfo)["properties"],
        "may_peek": flag("whether the caller may browse the messages; only with `rights`"),
    },
    about="The properties and counts of a queue.",
)

OPERATIONS: Final = [
    Operation(
        "queues.list",
        "GET",
        "/queues",
        "List queues, one page at a time",
        _list,
        record(
            "QueuePage",
            {
                "items": array(_ROW),
                **PAGE,
                "messages": number("messages in the queues of all pages", most=2**63),
                "bytes": number("bytes in the queues of all pages", most=2**63),
            },
        ),
        verb="queue list",
        about="`total`, `messages` and `bytes` count every queue that matches, on all pages.",
        parameters=(
            Parameter("kind", choice(_KINDS, "which queues", default="user")),
            Parameter("filter", text("only queues whose name contains this text", most=249, default="")),
            Parameter(
                "glob",
                text(
                    "only queues whose name, with or without the computer and `private$`, matches a pattern "
                    "with * ? and []",
                    most=249,
                    default="",
                ),
            ),
            Parameter(
                "sort",
                choice(
                    _SORTS, "order of the list; `oldest` by the age of the oldest message", default="name"
                ),
            ),
            Parameter("descending", flag("the largest first", default=False)),
            Parameter(
                "fields",
                array(
                    choice(tuple(of(QueueInfo)["properties"])),
                    "only these fields of each queue; repeat the parameter for each",
                    most=len(of(QueueInfo)["properties"]),
                ),
                many=True,
            ),
            Parameter(
                "rights",
                flag("also tell of each queue whether the caller may browse its messages", default=False),
            ),
            LIMIT,
            OFFSET,
        ),
    ),
    Operation(
        "queues.show",
        "GET",
        "/queues/{queue}",
        "Show the properties and counts of a queue",
        _show,
        of(QueueInfo),
        verb="queue show",
        path_parameters=(QUEUE,),
        version=queue_settings,
    ),
    Operation(
        "queues.create",
        "POST",
        "/queues",
        "Create a queue",
        _create,
        of(QueueInfo),
        verb="queue create",
        body=record("NewQueue", {"name": NAME, **PROPERTIES}, "name"),
        status=201,
    ),
    Operation(
        "queues.set",
        "PATCH",
        "/queues/{queue}",
        "Change properties of a queue",
        _set,
        of(QueueInfo),
        verb="queue set",
        path_parameters=(QUEUE,),
        body=record("QueueProperties", PROPERTIES),
        locked_by="queues.show",
    ),
    Operation(
        "queues.delete",
        "DELETE",
        "/queues/{queue}",
        "Delete a queue and its messages",
        _delete,
        record("Deleted", {"deleted": text("the name that was given")}),
        verb="queue delete",
        path_parameters=(QUEUE,),
        locked_by="queues.show",
    ),
    Operation(
        "queues.purge",
        "POST",
        "/queues/{queue}/purge",
        "Delete the messages of a queue",
        _purge,
        record("Purged", {"purged": {"type": ["integer", "null"]}, "name": text("the name that was given")}),
        verb="queue purge",
        about="`purged` is null for a queue of another computer, which does not report the number.",
        path_parameters=(QUEUE,),
        locked_by="queues.show",
    ),
]
