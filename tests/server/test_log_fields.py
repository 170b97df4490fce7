"""Log lines of refusals and failures name the peer, the message and the queue where the code knows them."""

from __future__ import annotations

import ast
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.servers import Server, data_directory, until
from tests.support.srmp.partner import request

ROOT = Path(__file__).parents[2] / "src" / "msmq_fast"
ROOMS = (
    "admin", "app", "bulk", "console", "mqqb", "rpc", "srmp",
    "server/admin", "server/app", "server/mqqb", "server/net", "server/pgm", "server/rpc", "server/srmp",
)  # fmt: skip
LEVELS = ("warning", "error", "critical", "exception")
WITHOUT_PEER = {
    "bulk/reader.py": "damage of the store",
    "rpc/contexts.py": "a handle whose connection is gone",
    "rpc/securing.py": "a security context, which knows no address; the refusal that follows has it",
    "server/net/accepting.py": "the operating system accepts nothing",
    "server/pgm/sockets.py": "rights of the process",
    "server/rpc/ports.py": "ports of this computer",
    "server/srmp/listener.py": "ports of this computer",
}
"""Files with a line that concerns no peer, and what it concerns; each has at most one."""


def _calls() -> Iterator[tuple[str, ast.Call, str]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield str(path.relative_to(ROOT)), node, ast.unparse(node.func)


def test_every_warning_of_a_protocol_has_fields() -> None:
    bare = [
        name
        for name, call, called in _calls()
        if called.rpartition(".")[2] in LEVELS
        and "log" in called.lower()
        and "extra" not in {keyword.arg for keyword in call.keywords}
    ]
    allowed = {name: WITHOUT_PEER.get(name, "") for name in bare}
    assert [name for name, reason in allowed.items() if not reason] == []
    twice = {"server/rpc/ports.py", "bulk/reader.py"}  # two lines about the same thing
    assert {name for name in bare if bare.count(name) > 1} <= twice
    assert set(WITHOUT_PEER) == set(bare)  # no entry outlives its line


def test_every_counted_refusal_has_the_peer() -> None:
    bare = [
        f"{name}: {ast.unparse(call)}"
        for name, call, called in _calls()
        if called.rpartition(".")[2] in ("refuse", "_refuse")
        and not called.startswith("self.counters.")  # of SRMP: it knows the peer itself
        and call.args
        and (isinstance(call.args[0], ast.Constant) or ast.unparse(call.args[0]).endswith("what"))
        and not {"peer", "about"} & {keyword.arg for keyword in call.keywords}
    ]
    assert bare == []


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    environment = {
        "MSMQ_FAST_LOG__FORMAT": "json",
        "MSMQ_FAST_LOG__REFUSALS_PER_SECOND": "1000",
        "MSMQ_FAST_LISTEN__HTTP__PORT": "0",
        "MSMQ_FAST_LISTEN__APP__PORT": "0",
        "MSMQ_FAST_LISTEN__APP__HOST": "127.0.0.1",
    }
    with data_directory() as data:
        running = Server(data, environment=environment)
        try:
            yield running.start()
        finally:
            running.kill()


def line_of(server: Server, **wanted: object) -> dict[str, Any]:
    """The first line of the log with these fields, once it is there."""

    def found() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if all(line.get(name) == value for name, value in wanted.items())]

    return dict(until(found, what=f"a line with {wanted}")[0])


def send(server: Server, listener: str, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port(listener)), timeout=10) as connection:
        connection.sendall(data)
        connection.recv(4096)


@pytest.mark.parametrize(
    ("listener", "data", "what"),
    [
        ("mqqb", b"x" * 64, "session"),
        ("rpc", bytes.fromhex("05000003100000001800000001000000") + bytes(8), "rpc connection"),
        ("http", b"nonsense\r\n\r\n", "http connection"),
        ("http", b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "http request"),
        ("app-tcp", b"\xff" * 64, "app connection"),
        ("admin", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "admin request"),
    ],
    ids=["mqqb", "rpc", "http", "http-method", "app", "admin"],
)
def test_a_refused_connection_names_its_peer(server: Server, listener: str, data: bytes, what: str) -> None:
    send(server, listener, data)
    line = line_of(server, what=what)
    assert line["peer"] == "127.0.0.1"
    assert line["reason"]
    assert "127.0.0.1" in line["message"]


def test_a_message_over_http_that_is_refused_has_message_queue_and_peer(server: Server) -> None:
    port = server.port("http")
    to = f"http://127.0.0.1:{port}/msmq/private$/nosuch"
    send(server, "http", request(to, number=7).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
    line = line_of(server, what="message", reason="unknown queue")
    assert (line["peer"], line["queue"]) == ("127.0.0.1", to)
    assert line["message_id"].endswith("}\\7")


def test_a_request_to_the_management_api_that_is_refused_has_the_peer(server: Server) -> None:
    url = f"http://127.0.0.1:{server.port('admin')}/api/v1/queues/nosuch"
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url, timeout=10)
    assert line_of(server, what="API request")["peer"] == "127.0.0.1"


def test_no_more_lines_than_the_rate_and_no_secret(tmp_path: Path) -> None:
    environment = {"MSMQ_FAST_LOG__FORMAT": "json", "MSMQ_FAST_LOG__REFUSALS_PER_SECOND": "2"}
    with data_directory() as data:
        server = Server(data, environment=environment).start()
        try:
            url = f"http://127.0.0.1:{server.port('admin')}/api/v1/queues"
            for _ in range(50):
                asked = urllib.request.Request(url, headers={"Authorization": "Bearer s3cr3t-marker"})
                with pytest.raises(urllib.error.HTTPError):
                    urllib.request.urlopen(asked, timeout=10)  # noqa: S310
        finally:
            server.kill()
        lines = [line for line in server.log.read_text().splitlines() if '"API request"' in line]
        assert "s3cr3t-marker" not in server.log.read_text()
    assert 0 < len(lines) <= 20  # two a second, on a slow machine
    assert sum(json.loads(line)["suppressed"] for line in lines) + len(lines) <= 50
