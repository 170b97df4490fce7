"""What people do wrong, each shown from outside: one clear line or exception, and nothing lost."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast import RECOVERABLE, Access, ConnectionLost, Message, errors, sync
from msmq_fast.protocol.frames import Frame, pack_frame
from tests.support.processes import forking
from tests.support.processes.servers import (
    Server,
    command,
    data_directory,
    inherited,
    until,
    without_capability,
)

QUIET = ("--port", "0", "--ping-port", "0", "--admin-port", "off", "--rpc-port", "off")
PACKET = 4 << 20  # bytes of the largest packet


@pytest.fixture
def server() -> Iterator[Server]:
    """A running server with one message in the queue `orders`; the message is there at the end too."""
    with data_directory() as data:
        running = Server(data)
        try:
            running.start()
            running.ok("queue", "create", "orders")
            running.ok("send", "orders", "--body", "kept", "--recoverable")
            yield running
            assert [message["body_b64"] for message in running.messages("orders")] == ["a2VwdA=="]
            assert "Traceback" not in running.log.read_text()
        finally:
            running.kill()


def line(code: int, *arguments: str, environment: dict[str, str] | None = None) -> str:
    """The only line of a command that fails with `code`."""
    done = command(*arguments, environment=environment)
    shown = done.stderr.decode()
    assert done.returncode == code, (done.returncode, shown)
    assert done.stdout == b""
    assert shown.count("\n") == 1
    verb, separator, complaint = shown.rstrip("\n").partition(": ")
    assert separator
    assert f"msmq-fast {' '.join(arguments)} ".startswith(f"{verb} ")
    return complaint


# ------------------------------------------------------------------------------------------------- starting


@pytest.mark.parametrize(
    ("flag", "listener"), [("--port", "mqqb"), ("--ping-port", "ping"), ("--admin-port", "admin")]
)
def test_a_taken_port(server: Server, flag: str, listener: str) -> None:
    port = str(server.port(listener))
    flags = [
        text
        for name, text in zip(QUIET[::2], QUIET[1::2], strict=True)
        if name != flag
        for text in (name, text)
    ]
    with data_directory() as data:
        shown = line(7, "serve", "--data", str(data), "--host", "127.0.0.1", *flags, flag, port)
        assert not data.exists()
    assert shown.endswith(f"127.0.0.1:{port} is taken by another process")


@pytest.mark.needs("setpriv", rights=["protected ports"])
def test_a_low_port_without_the_right_to_it() -> None:
    with data_directory() as data:
        server = Server(data, "--port", "80")
        server.program = without_capability("net_bind_service")
        with pytest.raises(AssertionError, match="below 1024"):
            server.start()
        assert not data.exists()


class Unprivileged(Server):
    """A server of a user without rights; what it needs is imported before they are given up."""

    program = (
        sys.executable,
        "-c",
        "import encodings.idna, importlib, os, pkgutil, sys, uvloop;"
        "import msmq_fast.cli.main, msmq_fast.client, msmq_fast.config, msmq_fast.server;"
        "rooms = (msmq_fast.cli, msmq_fast.client, msmq_fast.config, msmq_fast.server);"
        "found = [m for room in rooms for m in pkgutil.walk_packages(room.__path__, room.__name__ + '.')];"
        "[importlib.import_module(module.name) for module in found];"
        "os.geteuid() or os.setresuid(65534, 65534, 65534);"
        "sys.exit(msmq_fast.cli.main.main())",
    )


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    with data_directory() as data:
        data.parent.chmod(0o555)
        with pytest.raises(AssertionError) as caught:
            Unprivileged(data, "--app-socket", str(tmp_path / "app.sock")).start()
        shown = str(caught.value).splitlines()[-1]
        assert shown == f"msmq-fast serve: cannot create {data}: Permission denied"
        data.parent.chmod(0o755)
        data.mkdir(mode=0o755)
        with pytest.raises(AssertionError) as caught:
            Unprivileged(data).start()
        shown = str(caught.value).splitlines()[-1]
        assert shown.startswith("msmq-fast serve: ")
        assert str(data) in shown
        assert "Permission denied" in shown
        assert "Traceback" not in str(caught.value)


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("precious")
    assert line(1, "serve", "--data", str(in_the_way), *QUIET) == f"{in_the_way} is not a directory"
    shown = line(1, "serve", "--data", str(in_the_way / "data"), *QUIET)
    assert shown == f"cannot create {in_the_way / 'data'}: Not a directory"
    assert in_the_way.read_text() == "precious"


def test_a_directory_without_a_store(tmp_path: Path) -> None:
    for verb in (["backup", str(tmp_path / "copy")], ["compact"]):
        assert line(3, *verb, "--data", str(tmp_path)) == f"{tmp_path} holds no store"


def test_a_second_process_on_one_store(server: Server) -> None:
    assert server.process is not None
    shown = line(7, "serve", "--data", str(server.data), *QUIET)
    assert shown.startswith(f"the store in {server.data} is held by process {server.process.pid} ")
    for verb in (["compact"], ["restore", str(server.data.parent / "nothing")]):
        code = 7 if verb[0] == "compact" else 1
        assert line(code, *verb, "--data", str(server.data))


def test_a_bad_key_in_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "msmq.toml"
    config.write_text("[listen.mqqb]\nprot = 1\n")
    expected = f'{config}:2: unknown key "prot" in [listen.mqqb]; did you mean "port"?'
    assert line(2, "serve", "--config", str(config)) == expected
    assert line(2, "check-config", str(config)) == expected
    environment = {"MSMQ_FAST_LISTEN__MQQB__PORT": "x"}
    assert line(2, "serve", environment=environment).startswith(
        "MSMQ_FAST_LISTEN__MQQB__PORT: expected a port"
    )
    config.write_text("[listen.mqqb]\nport = 1901\n")
    assert command("check-config", str(config)).returncode == 0


# ---------------------------------------------------------------------------------------------------- using


def client_line(server: Server, code: int, *arguments: str) -> str:
    return line(code, *arguments, environment={"MSMQ_FAST_ENDPOINT": server.endpoint})


def test_an_unknown_queue(server: Server) -> None:
    expected = "MQ_ERROR_QUEUE_NOT_FOUND (0xC00E0003): there is no queue nowhere"
    for arguments in (
        ("send", "nowhere", "--body", "x"),
        ("receive", "nowhere"),
        ("queue", "show", "nowhere"),
        ("queue", "delete", "nowhere"),
        ("outgoing", "show", "nowhere"),
    ):
        assert client_line(server, 3, *arguments) == expected
    with sync.connect(server.endpoint) as connection, pytest.raises(errors.QueueNotFound, match="nowhere"):
        connection.open("nowhere", Access.SEND)


def test_an_illegal_name(server: Server) -> None:
    start = "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME (0xC00E0014): "
    shape = r" is not a path name (computer\queue or computer\private$\queue)"
    for name, shown in ((r"bad;;", r"bad;;"), ("a,b", "a,b"), ("a\nb", r"a\x0ab"), ("", "")):
        assert client_line(server, 6, "queue", "create", name) == f'{start}"{shown}"{shape}'
    for name in (r"DIRECT=TCP:nowhere\private$\x", "DIRECT=FOO:x", "PRIVATE=1"):
        expected = f'MQ_ERROR_ILLEGAL_FORMATNAME (0xC00E001E): "{name}" is not a format name, such as '
        assert client_line(server, 6, "send", name, "--body", "x").startswith(expected)
    shown = client_line(
        server, 6, "send", "orders", "--body", "x", "--ack", "reach", "--admin-queue", "a b;;"
    )
    assert shown == f"{start}the response or admin queue is not a path{shape.partition('name')[2]}"


def test_a_name_that_is_too_long(server: Server) -> None:
    shown = client_line(server, 6, "queue", "create", "q" * 200)
    assert shown.endswith(f'the queue name in "{"q" * 40}"… has more than 124 characters')


@pytest.mark.needs(rights=["root"])
def test_a_socket_of_another_user(server: Server) -> None:
    done = subprocess.run(
        [*Unprivileged.program, "queue", "list", "--endpoint", server.endpoint],
        env=inherited(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (5, b"")
    assert done.stderr.decode() == (
        f"msmq-fast queue list: no permission to connect to {server.data / 'app.sock'}: "
        "only root and the user of the server may\n"
    )


def test_a_body_over_4_mb(server: Server, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(bytes(PACKET + 1))
    shown = client_line(server, 6, "send", "orders", "--file", str(body))
    assert shown == f"{body}: the body is larger than the {PACKET} bytes of a packet"
    body.write_bytes(bytes(PACKET))  # no room for the headers
    shown = client_line(server, 6, "send", "orders", "--file", str(body))
    assert shown.endswith("the message is too large: a packet has 4 MiB at most, headers included")
    with (
        sync.connect(server.endpoint) as connection,
        connection.open("orders", Access.SEND) as queue,
    ):
        for size in (PACKET, 2 * PACKET):
            with pytest.raises(errors.MSMQError, match=r"too large|larger"):
                queue.send(Message(bytes(size), delivery=RECOVERABLE))
        connection.ping()  # the connection goes on


def test_a_client_that_disconnects_in_the_middle_of_a_send(server: Server) -> None:
    server.ok("queue", "create", "other")
    whole = pack_frame(Frame.SEND, 3, [1, 0, [[b"whole", "", 1]]])
    cut = pack_frame(Frame.SEND, 4, [1, 0, [[bytes(1_000_000), "", 1]]])
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server.endpoint.removeprefix("unix:"))
        connection.sendall(
            pack_frame(Frame.HELLO, 1, {"version": 1}) + pack_frame(Frame.OPEN, 2, ["other", 2])
        )
        connection.sendall(whole + cut[:500_000])
    # The message that was sent whole is kept, of the other one there is nothing.
    until(lambda: server.ok("queue", "show", "other")[0]["messages"] == 1)
    until(lambda: server.ok("stats")[0]["app_connections"] == 1)
    server.kill()
    server.start()
    assert [message["body_b64"] for message in server.messages("other")] == ["d2hvbGU="]


def test_a_server_that_stops_in_the_middle_of_many_sends(server: Server) -> None:
    """One line says how many messages are kept; asyncio does not warn of each further one."""
    server.ok("queue", "create", "other")
    environment = {**inherited(), "MSMQ_FAST_ENDPOINT": server.endpoint}
    count = 2_000_000
    process = forking.start(
        "send",
        "other",
        "--body",
        "x",
        "--count",
        str(count),
        "--recoverable",
        environment=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with process:
        until(lambda: server.ok("queue", "show", "other")[0]["messages"] > 1000)
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=60)
    assert server.process.wait(20) == 0
    assert process.returncode == 5
    shown = re.fullmatch(
        rf"msmq-fast send: [^\n]+: (\d+) of {count} messages had been acknowledged\n", complaint.decode()
    )
    assert shown is not None, complaint
    server.start()
    assert 1000 < int(shown[1]) <= server.ok("queue", "show", "other")[0]["messages"]


def test_a_server_that_ends_in_the_middle_of_a_send(server: Server) -> None:
    kept = 0
    with sync.connect(server.endpoint) as connection:
        connection.admin.queues.create("other")
        queue = connection.open("other", Access.SEND)
        queue.send(Message(b"x", delivery=RECOVERABLE))
        kept += 1
        server.kill()
        with pytest.raises(ConnectionLost, match=r"closed the connection|was lost"):
            queue.send(Message(b"x", delivery=RECOVERABLE))
    shown = client_line(server, 5, "send", "other", "--body", "x")
    assert shown.startswith(f"no queue manager at {server.data / 'app.sock'}: ")
    server.start()
    assert len(server.messages("other")) == kept
