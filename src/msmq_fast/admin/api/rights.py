"""Operation on the rights of the caller: which actions a user interface offers for a queue."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import QUEUE, Call, Operation
from msmq_fast.admin.api.schema import flag, record

__all__ = ["OPERATIONS", "QUEUE_RIGHTS"]

QUEUE_RIGHTS: Final = ("send", "receive", "peek", "get-properties", "set-properties", "delete")


async def _show(call: Call) -> dict[str, Any]:
    name, access = call.path["queue"], call.client.admin.access
    return {right: (await access.explain(name, "", right)).granted for right in QUEUE_RIGHTS}


OPERATIONS: Final = [
    Operation(
        "queues.rights",
        "GET",
        "/queues/{queue}/rights",
        "Show which rights the caller has on a queue",
        _show,
        record("QueueRights", {right: flag() for right in QUEUE_RIGHTS}),
        path_parameters=(QUEUE,),
    ),
]
