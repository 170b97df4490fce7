"""Operations on the directory. An object is a map of its attributes, which depend on its type."""

from __future__ import annotations

import re
from typing import Any, Final

from msmq_fast.admin.api.changes import CHANGES, DRY_RUN, changes_of
from msmq_fast.admin.api.errors import bad_request
from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.schema import anything, array, choice, number, record, text
from msmq_fast.directory.document import FORMAT, VERSION, entry_of, read_document
from msmq_fast.directory.objects import IDENTIFIER, RULES, attribute_kind
from msmq_fast.directory.objecttypes import BY_TITLE, ObjectType
from msmq_fast.directory.values import value_of_text
from msmq_fast.protocol.definitions import MOST
from msmq_fast.protocol.text import quoted

__all__ = ["OBJECT", "OPERATIONS"]

_TITLES: Final = tuple(kind.title for kind in ObjectType)
_TYPE: Final = Parameter("type", choice(_TITLES, "type of the objects"))
_NAME: Final = Parameter("name", text("name, path, format name or GUID of the object", least=1, most=1024))
_MOST_CONDITIONS: Final = 8
_WHERE: Final = Parameter(
    "where",
    array(
        text("condition", least=1, most=1024),
        "only objects that meet this condition: an attribute, one of = != < > <= >=, and a value, such as "
        "`Label=Order entry` or `Transactional=true`. Text is compared without regard to case; a list meets "
        "a condition by one of its members. Given several times, all conditions must be met",
        most=_MOST_CONDITIONS,
    ),
    many=True,
)
_CONDITION: Final = re.compile(r"([A-Za-z0-9]+)(!=|<=|>=|=|<|>)(.*)", re.DOTALL)
_ATTRIBUTES: Final = anything("DirectoryAttributes", "attributes of the type by their names in MS-MQDMPR")

OBJECT: Final = anything("DirectoryObject", "`object`, the type, and the attributes")


async def _list(call: Call) -> dict[str, Any]:
    query = call.query
    kind = BY_TITLE[call.path["type"].casefold()]
    where = [_condition(kind, one) for one in query["where"]]
    items = await call.client.admin.directory.all(kind.title, query["after"], query["limit"], where)
    return {"items": items}


def _condition(kind: ObjectType, given: str) -> tuple[str, str, Any]:
    """Return a condition as `DirectoryAdmin.all` takes it. Raises Refusal (BAD_REQUEST)."""
    matched = _CONDITION.fullmatch(given)
    if matched is None:
        raise bad_request(
            f"{quoted(given)} is not a condition: expected an attribute, an operator and a value, such as "
            "Label=Orders"
        )
    name, operator, word = matched.groups()
    try:
        known = attribute_kind(kind, name)
        if known.many:  # a condition is about one member
            (value,) = known.to_json(known.from_json([word]))
        else:
            value = known.to_json(value_of_text(known, word))
    except ValueError as error:
        raise bad_request(f"where: {name}: {error}") from None
    return name, operator, value


async def _show(call: Call) -> dict[str, Any]:
    return await call.client.admin.directory.get(call.path["type"], call.path["name"])


def _given(call: Call) -> dict[str, Any]:
    """Return the entry that the path and the body of a call describe. Raises Refusal (BAD_REQUEST)."""
    if "object" in call.body:
        raise bad_request("the path has the type of the object: leave out object")
    return {"object": call.path["type"], **call.body}


async def _create(call: Call) -> dict[str, Any]:
    entry = _given(call)
    await call.client.admin.directory.put(entry, "create")
    unique = RULES[BY_TITLE[call.path["type"].casefold()]].unique[0]
    return {"created": entry.get(unique) or call.path["type"]}


async def _set(call: Call) -> dict[str, Any]:
    entry = _given(call)
    if not call.body:
        raise bad_request("the body must name an attribute to change")
    rules = RULES[BY_TITLE[call.path["type"].casefold()]]
    for name in call.body:
        if name in (*rules.fixed, *rules.computed, IDENTIFIER):
            raise bad_request(f"{name} of a {call.path['type']} cannot be set")
    identifier = (await _show(call))[IDENTIFIER]
    await call.client.admin.directory.put({**entry, IDENTIFIER: identifier}, "set")
    return await call.client.admin.directory.get(call.path["type"], identifier)


async def _delete(call: Call) -> dict[str, Any]:
    await call.client.admin.directory.delete(call.path["type"], call.path["name"])
    return {"deleted": call.path["name"]}


async def _import(call: Call) -> dict[str, Any]:
    kinds = [BY_TITLE[title.casefold()] for title in call.query["type"]] or None
    items, mistakes = read_document(call.body, kinds)
    if mistakes:
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        raise bad_request(mistakes[0] + more)
    dry_run = call.query["dry_run"]
    entries = [entry_of(item) for item in items]
    return changes_of(
        await call.client.admin.definitions.put_objects(entries, dry_run=dry_run), dry_run=dry_run
    )


OPERATIONS: Final = [
    Operation(
        "directory.import",
        "POST",
        "/directory",
        "Create and change objects as a document of `directory export` has them",
        _import,
        CHANGES,
        verb="directory import",
        about="An object that fails does not stop the others. The same import a second time changes nothing.",
        parameters=(
            DRY_RUN,
            Parameter("type", array(choice(_TITLES), "only objects of these types"), many=True),
        ),
        body=record(
            "DirectoryDocument",
            {
                FORMAT: number("version of the document", least=VERSION, most=VERSION),
                "objects": array(OBJECT, most=MOST),
            },
            FORMAT,
            "objects",
        ),
    ),
    Operation(
        "directory.list",
        "GET",
        "/directory/{type}",
        "List the objects of a type in the order of their GUIDs, one page at a time",
        _list,
        record("DirectoryPage", {"items": array(OBJECT)}),
        verb="directory list",
        path_parameters=(_TYPE,),
        parameters=(
            Parameter("after", text("GUID after which to begin; empty: from the start", most=64, default="")),
            Parameter("limit", number("most objects of one page", least=1, most=1000, default=100)),
            _WHERE,
        ),
    ),
    Operation(
        "directory.create",
        "POST",
        "/directory/{type}",
        "Create an object",
        _create,
        record("DirectoryCreated", {"created": text("name of the object")}),
        verb="directory create",
        about="A Queue of this computer becomes a queue.",
        path_parameters=(_TYPE,),
        body=_ATTRIBUTES,
        status=201,
    ),
    Operation(
        "directory.show",
        "GET",
        "/directory/{type}/{name}",
        "Show one object",
        _show,
        OBJECT,
        verb="directory show",
        path_parameters=(_TYPE, _NAME),
    ),
    Operation(
        "directory.set",
        "PATCH",
        "/directory/{type}/{name}",
        "Change attributes of an object",
        _set,
        OBJECT,
        verb="directory set",
        path_parameters=(_TYPE, _NAME),
        body=_ATTRIBUTES,
    ),
    Operation(
        "directory.delete",
        "DELETE",
        "/directory/{type}/{name}",
        "Delete an object; a Queue of this computer with its messages",
        _delete,
        record("DirectoryDeleted", {"deleted": text("the name that was given")}),
        verb="directory delete",
        path_parameters=(_TYPE, _NAME),
    ),
]
