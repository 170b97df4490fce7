"""Operation on the rights of the caller: which actions a user interface offers for a queue."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import QUEUE, Call, Operation
from msmq_fast.admin.api.schema import flag, record
from msmq_fast.protocol.errors import PropertyError

__all__ = ["OPERATIONS", "QUEUE_RIGHTS"]

QUEUE_RIGHTS: Final = ("send", "receive", "peek", "get-properties", "set-properties", "delete")


# The rights on queues that have no access list of their own, by the part of the name after the semicolon. The
# first word is the right to receive, the second that to peek.
_MACHINE_PARTS: Final = {
    "deadletter": ("deadletter", "peek-deadletter"),
    "deadxact": ("deadletter", "peek-deadletter"),
    "journal": ("journal", "peek-journal"),
}
_JOURNAL: Final = ("journal", "peek")


async def _show(call: Call) -> dict[str, Any]:
    access = call.client.admin.access
    owner, _, part = call.path["queue"].partition(";")
    of_machine = not owner or owner.casefold().partition("\\")[2] == "system$"
    if part.casefold() == "journal" or (of_machine and part.casefold() in _MACHINE_PARTS):
        receive, peek = _MACHINE_PARTS[part.casefold()] if of_machine else _JOURNAL
        name = None if of_machine else owner
        found = dict.fromkeys(QUEUE_RIGHTS, False)
        for right, wanted in (("receive", receive), ("peek", peek)):
            found[right] = (await access.explain(name, "", wanted)).granted
        return found
    try:
        # A subqueue has the access list of its queue.
        return {right: (await access.explain(owner, "", right)).granted for right in QUEUE_RIGHTS}
    except PropertyError:  # a queue of the system, which programs cannot open
        return dict.fromkeys(QUEUE_RIGHTS, False)


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
