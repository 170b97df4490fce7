"""Operations on the server as a whole: identity, readiness, counters."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Operation
from msmq_fast.admin.api.schema import anything, flag, record, text

__all__ = ["OPERATIONS"]


async def _show(call: Call) -> dict[str, Any]:
    client, token = call.client, call.caller.token
    return {
        "name": client.computer_name,
        "guid": str(client.guid),
        "software": str(client.hello["server"]),
        "not_ready": call.view.ready() or "",
        "shortage": call.view.shortage(),
        "caller": {"name": call.caller.name, "sid": str(token.user), "administrator": token.administrator},
    }


async def _stats(call: Call) -> dict[str, Any]:
    return await call.client.admin.stats()


OPERATIONS: Final = [
    Operation(
        "server.show",
        "GET",
        "/server",
        "Show the identity and the readiness of the server, and the identity of the caller",
        _show,
        record(
            "Server",
            {
                "name": text("name of the computer"),
                "guid": text("GUID of the queue manager"),
                "software": text("program and version"),
                "not_ready": text("why the server accepts no messages; empty if it does"),
                "shortage": text("a limit that was reached in the last minutes; empty if none was"),
                "caller": record(
                    "Caller",
                    {"name": text(), "sid": text("SID of the account"), "administrator": flag()},
                ),
            },
        ),
    ),
    Operation(
        "server.stats",
        "GET",
        "/server/stats",
        "Show the counters of the server",
        _stats,
        anything("Stats", "counters by name; later versions may add some"),
        verb="stats",
    ),
]
