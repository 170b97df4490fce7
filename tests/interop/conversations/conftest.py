"""Scripted peers and the servers that they speak to."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.captures.capture import Capture
from tests.support.mqqb.peer import Peer
from tests.support.processes.servers import Server, data_directory

_addresses = itertools.count(1)
_album = Capture()


@pytest.fixture(scope="session", autouse=True)
def _capture_file() -> Iterator[None]:
    """With MSMQ_FAST_CAPTURE the conversations of the whole run are written to that file."""
    yield
    if path := os.environ.get("MSMQ_FAST_CAPTURE"):
        _album.write(Path(path))


@pytest.fixture
def peers() -> Iterator[Callable[[], Peer]]:
    """Makes peers, each with an address and a GUID that no other has."""
    made: list[Peer] = []

    def make() -> Peer:
        number = next(_addresses)
        made.append(Peer(f"127.0.{9 + number // 200}.{1 + number % 200}", _album))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture
def peer(peers: Callable[[], Peer]) -> Peer:
    """One peer."""
    return peers()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that the tests of a module share, with the queue `q`."""
    with data_directory() as data:
        running = Server(data).start()
        try:
            running.ok("queue", "create", "q")
            yield running
        finally:
            running.kill()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Starts servers of a test's own, with queues and settings (of [mqqb] by their names alone)."""
    with data_directory() as data:
        made: list[Server] = []

        def run(*queues: str, **settings: object) -> Server:
            directory = data.with_name(f"data{len(made)}")
            environment = {
                f"MSMQ_FAST_{name if '__' in name else 'mqqb__' + name}".upper(): str(value)
                for name, value in settings.items()
            }
            made.append(Server(directory, environment=environment).start())
            for queue in queues:
                made[-1].ok("queue", "create", *queue.split())
            return made[-1]

        yield run
        for server in made:
            server.kill()
