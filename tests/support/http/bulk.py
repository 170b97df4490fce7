"""What the tests of the bulk API share: servers as processes, and requests byte for byte."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from msmq_fast.client.bulk.client import BulkClient, Endpoint
from tests.support.processes.servers import Server, command, data_directory

ARROW = "application/vnd.apache.arrow.stream"
USERS = ("admin", "reader", "sender", "taker", "nobody")
CONFIG = """
[security]
default_queue_acl = "restrictive"
[[users]]
name = "admin"
token = "admin-s3cret"
groups = ["administrators"]
[[users]]
name = "reader"
token = "reader-s3cret"
groups = ["readers"]
[[users]]
name = "sender"
token = "sender-s3cret"
[[users]]
name = "taker"
token = "taker-s3cret"
[[users]]
name = "nobody"
token = "nobody-s3cret"
"""


@dataclass
class Answer:
    """The status, the headers and what is in the body: JSON, else bytes."""

    status: int
    headers: dict[str, str]
    content: Any

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.content["error"])

    @property
    def message(self) -> str:
        """The line for people."""
        return str(self.content["message"])


def ask(
    server: Server,
    method: str,
    path: str,
    content: object = None,
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """One request; `content` is sent as JSON, `body` as it is."""
    given = dict(headers or {})
    if content is not None:
        body = json.dumps(content).encode()
        given.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection("127.0.0.1", server.port("admin"), timeout=30)
    with contextlib.closing(connection):
        connection.request(method, f"/v1/bulk{path}", body, given)
        response = connection.getresponse()
        text = response.read()
        kind = response.headers.get_content_type()
        found = json.loads(text) if kind == "application/json" else text
        return Answer(response.status, dict(response.headers), found)


def metrics(server: Server) -> str:
    """What /metrics shows."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port("admin"), timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()


def refused(answer: Answer, status: int, code: str, *words: str) -> None:
    """It is this error, and its line holds these words."""
    assert (answer.status, answer.code) == (status, code), answer
    assert "\n" not in answer.message
    for word in words:
        assert word in answer.message, answer


def bearer(user: str) -> dict[str, str]:
    """The header with the token of one of USERS."""
    return {"Authorization": f"Bearer {user}-s3cret"}


def client(server: Server, **options: Any) -> BulkClient:
    """A client of this server that does not wait long."""
    options.setdefault("retries", 0)
    scheme = options.pop("scheme", "msmq+bulk")
    return BulkClient(Endpoint(f"{scheme}://127.0.0.1:{server.port('admin')}", **options))


def table(batches: Any) -> pa.Table:
    """Everything that a stream brings."""
    return pa.Table.from_batches(list(batches), batches.schema)


@contextlib.contextmanager
def serving(extra: str = "", *, users: tuple[str, ...] = (), **environment: str) -> Iterator[Server]:
    """A server with CONFIG and `extra`; `users` have accounts, so that lists of queues can name them."""
    with data_directory() as data:
        data.mkdir(mode=0o700)
        file = data.parent / "msmq.toml"
        file.write_text(CONFIG + extra)
        for user in users:
            made = command("user", "add", user, "--no-password", "--data", str(data))
            assert made.returncode == 0, made
        running = Server(data, "--config", str(file), environment=environment)
        try:
            yield running.start()
        finally:
            running.kill()


def messages_schema() -> pa.Schema:
    """Rows to be staged."""
    return pa.schema([("body", pa.binary()), ("label", pa.string())])


def stream_of(rows: list[tuple[bytes, str]], *, schema: pa.Schema | None = None) -> bytes:
    """The bytes of an Arrow stream."""
    schema = schema or messages_schema()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        columns = list(zip(*rows, strict=True)) if rows else [(), ()]
        writer.write_batch(pa.record_batch([list(column) for column in columns], schema=schema))
    return bytes(sink.getvalue())


def without_pyarrow(directory: Path) -> str:
    """A PYTHONPATH with which importing pyarrow fails."""
    directory.mkdir(exist_ok=True)
    (directory / "pyarrow.py").write_text("raise ImportError('not here')\n")
    return str(directory)
