"""Operations on definitions: queues, access lists and directory objects as one document."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.changes import CHANGES, DRY_RUN, changes_of
from msmq_fast.admin.api.directory import OBJECT
from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.queues import NAME, PROPERTIES
from msmq_fast.admin.api.schema import array, flag, number, record, text
from msmq_fast.protocol.definitions import FORMAT, MOST, VERSION

__all__ = ["OPERATIONS"]

_SDDL: Final = text("a security descriptor in SDDL", most=65_536)


async def _export(call: Call) -> dict[str, Any]:
    return await call.client.admin.definitions.export()


async def _import(call: Call) -> dict[str, Any]:
    dry_run = call.query["dry_run"]
    changes = await call.client.admin.definitions.put(call.body, dry_run=dry_run, delete=call.query["delete"])
    return changes_of(changes, dry_run=dry_run)


_VERSION: Final = number("version of the document", least=VERSION, most=VERSION)
_QUEUE: Final = record("QueueDefinition", {"name": NAME, **PROPERTIES, "security": _SDDL}, "name")
_DOCUMENT: Final = record(
    "Definitions",
    {
        FORMAT: _VERSION,
        "queue_manager": record("QueueManagerDefinition", {"security": _SDDL}, "security"),
        "queues": array(_QUEUE, most=MOST),
        "directory": array(OBJECT, most=MOST),
    },
    FORMAT,
    about="A section that is missing is left alone.",
)

OPERATIONS: Final = [
    Operation(
        "definitions.export",
        "GET",
        "/definitions",
        "Export queues, access lists and directory objects",
        _export,
        _DOCUMENT,
        verb="definitions export",
        about="The document has no messages and no secrets. The order is always the same.",
    ),
    Operation(
        "definitions.import",
        "POST",
        "/definitions",
        "Create and change objects as a document defines them",
        _import,
        CHANGES,
        verb="definitions import",
        about="An entry that fails does not stop the others. The same import a second time changes nothing.",
        parameters=(
            DRY_RUN,
            Parameter(
                "delete",
                flag(
                    "also delete queues, with their messages, and directory objects that the document does "
                    "not have, if it has their section",
                    default=False,
                ),
            ),
        ),
        body=_DOCUMENT,
    ),
]
