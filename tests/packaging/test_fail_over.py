"""Fail-over with fencing: the commands of docs/how-to/fail-over.md, typed under traffic both ways."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.packaging.containers import ROOT, Container, Engine
from tests.support.processes.guides import blocks
from tests.support.processes.servers import until

PAGE = ROOT / "docs" / "how-to" / "fail-over.md"
STOP = "/var/lib/msmq-fast/stop"
# Sends numbers, each in a transaction, until the file STOP is there; prints each that is committed.
SENDING = rf"""
import os, sys
from itertools import count
from msmq_fast import SINGLE_MESSAGE, Access, sync
with sync.connect() as connection, connection.open(sys.argv[1], Access.SEND) as queue:
    for number in count(int(sys.argv[2])):
        if os.path.exists({STOP!r}):
            break
        queue.send(b"%d" % number, transaction=SINGLE_MESSAGE)
        print(number, flush=True)
"""
# Takes each message from `orders` to `done` in one transaction. Ends after 3 s without any.
WORKING = r"""
from msmq_fast import Access, errors, sync
with (
    sync.connect() as connection,
    connection.open("orders", Access.RECEIVE) as source,
    connection.open("done", Access.SEND) as target,
):
    try:
        while True:
            with connection.transaction() as transaction:
                message = source.receive(timeout=3, transaction=transaction)
                target.send(message.body, transaction=transaction)
    except errors.IOTimeout:
        pass
"""
RECEIVING = r"""
import sys
from msmq_fast import Access, errors, sync
with sync.connect() as connection, connection.open(sys.argv[1], Access.RECEIVE) as queue:
    try:
        while True:
            print(queue.receive(timeout=0, transaction=None).body.decode())
    except errors.IOTimeout:
        pass
"""
TO_ORDERS = r"DIRECT=OS:mq1\private$\orders"
TO_ANSWERS = r"DIRECT=OS:peer\private$\answers"


class Page:
    """The blocks of commands of the page, in their order."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._blocks: Iterator[tuple[str, str]] = iter(blocks(PAGE, "bash"))

    def type_next(self) -> subprocess.CompletedProcess[str]:
        """Type the commands of the next block; each must succeed for the next one to be typed."""
        _, block = next(self._blocks)
        path = f"{self._engine.programs}:{self._engine.environment['PATH']}"
        return subprocess.run(
            ["bash", "-e", "-c", block],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**self._engine.environment, "PATH": path},
        )

    def follow(self) -> None:
        done = self.type_next()
        assert done.returncode == 0, done


def depth(server: Container, queue: str) -> int:
    return int(server.ok("queue", "show", queue)[0]["messages"])


def drained(server: Container) -> bool:
    return all(queue["messages"] == 0 for queue in server.ok("outgoing", "list"))


def numbers(lines: list[str]) -> list[int]:
    return [int(line) for line in lines if line.strip().isdigit()]


@pytest.mark.long(seconds=240)  # with the image, which a turn without test_container.py builds
@pytest.mark.timeout(1800)
@pytest.mark.needs("podman", "runc", "buildah", "debootstrap", rights=["root"])
def test_the_second_host_loses_nothing_and_doubles_nothing(engine: Engine, tmp_path: Path) -> None:
    page = Page(engine)
    page.follow()
    first = Container(engine, "host-a").await_ready(1)
    peer = Container(engine, "peer", "--network", "mq").start()
    for queue in ("orders", "done"):
        first.ok("queue", "create", queue, "--transactional")
    peer.ok("queue", "create", "answers", "--transactional")
    before = first.ok("stats")[0]["incarnation"]

    with peer.program(SENDING, TO_ORDERS, "0") as customer:
        with first.program(SENDING, TO_ANSWERS, "0") as clerk, first.program(WORKING):
            until(lambda: depth(peer, "answers") >= 100, 60, "answers at the peer")
            until(lambda: depth(first, "done") >= 100, 60, "finished orders")
            refused = page.type_next()
            assert refused.returncode == Exit.IN_USE, refused
            assert "the store in /var/lib/msmq-fast is held by process 1 (msmq-fast) on mq1" in refused.stderr
            # The first host hangs: it does not answer, and would write again at any time.
            engine.run("kill", "--signal", "STOP", "host-a")
            page.follow()
            assert clerk.stdout is not None
            answered = numbers(clerk.stdout.read().splitlines())
        page.follow()
        second = Container(engine, "host-b")
        assert second.ok("stats")[0]["incarnation"] == before
        arrived = depth(second, "orders") + depth(second, "done")
        until(lambda: depth(second, "orders") + depth(second, "done") > arrived, 60, "orders after it")
        second.msmq("send", TO_ANSWERS, "--body", "1000000", "--transaction")
        peer.engine.run("exec", "peer", "touch", STOP)
        assert customer.stdout is not None
        ordered = numbers(customer.stdout.read().splitlines())
    until(lambda: drained(peer) and drained(second), 60, "acknowledgments")
    second.python(WORKING)

    assert ordered == list(range(len(ordered)))
    assert depth(second, "orders") == 0
    assert numbers(second.python(RECEIVING, "done")) == ordered
    *answers, last = numbers(peer.python(RECEIVING, "answers"))
    assert last == 1_000_000
    assert answers == list(range(len(answers)))  # in order, and none twice
    # The last one may be committed without the program having learned of it.
    assert len(answers) - len(answered) in (0, 1)
    assert len(answered) >= 100
