"""The server that most modules of this folder share: one for each module."""

from collections.abc import Iterator

import pytest

from tests.support.processes.servers import Server, data_directory


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA").start()
        try:
            yield running
        finally:
            running.kill()
