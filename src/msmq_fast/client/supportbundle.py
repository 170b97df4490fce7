"""The archive with the state of a server, for its maintainers: what the server tells about itself.

The command `support-bundle` adds what it finds on the machine; the management API offers the archive as a
download.
"""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from msmq_fast.client.connection import Connection
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.protocol.errors import MSMQError

__all__ = ["LARGEST", "Bundle", "ask_server", "json_line"]

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of one file; a longer one ends after its last whole line."""
_AUDIT_ENTRIES: Final = 1000  # the newest ones
_SESSIONS: Final = 1000
_FOLDER: Final = "msmq-fast-support"


class Bundle:
    """The files of an archive, held in memory: at most `LARGEST` bytes each. `missing` has one line for each
    file or part that could not be had.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.missing: list[str] = []

    def add(self, name: str, lines: Iterable[str]) -> None:
        """Add a text file; the lines have no line ends. Lines beyond the size limit are left out."""
        found = bytearray()
        for line in lines:
            encoded = line.encode("utf-8", "backslashreplace") + b"\n"
            if len(found) + len(encoded) > LARGEST:
                self.missing.append(f"{name}: ends after {LARGEST} bytes")
                break
            found += encoded
        self.files[name] = bytes(found)

    def archive(self) -> bytes:
        """Return the files as a compressed tar archive."""
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w:gz") as archive:
            for name, content in self.files.items():
                entry = tarfile.TarInfo(f"{_FOLDER}/{name}")
                entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
                archive.addfile(entry, io.BytesIO(content))
        return target.getvalue()


async def ask_server(bundle: Bundle, connection: Connection) -> None:
    """Add the files about which a server is asked. Raises ConnectionLost."""
    admin = connection.admin

    async def stats() -> list[object]:
        return [await admin.stats()]

    async def queues() -> list[object]:
        return [queue.as_map() for queue in await admin.queues.all("all")]

    async def outgoing() -> list[object]:
        return [queue.as_map() for queue in await admin.outgoing.all()]

    async def sessions() -> list[object]:
        return [one.as_map() for one in (await admin.sessions.page(limit=_SESSIONS)).sessions]

    async def transactions() -> list[object]:
        return [one.as_map() for one in await admin.transactions.all()]

    async def audit() -> list[object]:
        found: list[object] = []
        start, finished = 0, False
        while not finished and len(found) < _AUDIT_ENTRIES:
            page = await admin.audit.page(start, newest_first=True)
            found += [entry.as_map() for entry in page.entries]
            start, finished = page.next, page.finished
        return found[:_AUDIT_ENTRIES]

    server = {
        "version": str(connection.hello["server"]),
        "name": connection.computer_name,
        "guid": str(connection.guid),
    }
    bundle.add("server.json", [json_line(server)])
    parts: dict[str, Callable[[], Awaitable[list[object]]]] = {
        "stats.json": stats,
        "queues.jsonl": queues,
        "outgoing.jsonl": outgoing,
        "sessions.jsonl": sessions,
        "transactions.jsonl": transactions,
        "audit.jsonl": audit,
    }
    for name, part in parts.items():
        try:
            bundle.add(name, map(json_line, await part()))
        except ConnectionLost:
            raise
        except MSMQError as error:  # such as missing rights: the other parts may still be allowed
            bundle.missing.append(f"{name}: {error}")


def json_line(content: object) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(content, default=str)
