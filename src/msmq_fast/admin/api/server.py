"""Operations on the server as a whole: identity, readiness, counters."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Download, Operation
from msmq_fast.admin.api.schema import anything, flag, number, of, record, text
from msmq_fast.client.supportbundle import Bundle, ask_server
from msmq_fast.protocol.resources import SnapshotInfo

__all__ = ["OPERATIONS"]

_NAME: Final = re.compile(r"[^A-Za-z0-9.-]")  # what the name of a file does not take over from a computer's
_LONGEST_SNAPSHOT: Final = 6 * 3600.0  # seconds


async def _show(call: Call) -> dict[str, Any]:
    client, token, resources = call.client, call.caller.token, call.view.resources()
    return {
        "name": client.computer_name,
        "guid": str(client.guid),
        "software": str(client.hello["server"]),
        "not_ready": call.view.ready() or "",
        "throttled": call.view.throttled(),
        "shortage": call.view.shortage(),
        "started": resources.started,
        "express": {"bytes": resources.express_bytes, "limit": resources.express_limit},
        "disk": {"used": resources.disk_used, "available": resources.disk_available},
        "caller": {"name": call.caller.name, "sid": str(token.user), "administrator": token.administrator},
    }


async def _stats(call: Call) -> dict[str, Any]:
    return await call.client.admin.stats()


async def _reload(call: Call) -> dict[str, Any]:
    return await call.client.admin.reload()


async def _snapshots(call: Call) -> dict[str, Any]:
    progress = await call.client.admin.snapshot_progress()
    running = None if progress is None else {"written": progress[0], "total": progress[1]}
    return {"last": call.view.last_snapshot(), "running": running}


async def _bundle(call: Call) -> Download:
    bundle = Bundle()
    await ask_server(bundle, call.client)
    bundle.add("missing.txt", bundle.missing)
    content = await asyncio.to_thread(bundle.archive)
    return Download(content, f"{_NAME.sub('_', call.client.computer_name)}-support.tar.gz")


async def _snapshot(call: Call) -> dict[str, Any]:
    body = call.body
    return (await call.client.admin.snapshot(body.get("directory"), body.get("bytes_per_second"))).as_map()


OPERATIONS: Final = [
    Operation(
        "server.reload",
        "POST",
        "/server/reload",
        "Read the configuration again",
        _reload,
        anything("Reloaded", "`changed`, `restart` and `warnings`: lists of keys and lines"),
        verb="config reload",
    ),
    Operation(
        "server.snapshot",
        "POST",
        "/server/snapshots",
        "Copy the running store into a new directory of this machine, or into object storage",
        _snapshot,
        of(SnapshotInfo),
        verb="backup create",
        about="The answer comes when the copy is complete; `server.snapshots` shows its progress.",
        patience=_LONGEST_SNAPSHOT,
        body=record(
            "NewSnapshot",
            {
                "directory": text(
                    "absolute path of a directory that does not exist yet; absent: the object storage of "
                    "`backup.url`",
                    least=1,
                ),
                "bytes_per_second": number("limit of the rate", least=1, most=2**32 - 1),
            },
        ),
        status=201,
    ),
    Operation(
        "server.snapshots",
        "GET",
        "/server/snapshots",
        "Show when the last copy of the store was made, and the progress of the one under way",
        _snapshots,
        record(
            "Snapshots",
            {
                "last": number("seconds since 1970; 0 if there was none since the start", most=2**63),
                "running": {
                    **record(
                        "SnapshotProgress", {"written": number(most=2**63), "total": number(most=2**63)}
                    ),
                    "type": ["object", "null"],
                },
            },
        ),
    ),
    Operation(
        "server.bundle",
        "GET",
        "/server/support-bundle",
        "Download the state of the server for its maintainers, without messages and secrets",
        _bundle,
        None,
        verb="support-bundle",
        about="Parts that the caller may not read are named in `missing.txt`.",
    ),
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
                "throttled": text("which resource is used up, so that no messages are accepted; else empty"),
                "shortage": text("a limit that was reached in the last minutes; empty if none was"),
                "started": number("when the server was started, in seconds since 1970", most=2**63),
                "express": record(
                    "ExpressMemory",
                    {
                        "bytes": number("bytes of express messages, held in memory only", most=2**63),
                        "limit": number("bytes above which no messages are accepted", most=2**63),
                    },
                ),
                "disk": record(
                    "Disk",
                    {
                        "used": number("bytes in use in the store", most=2**63),
                        "available": number("bytes that can still be stored", most=2**63),
                    },
                ),
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
