"""Two server processes: one has a queue, the other reads it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.support.processes.servers import Server, command, data_directory

HOST, READER_HOST = "127.0.0.2", "127.0.0.3"
NAME = rf"DIRECT=TCP:{HOST}\private$\orders"
PASSWORD = "correct horse"  # noqa: S105 - of a user of the test


@contextlib.contextmanager
def computers(
    environment: dict[str, str] | None = None,
    reading: dict[str, str] | None = None,
    owner_flags: tuple[str, ...] = (),
) -> Iterator[tuple[Server, Server]]:
    """One server with the queue `orders` and a user who may read it, and one that reads as that user."""
    with data_directory() as data, data_directory() as other:
        owner = Server(data, "--name", "OWNER", *owner_flags, host=HOST, environment=environment).start()
        added = command("user", "add", "reader", "--data", str(data), stdin=f"{PASSWORD}\n".encode())
        assert added.returncode == 0, added
        secret = other.parent / "password"
        secret.write_text(f"{PASSWORD}\n")
        remote = {
            "MSMQ_FAST_REMOTE__EPM_PORT": owner.ready["epm"].rpartition(":")[2],
            "MSMQ_FAST_REMOTE__USER": "reader",
            "MSMQ_FAST_REMOTE__PASSWORD_FILE": str(secret),
            **(reading or {}),
        }
        reader = Server(other, "--name", "READER", host=READER_HOST, environment=remote).start()
        try:
            owner.ok("queue", "create", "orders")
            owner.ok("acl", "grant", "orders", "--user", "reader", "--right", "all")
            yield owner, reader
        finally:
            reader.kill()
            owner.kill()
