"""Operations on the directory. An object is a map of its attributes, which depend on its type."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.schema import anything, array, choice, number, record, text
from msmq_fast.directory.objecttypes import ObjectType

__all__ = ["OPERATIONS"]

_TYPE: Final = choice(tuple(kind.title for kind in ObjectType), "type of the objects")
_OBJECT: Final = anything("DirectoryObject", "`object`, the type, and the attributes")


async def _list(call: Call) -> dict[str, Any]:
    query = call.query
    items = await call.client.admin.directory.all(call.path["type"], query["after"], query["limit"])
    return {"items": items}


async def _show(call: Call) -> dict[str, Any]:
    return await call.client.admin.directory.get(call.path["type"], call.path["name"])


OPERATIONS: Final = [
    Operation(
        "directory.list",
        "GET",
        "/directory/{type}",
        "List the objects of a type in the order of their GUIDs, one page at a time",
        _list,
        record("DirectoryPage", {"items": array(_OBJECT)}),
        verb="directory list",
        path_parameters=(Parameter("type", _TYPE),),
        parameters=(
            Parameter("after", text("GUID after which to begin; empty: from the start", most=64, default="")),
            Parameter("limit", number("most objects of one page", least=1, most=1000, default=100)),
        ),
    ),
    Operation(
        "directory.show",
        "GET",
        "/directory/{type}/{name}",
        "Show one object",
        _show,
        _OBJECT,
        verb="directory show",
        path_parameters=(
            Parameter("type", _TYPE),
            Parameter("name", text("name, path, format name or GUID of the object", least=1, most=1024)),
        ),
    ),
]
