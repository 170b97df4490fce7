"""One server for the tests of the bulk API that do not harm it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msmq_fast.client.bulk.client import BulkClient
from tests.support.http import bulk as api
from tests.support.processes.servers import Server

COUNT = 300


@pytest.fixture(scope="session")
def bulk_server() -> Iterator[Server]:
    """With the queues `orders` (COUNT messages of three priorities), `empty` and `guarded`; tests that change
    something make queues of their own.
    """
    with api.serving(users=("reader", "sender", "taker", "nobody")) as server:
        for queue in ("orders", "empty", "guarded"):
            server.ok("queue", "create", queue)
        for priority in (0, 3, 7):
            text = f"body {priority}"
            server.ok(
                *("send", "orders", "--body", text, "--label", f"label {priority}", "--recoverable"),
                *("--priority", str(priority), "--count", str(COUNT // 3)),
            )
        yield server


@pytest.fixture(scope="session")
def bulk(bulk_server: Server) -> BulkClient:
    """A client of that server: as its own user."""
    return api.client(bulk_server)
