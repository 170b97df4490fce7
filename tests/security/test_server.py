"""Access control from outside: server processes, the command line, a sender on the wire."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.security.sid import sid
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, command, data_directory, until

CONFIG = """
[listen.app]
host = "127.0.0.1"
port = 0
[log]
format = "json"
[security]
quarantine = "refused"
everyone_creates_queues = false
default_queue_acl = "{default}"
[interop]
unsigned_sender_id = "use"
[[users]]
name = "billing"
token = "b-token"
[[users]]
name = "operator"
token = "o-token"
groups = ["administrators"]
"""


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    (tmp_path / "msmq.toml").write_text(CONFIG.format(default=getattr(request, "param", "spec")))
    with data_directory() as data:
        data.mkdir()
        add_user(data, "billing", "--no-password")
        running = Server(data, "--config", str(tmp_path / "msmq.toml"))
        try:
            yield running.start()
        finally:
            running.kill()


def add_user(data: Path, name: str, *flags: str, password: bytes = b"") -> dict[str, Any]:
    done = command("user", "add", name, "--data", str(data), "--json", *flags, stdin=password)
    assert done.returncode == 0, done
    return dict(json.loads(done.stdout))


def over_tcp(server: Server, token: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    endpoint = f"tcp://127.0.0.1:{server.port('app-tcp')}"
    return command(*arguments, "--endpoint", endpoint, environment={"MSMQ_FAST_TOKEN": token})


def audit(server: Server) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if (line["logger"], line["level"]) == ("msmq_fast.audit", "warning")]


def send_by_wire(server: Server, number: int, security: bytes = b"") -> None:
    """One recoverable message of another queue manager; returns when it is acknowledged."""
    with socket.create_connection(("127.0.0.1", server.port("mqqb")), timeout=10) as peer:
        peer.sendall(wire.establish())
        peer.recv(572, socket.MSG_WAITALL)
        peer.sendall(wire.parameters())
        peer.recv(32, socket.MSG_WAITALL)
        peer.sendall(
            wire.message(number, queue="OS:x\\private$\\orders", recoverable=True, security=security)
        )
        assert wire.kind(peer.recv(36, socket.MSG_WAITALL)) == "ACK"


@pytest.mark.rule("X-42", "X-44", "DM-085")
def test_a_denied_receive_is_explained_and_recorded(server: Server) -> None:
    server.ok("queue", "create", "orders")
    server.ok("send", "orders", "--body", "secret", "--recoverable")
    assert over_tcp(server, "b-token", "receive", "orders", "--peek").returncode == 0
    (changed,) = server.ok("acl", "deny", "orders", "--user", "billing", "--right", "receive")
    assert [(entry["type"], entry["name"]) for entry in changed["entries"]][:1] == [("deny", "billing")]
    refused = over_tcp(server, "b-token", "receive", "orders")
    assert refused.returncode == 6
    assert b"MQ_ERROR_ACCESS_DENIED" in refused.stderr
    assert b"secret" not in refused.stdout + refused.stderr
    assert over_tcp(server, "b-token", "send", "orders", "--body", "more").returncode == 0
    assert over_tcp(server, "o-token", "receive", "orders").returncode == 0

    (line,) = until(lambda: audit(server), what="the audit line")
    assert line["caller"].startswith("billing (S-1-5-21-")
    assert line["object"].lower().endswith("\\private$\\orders")
    assert (line["operation"], line["reason"]) == ("receive", "an entry of the list")
    assert line["rights"] == ["MQSEC_DELETE_MESSAGE", "MQSEC_PEEK_MESSAGE"]
    assert server.ok("stats")[0]["access_denied"] == 1

    explained = server.run("acl", "explain", "orders", "--user", "billing", "--right", "receive")
    text = explained.stdout.decode()
    assert explained.returncode == Exit.FAILURE
    assert "denied" in text
    assert f"0: deny billing ({changed['entries'][0]['sid']}) (D;;CCDC;;;" in text
    (as_json,) = server.ok("acl", "explain", "orders", "--user", "billing", "--right", "send")
    assert as_json["granted"] is True
    assert as_json["entry"]["name"] == "everyone"
    server.ok("acl", "revoke", "orders", "--user", "billing")
    assert over_tcp(server, "b-token", "receive", "orders").returncode == 0


@pytest.mark.rule("X-40", "X-42")
def test_a_denied_create(server: Server) -> None:
    refused = over_tcp(server, "b-token", "queue", "create", "mine")
    assert refused.returncode == 6
    assert b"MQSEC_CREATE_QUEUE" in refused.stderr
    assert over_tcp(server, "o-token", "queue", "create", "mine").returncode == 0
    server.ok("acl", "grant", "--machine", "--user", "billing", "--right", "create-queue")
    assert over_tcp(server, "b-token", "queue", "create", "yours").returncode == 0
    # It survives: the list of the queue manager is in the store.
    assert server.stop() == 0
    server.start()
    assert over_tcp(server, "b-token", "queue", "create", "theirs").returncode == 0


@pytest.mark.rule("QB-256", "X-45")
def test_an_anonymous_sender_is_refused_and_quarantined(server: Server) -> None:
    server.ok("queue", "create", "orders")
    send_by_wire(server, 1)
    server.ok("acl", "revoke", "orders", "--user", "anonymous")
    send_by_wire(server, 2)
    eve = sid("S-1-5-21-1-2-3-1000").data
    send_by_wire(server, 3, b"\x01\0" + len(eve).to_bytes(2, "little") + bytes(12) + eve)
    identifiers = [message["message_id"] for message in server.messages("orders")]
    assert identifiers == [f"{{{wire.PEER}}}\\1", f"{{{wire.PEER}}}\\3"]
    (kept,) = server.messages("refused")
    assert kept["message_id"] == f"{{{wire.PEER}}}\\2"
    assert kept["class"] == 0x8004
    assert "orders" in kept["destination_queue"]
    (line,) = until(lambda: audit(server), what="the audit line")
    assert line["sid"] == "S-1-5-7"
    assert f"{{{wire.PEER}}}\\2" in line["detail"]
    assert server.ok("stats")[0]["refusals"]["message: access denied, quarantined"] == 1
    # Only administrators look at what was refused.
    assert over_tcp(server, "b-token", "receive", "refused").returncode == 6


@pytest.mark.rule("QB-247")
@pytest.mark.parametrize("unsigned", [None, "use"])
def test_a_claimed_sid_opens_no_hardened_queue(unsigned: str | None) -> None:
    environment = {
        "MSMQ_FAST_SECURITY__ANONYMOUS_MAY_SEND": "false",
        "MSMQ_FAST_SECURITY__DEFAULT_QUEUE_ACL": "restrictive",
    }
    if unsigned is not None:
        environment["MSMQ_FAST_SECURITY__AMB23_UNSIGNED_SID"] = unsigned
    with data_directory() as data:
        server = Server(data, environment=environment).start()
        try:
            server.ok("queue", "create", "orders")
            send_by_wire(server, 1)
            # Administrators, root who owns the queue, the computer itself, everybody; a queue manager.
            claims = ["S-1-5-32-544", "S-1-22-1-0", f"S-1-22-1-{os.geteuid()}", "S-1-5-18", "S-1-1-0"]
            for number, claimed in enumerate(claims, 2):
                account = sid(claimed).data
                header = b"\x01\0" + len(account).to_bytes(2, "little") + bytes(12) + account
                send_by_wire(server, number, header)
            send_by_wire(server, 20, b"\x02\0" + (16).to_bytes(2, "little") + bytes(12) + wire.PEER.bytes_le)
            assert server.messages("orders") == []
            (stats,) = server.ok("stats")
            assert stats["refusals"] == {"message: access denied": len(claims) + 2}
            assert server.stop() == 0
        finally:
            server.kill()


def test_a_change_of_the_users_file_is_noticed(server: Server) -> None:
    eve = "S-1-5-21-1-2-3-1000"
    account = sid(eve).data
    header = b"\x01\0" + len(account).to_bytes(2, "little") + bytes(12) + account
    add_user(server.data, "eve", "--sid", eve, "--group", "staff", "--no-password")
    server.ok("queue", "create", "orders")
    server.ok("acl", "set", "orders", "--sddl", "D:")
    until(lambda: server.run("acl", "grant", "orders", "--user", "staff", "--right", "send").returncode == 0)
    send_by_wire(server, 1, header)
    assert command("user", "remove", "eve", "--data", str(server.data)).returncode == 0
    numbers = iter(range(2, 200))

    def refused() -> bool:
        send_by_wire(server, next(numbers), header)
        return bool(server.messages("refused"))

    until(refused, what="a refusal")


@pytest.mark.parametrize("server", ["restrictive"], indirect=True)
@pytest.mark.rule("DM-049")
def test_the_restrictive_default_from_outside(server: Server) -> None:
    assert over_tcp(server, "o-token", "queue", "create", "mine").returncode == 0
    assert over_tcp(server, "b-token", "send", "mine", "--body", "x").returncode == 0
    assert over_tcp(server, "b-token", "receive", "mine").returncode == 6
    assert over_tcp(server, "b-token", "queue", "delete", "mine").returncode == 6
    assert over_tcp(server, "b-token", "queue", "set", "mine", "--label", "x").returncode == 6
    assert (
        over_tcp(server, "b-token", "acl", "grant", "mine", "--user", "billing", "--right", "all").returncode
        == 6
    )
    assert over_tcp(server, "b-token", "queue", "show", "mine").returncode == 0
    (shown,) = server.ok("acl", "show", "mine")
    assert shown["owner"]["sid"].startswith("S-1-22-3-")
    server.ok("acl", "own", "mine", "--user", "billing")
    assert (
        over_tcp(server, "b-token", "acl", "grant", "mine", "--user", "billing", "--right", "all").returncode
        == 0
    )
    assert over_tcp(server, "b-token", "receive", "mine").returncode == 0


@pytest.mark.needs(rights=["root"])
@pytest.mark.rule("X-44")
def test_unix_users(tmp_path: Path) -> None:
    with data_directory() as data:
        data.parent.chmod(0o755)
        data.mkdir(mode=0o755)
        add_user(data, "alice", "--uid", "54321", "--no-password")
        server = Server(data, environment={"MSMQ_FAST_LISTEN__APP__SOCKET_MODE": "0666"}).start()
        try:
            server.ok("queue", "create", "orders")
            server.ok("acl", "set", "orders", "--sddl", "D:")
            server.ok("acl", "grant", "orders", "--user", "uid:54322", "--right", "send")
            server.ok("acl", "grant", "orders", "--user", "alice", "--right", "receive")

            def run(uid: int, *arguments: str) -> int:
                # A client of its own: another user may not be able to read where the package lies.
                script = (
                    "import os, sys; from msmq_fast.cli.main import main; "
                    "import msmq_fast.cli.commands.send, msmq_fast.cli.commands.receive; "
                    f"os.setgid({uid}); os.setuid({uid}); "
                    "sys.exit(main(sys.argv[1:]))"
                )
                environment = {**os.environ, "MSMQ_FAST_ENDPOINT": server.endpoint}
                return subprocess.run(
                    [sys.executable, "-c", script, *arguments],
                    env=environment,
                    capture_output=True,
                    check=False,
                ).returncode

            assert run(54322, "send", "orders", "--body", "x") == 0
            assert run(54322, "receive", "orders") == 6
            assert run(54321, "send", "orders", "--body", "x") == 6
            assert run(54321, "receive", "orders") == 0
            assert run(54323, "receive", "orders") == 6
        finally:
            server.kill()


def test_the_users_file_from_the_command_line(tmp_path: Path) -> None:
    added = add_user(tmp_path, "Alice", "--group", "operators", "--uid", "1000", password=b"pass word\n")
    assert added["sid"].startswith("S-1-5-21-")
    assert added["uid"] == 1000
    path = tmp_path / "users.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "pass word" not in path.read_text()
    before = path.read_text()

    def user(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return command("user", *arguments, "--data", str(tmp_path), stdin=stdin)

    assert user("add", "alice", "--no-password").returncode == 2
    assert user("passwd", "alice", stdin=b"\n").returncode == 2
    assert path.read_text() == before
    assert user("passwd", "alice", stdin=b"another\n").returncode == 0
    assert path.read_text() != before
    assert b"Alice" in user("list").stdout
    assert user("remove", "nobody").returncode == 3
    assert user("remove", "alice").stdout == b"removed: Alice\n"
    assert b"Alice" not in user("list").stdout


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("nonsense", "users.toml"),
        ('domain = "S-1-5-21-1"\n[[users]]\nname = "a"\n', "sid"),
    ],
)
def test_a_wrong_users_file_stops_the_start(tmp_path: Path, content: str, complaint: str) -> None:
    with data_directory() as data:
        data.mkdir()
        (data / "users.toml").write_text(content)
        done = command("serve", "--data", str(data), "--port", "0", "--ping-port", "0", "--admin-port", "off")
        assert done.returncode != 0
        assert complaint in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()
