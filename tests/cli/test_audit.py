"""The audit over a real server: each changing request leaves one entry, each denial of it leaves one, and
entries of acknowledged acts survive SIGKILL.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.client import sync
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import AuditEntry
from tests.support.processes.servers import Server, command, data_directory, until

TOKEN = "s3cret-token-of-billing"  # noqa: S105
CONFIG = """
[security]
audit_interval = 0
[listen.app]
host = "127.0.0.1"
port = 0
[[users]]
name = "billing"
token_file = '{token}'
"""
FAR = r"DIRECT=TCP:127.0.0.93\private$\far"
PEER = "00112233-4455-6677-8899-aabbccddeeff"
CHANGING = {
    Frame.RELOAD, Frame.SNAPSHOT, Frame.CREATE_QUEUE, Frame.DELETE_QUEUE, Frame.SET_QUEUE, Frame.EDIT_ACL,
    Frame.PURGE, Frame.PAUSE_OUTGOING, Frame.RESUME_OUTGOING, Frame.PURGE_OUTGOING, Frame.PUT_DIRECTORY,
    Frame.DELETE_DIRECTORY, Frame.RELOCATE, Frame.RESUBMIT, Frame.OPEN_IMPORT, Frame.IMPORT, Frame.END_JOB,
    Frame.END_TRANSACTION, Frame.CREATE_CERTIFICATE, Frame.ADD_CERTIFICATE, Frame.REMOVE_CERTIFICATE,
    Frame.TELL_KEYS, Frame.KICK_OUTGOING, Frame.END_SESSION, Frame.REMOVE, Frame.PUT_DEFINITION,
}  # fmt: skip
"""Requests of operators that change something."""

READING = {
    Frame.HELLO, Frame.PING, Frame.STATS, Frame.SHOW_SNAPSHOT, Frame.TRACE, Frame.LIST_AUDIT, Frame.GET_QUEUE,
    Frame.LIST_QUEUES, Frame.SHOW_ACL, Frame.EXPLAIN, Frame.LIST_OUTGOING, Frame.SHOW_OUTGOING,
    Frame.LIST_DIRECTORY, Frame.SHOW_DIRECTORY, Frame.BROWSE, Frame.LIST_TRANSACTIONS,
    Frame.LIST_CERTIFICATES, Frame.SHOW_KEYS, Frame.PAGE_QUEUES, Frame.SERIES, Frame.LIST_SESSIONS,
    Frame.LIST_READERS, Frame.EXPORT_DEFINITIONS,
    Frame.LIST_USERS, Frame.SHOW_CONFIG, Frame.CHECK_CONFIG, Frame.EXPLAIN_ROUTE,
}  # fmt: skip
OF_PROGRAMS = {
    Frame.OPEN, Frame.CLOSE, Frame.SEND, Frame.RECEIVE, Frame.LOOKUP, Frame.CANCEL, Frame.SUBSCRIBE,
    Frame.CREDIT, Frame.ACKNOWLEDGE, Frame.RELEASE, Frame.UNSUBSCRIBE, Frame.CURSOR_OPEN, Frame.CURSOR_CLOSE,
    Frame.CURSOR_READ, Frame.MOVE, Frame.BEGIN, Frame.COMMIT, Frame.ABORT, Frame.REJECT, Frame.PREPARE,
}  # fmt: skip
"""Requests on messages and transactions of the caller: the event feed has them."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "token").write_text(TOKEN)
    (folder / "msmq.toml").write_text(CONFIG.format(token=folder / "token"))
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA", "--config", str(folder / "msmq.toml")).start()
        try:
            yield running
        finally:
            running.kill()


def remote(server: Server, *words: str, token: str = TOKEN) -> subprocess.CompletedProcess[bytes]:
    endpoint = f"tcp://127.0.0.1:{server.port('app-tcp')}"
    return command(*words, environment={"MSMQ_FAST_ENDPOINT": endpoint, "MSMQ_FAST_TOKEN": token})


def listed(server: Server, **filters: Any) -> list[AuditEntry]:
    """All entries that match, the oldest first."""
    with sync.connect(server.endpoint) as connection:
        found: list[AuditEntry] = []
        start, finished = 0, False
        while not finished:
            page = connection.admin.audit.page(start, **filters)
            found += page.entries
            start, finished = page.next, page.finished
        return found


def test_every_request_is_classified() -> None:
    """A new request that changes something belongs into CHANGING, and into the test below."""
    requests = {frame for frame in Frame if frame < 0x80}
    assert requests == CHANGING | READING | OF_PROGRAMS
    assert len(requests) == len(CHANGING) + len(READING) + len(OF_PROGRAMS)


def test_an_entry_survives_sigkill() -> None:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA").start()
        try:
            running.ok("queue", "create", "orders")
            running.kill()
            running.start()
            (entry,) = listed(running, object="orders")
            assert (entry.operation, entry.result, entry.address) == ("create queue", "done", "local")
        finally:
            running.kill()


def test_log_ons_leave_entries_without_the_token(server: Server) -> None:
    assert remote(server, "queue", "list").returncode == Exit.OK
    assert remote(server, "queue", "list", token="wrong-" + TOKEN).returncode != Exit.OK
    server.ok("queue", "create", "flush-logons")  # an act does not wait, and takes along what does
    found = listed(server, kind="login")
    assert {("billing", "accepted"), ("unknown", "refused")} <= {(one.caller, one.result) for one in found}
    assert {one.address for one in found} == {"127.0.0.1"}
    assert TOKEN not in json.dumps([one.as_map() for one in found])


def steps(tmp_path: Path, session: int) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The changing commands in an order in which an administrator may run them: text of the operation, words,
    and the operation of the denial of a program without rights. `session` is the number of a connection.
    """
    file = str(tmp_path / "orders.msgs")
    defined = {"msmq_fast_definitions": 1, "queues": [{"name": "defined"}]}
    (tmp_path / "definitions.json").write_text(json.dumps(defined))
    yield "create queue", ("queue", "create", "made"), "create a queue"
    yield "set properties", ("queue", "set", "made", "--label", "x"), "set properties"
    grant = ("acl", "grant", "made", "--user", "uid:77", "--right", "send")
    yield "change permissions", grant, "change permissions"
    yield "purge", ("queue", "purge", "made"), "receive"
    yield "remove messages", ("queue", "purge", "target", "--limit", "1"), "receive"
    yield "import messages", ("import", file, "--queue", "made"), "import messages"
    yield "copy messages+end job", ("queue", "copy", "made", "target"), "peek"
    yield "move messages", ("queue", "move", "made", "target"), "receive"
    yield "resubmit messages+resubmit messages", ("dlq", "resubmit"), "receive from"
    yield "delete queue", ("queue", "delete", "made"), "delete"
    yield "kick outgoing queue", ("outgoing", "kick", FAR), "kick the outgoing"
    yield "pause outgoing queue", ("outgoing", "pause", FAR), "pause the outgoing"
    removal = ("outgoing", "purge", FAR, "--priority", "7")
    yield "remove messages", removal, "remove messages from the outgoing"
    yield "purge", ("outgoing", "purge", FAR), "purge the outgoing"
    yield "resume outgoing queue", ("outgoing", "resume", FAR), "resume the outgoing"
    yield "kick outgoing queue", ("outgoing", "kick", FAR), "kick the outgoing"
    yield "delete outgoing queue", ("outgoing", "delete", FAR), "delete an outgoing"
    yield "change directory", ("directory", "create", "Site", "Name=Berlin"), "change the directory"
    yield "change directory", ("directory", "delete", "Site", "Berlin"), "change the directory"
    yield "create queue", ("definitions", "import", str(tmp_path / "definitions.json")), "import definitions"
    yield "create certificate", ("certificate", "create", "--user", "uid:0"), "create certificate"
    yield "forget public keys", ("peer-key", "remove", PEER), "tell the keys"
    yield "close session", ("session", "close", str(session)), "close a session"
    yield "make snapshot", ("backup", "create", str(tmp_path / "copy")), "make a snapshot"
    yield "reload configuration", ("config", "reload"), "reload the configuration"


def test_each_act_leaves_one_entry_and_each_denial_one(server: Server, tmp_path: Path) -> None:
    server.ok("queue", "create", "orders")
    server.ok("queue", "create", "target")
    server.ok("send", "orders", "--body", "x", "--count", "3")
    server.ok("export", "orders", "--output", str(tmp_path / "orders.msgs"))
    server.ok("send", FAR, "--body", "x", "--recoverable")
    wrong: list[object] = []
    with sync.connect(server.endpoint) as idle:
        session = max(one.number for one in idle.admin.sessions.page("program").sessions)
        check_steps(server, tmp_path, session, wrong)
    assert not wrong, "\n".join(map(str, wrong))


def check_steps(server: Server, tmp_path: Path, session: int, wrong: list[object]) -> None:
    """Run each step without rights and with them, and put what is wrong into `wrong`."""
    for operation, words, denied in steps(tmp_path, session):
        for allowed, name, kind in ((False, denied, "denial"), (True, operation, "act")):
            known = {entry.number for entry in listed(server)}
            if allowed:
                server.ok(*words)
            else:
                done = remote(server, *words, *(("--yes",) if words[:2] == ("queue", "delete") else ()))
                if done.returncode != Exit.REFUSED:
                    wrong.append((words, done))
                server.ok("queue", "create", f"flush-{secrets.token_hex(4)}")
            expected = name.split("+")  # a command can send several requests that change something
            # An entry may be written in the batch after its act.
            until(partial(arrived, server, known, kind, len(expected)), what=f"{kind}s of {words}")
            new = fresh(server, known, kind)
            if len(new) != len(expected) or any(
                text not in entry.operation for text, entry in zip(expected, new, strict=True)
            ):
                wrong.append((words, kind, new))


def fresh(server: Server, known: set[int], kind: str) -> list[AuditEntry]:
    """The entries that came after those in `known`."""
    return [
        entry
        for entry in listed(server)
        if entry.number not in known and entry.kind == kind and "flush-" not in entry.object
    ]


def arrived(server: Server, known: set[int], kind: str, count: int) -> bool:
    """Whether as many entries came after those in `known`."""
    return len(fresh(server, known, kind)) >= count
