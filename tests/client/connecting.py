"""Clients that are connected to a server in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import wraps
from pathlib import Path

import pytest

import msmq_fast
from tests.client.server import Server, running

Test = Callable[[Server, msmq_fast.Connection], Awaitable[None]]


def connected(test: Test) -> Callable[[Path], None]:
    """Run a test coroutine with a server and a connection."""

    @wraps(test)
    def run(tmp_path: Path) -> None:
        async def main() -> None:
            async with (
                running(tmp_path / "app.sock") as server,
                await msmq_fast.connect(server.path, client="test") as connection,
            ):
                await asyncio.wait_for(test(server, connection), 5)

        asyncio.run(main())

    del run.__wrapped__  # pytest would take the coroutine's parameters for fixtures
    return run


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """The socket of a server in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server(tmp_path / "app.sock")
    asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    yield server.path
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
