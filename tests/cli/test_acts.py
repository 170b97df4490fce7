"""Every administrative act is one line of the server's log: act, object, caller and result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import Server, data_directory

FAR = r"DIRECT=TCP:127.0.0.93\private$\far"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA", "--log-format", "json").start()
        try:
            yield running
        finally:
            running.kill()


def acts(server: Server, *words: str, stdin: bytes | None = None) -> list[dict[str, Any]]:
    """The acts in the log of one command."""
    known = len(server.log.read_text().splitlines())
    server.ok(*words, stdin=stdin)
    records = [json.loads(line) for line in server.log.read_text().splitlines()[known:]]
    return [record for record in records if record["logger"] == "msmq_fast.audit"]


def one(server: Server, *words: str) -> tuple[str, str, str]:
    (record,) = acts(server, *words)
    assert record["level"] == "info"
    assert record["sid"].startswith("S-1-22-1-")
    assert record["message"] == (
        f"{record['operation']} on {record['object']} by {record['caller']}: {record['result']}"
    )
    return record["operation"], record["object"].rpartition("\\")[2], record["result"]


def test_queues(server: Server) -> None:
    assert one(server, "queue", "create", "orders") == ("create queue", "orders", "done")
    assert one(server, "queue", "set", "orders", "--label", "Orders") == (
        "set properties",
        "orders",
        "label = Orders",
    )
    server.ok("send", "orders", "--body", "x", "--count", "3")
    assert one(server, "queue", "purge", "orders") == ("purge", "orders", "deleted messages: 3")
    server.ok("send", "orders", "--body", "x")
    assert one(server, "queue", "delete", "orders") == ("delete queue", "orders", "deleted messages: 1")


def test_permissions(server: Server) -> None:
    server.ok("queue", "create", "guarded")
    send = ("acl", "grant", "guarded", "--user", "uid:77", "--right", "send")
    assert one(server, *send) == ("change permissions", "guarded", "+(A;;LC;;;S-1-22-1-77)")
    revoke = ("acl", "revoke", "guarded", "--user", "uid:77")
    assert one(server, *revoke) == ("change permissions", "guarded", "-(A;;LC;;;S-1-22-1-77)")
    own = ("acl", "own", "guarded", "--user", "uid:77")
    assert one(server, *own) == ("change permissions", "guarded", "owner S-1-22-1-77")
    machine = ("acl", "grant", "--machine", "--user", "uid:77", "--right", "create-queue")
    assert one(server, *machine)[:2] == ("change permissions", "the queue manager")


def test_outgoing_queues(server: Server) -> None:
    server.ok("send", FAR, "--body", "x", "--recoverable")
    assert one(server, "outgoing", "pause", FAR) == ("pause outgoing queue", "far", "done")
    assert one(server, "outgoing", "purge", FAR) == ("purge", "far", "deleted messages: 1")
    assert one(server, "outgoing", "resume", FAR) == ("resume outgoing queue", "far", "done")
    assert one(server, "outgoing", "delete", FAR) == ("delete outgoing queue", "far", "done")


def test_directory_and_certificates(server: Server) -> None:
    assert one(server, "directory", "create", "Site", "Name=Berlin") == (
        "change directory",
        "site Berlin",
        "created",
    )
    assert one(server, "directory", "delete", "Site", "Berlin")[2] == "deleted"
    operation, _, result = one(server, "certificate", "create")
    assert operation == "create certificate"
    assert result.startswith("certificate ")


def test_messages_are_not_logged(server: Server) -> None:
    server.ok("queue", "create", "busy")
    assert acts(server, "send", "busy", "--body", "x") == []
    assert acts(server, "receive", "busy") == []
    assert acts(server, "queue", "list") == []


def test_what_did_not_happen_is_not_logged(server: Server) -> None:
    known = server.log.read_text()
    assert server.run("queue", "delete", "nowhere").returncode == Exit.NOT_FOUND
    assert "delete queue" not in server.log.read_text()[len(known) :]
