"""The server of a test, as long as the test does not want a special one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes.servers import Server, data_directory


@pytest.fixture
def server() -> Iterator[Server]:
    """Not started yet; killed at the end."""
    with data_directory() as data:
        running = Server(data)
        try:
            yield running
        finally:
            running.kill()
