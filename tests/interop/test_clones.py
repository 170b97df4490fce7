"""Copies of a store: they take a new incarnation, and where two of them live, a third host notices."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast import RECOVERABLE, Access, Message, sync
from tests.support.processes.pair import drained, free_port
from tests.support.processes.servers import Server, command, data_directory, until

RETRY = {"MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3"}
TARGET = r"DIRECT=TCP:127.0.0.3\private$\inbox"


@pytest.fixture
def folder() -> Iterator[Path]:
    with data_directory() as data:
        yield data.parent


@pytest.fixture
def hosts(folder: Path) -> Iterator[tuple[Server, Server, Server]]:
    """A host, the place of its clone, and a third one; one port number, three addresses."""
    port = str(free_port())
    servers = tuple(
        Server(folder / name, "--port", port, "--name", name.upper(), host=host, environment=RETRY)
        for name, host in (("first", "127.0.0.2"), ("clone", "127.0.0.4"), ("third", "127.0.0.3"))
    )
    try:
        yield servers  # type: ignore[misc]
    finally:
        for server in servers:
            server.kill()


def incarnation(server: Server) -> int:
    return int(server.ok("stats")[0]["incarnation"])


def refusals(server: Server) -> dict[str, int]:
    return dict(server.ok("stats")[0]["refusals"])


def test_two_live_copies_of_one_store_are_told_apart_and_reported(
    hosts: tuple[Server, Server, Server],
) -> None:
    first, clone, third = hosts
    third.start()
    third.ok("queue", "create", "inbox")
    first.start()
    before = incarnation(first)
    assert first.stop() == 0
    shutil.copytree(first.data, clone.data)
    first.start()
    clone.start()
    assert first.ready["guid"] == clone.ready["guid"]
    assert (incarnation(first), incarnation(clone)) == (before, before + 1)
    assert "was copied or restored: it gets a new incarnation" in clone.log.read_text()

    first.ok("send", TARGET, "--body", "first", "--recoverable")
    until(lambda: drained(first), what="the acknowledgment")
    clone.ok("send", TARGET, "--body", "clone", "--recoverable")
    reason = "session: peer presents the GUID of another live peer"
    until(lambda: refusals(third).get(reason, 0) >= 1, what="the report")
    assert "peer presents the GUID of another live peer" in third.log.read_text()
    assert "127.0.0.4" in third.log.read_text()
    until(lambda: drained(clone), what="the acknowledgment for the copy")
    first.ok("send", TARGET, "--body", "again", "--recoverable")  # both go on
    until(lambda: drained(first), what="the second acknowledgment")
    bodies = [message["body_b64"] for message in third.messages("inbox")]
    assert bodies == ["Zmlyc3Q=", "Y2xvbmU=", "YWdhaW4="]

    clone.ok("send", r"DIRECT=TCP:127.0.0.2\private$\inbox", "--body", "x", "--recoverable")
    until(lambda: refusals(first).get("session: peer presents our own GUID", 0) >= 1, what="its own GUID")

    assert first.stop() == 0


@contextlib.contextmanager
def traffic(server: Server) -> Iterator[None]:
    """Meanwhile a program sends one message after the other to the queue `orders`."""

    def send() -> None:
        with sync.connect(server.endpoint) as connection, connection.open("orders", Access.SEND) as queue:
            while not over.is_set():
                queue.send(Message(b"during", delivery=RECOVERABLE))

    over = threading.Event()
    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
        assert sender.is_alive()
    finally:
        over.set()
        sender.join(30)


def test_a_backup_under_traffic_is_restored_with_a_new_incarnation(folder: Path) -> None:
    server, restored = Server(folder / "data").start(), Server(folder / "restored")
    try:
        server.ok("queue", "create", "orders")
        server.ok("send", "orders", "--body", "before", "--recoverable", "--count", "50")
        with traffic(server):
            until(lambda: server.ok("queue", "show", "orders")[0]["messages"] > 60, what="traffic")
            backup = command("backup", str(folder / "backup"), "--data", str(server.data))
            assert backup.returncode == 0, backup
            copied = server.ok("queue", "show", "orders")[0]["messages"]
            until(lambda: server.ok("queue", "show", "orders")[0]["messages"] > copied, what="more traffic")
        again = command("backup", str(folder / "backup"), "--data", str(server.data))
        assert again.returncode == 1
        assert again.stderr.count(b"\n") == 1
        guid, before = server.ready["guid"], incarnation(server)
        last = server.ok("queue", "show", "orders")[0]["messages"]
        done = command("restore", str(folder / "backup"), "--data", str(restored.data))
        assert done.returncode == 0, done
        taken = command("restore", str(folder / "backup"), "--data", str(restored.data))
        assert taken.returncode == 1
        assert taken.stderr.count(b"\n") == 1
        assert server.stop() == 0
        shutil.copy(server.data / "secrets.key", restored.data)  # the backup holds what it opens, not the key
        restored.start()
        assert restored.ready["guid"] == guid
        assert incarnation(restored) == before + 1
        messages = restored.messages("orders")
        assert 60 <= len(messages) < last
        assert [message["body_b64"] for message in messages[:50]] == ["YmVmb3Jl"] * 50
        ordinals = [int(message["message_id"].split("\\")[1]) for message in messages]
        assert ordinals == sorted(set(ordinals))
        # The original has sent on; what the restored one sends must not be taken for that.
        restored.ok("send", "orders", "--body", "x", "--recoverable")
        (sent,) = restored.messages("orders")
        assert int(sent["message_id"].split("\\")[1]) > ordinals[-1] + 1_000_000
    finally:
        server.kill()
        restored.kill()
