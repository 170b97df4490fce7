"""One running server for the tests of the management API; each test uses queues of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes.servers import Server, data_directory


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, environment={"MSMQ_FAST_SERVER__NAME": "ORDERS01"})
        try:
            yield running.start()
        finally:
            running.kill()
