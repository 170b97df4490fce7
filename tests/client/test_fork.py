"""Programs that fork, as multiprocessing does: the child connects anew, the parent goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.processes.servers import Server, data_directory, inherited

PROGRAM = """
import os, sys
from msmq_fast import ConnectionLost, sync

endpoint = sys.argv[1]
lasting = sys.argv[2] == "True"
with sync.connect(endpoint, reconnect=lasting) as connection, connection.open("q") as queue:
    queue.send(b"parent")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                queue.send(b"by the connection of the parent")
            except ConnectionLost as lost:
                print(lost.detail, flush=True)
            with sync.connect(endpoint, timeout=10) as own, own.open("q") as mine:
                mine.send(b"child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    queue.send(b"parent again")
    print([queue.receive(5).body for _ in range(3)], flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data).start()
        running.ok("queue", "create", "q")
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize("lasting", [False, True])
def test_a_forked_child_has_connections_of_its_own(server: Server, lasting: bool) -> None:
    """Also of a connection that reconnects: in the child it does not."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, server.endpoint, str(lasting)],
        capture_output=True,
        text=True,
        timeout=60,
        env=inherited(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "this connection belongs to the parent process: connect again after a fork",
        "[b'parent', b'child', b'parent again']",
    ]
