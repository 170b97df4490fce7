"""The client of the bulk API: what it retries, what it does not, and what it says when something is wrong."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from msmq_fast.client.bulk import client as bulk
from msmq_fast.client.bulk.client import BulkClient, BulkError, Endpoint, LeaseLost, Truncated, Unavailable
from msmq_fast.client.bulk.errors import error_of
from tests.spark.fakeserver import FakeServer, serving

SCHEMA = pa.schema([("body", pa.binary()), ("label", pa.string())])


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as running:
        running.manager.create("orders")
        for number in range(10):
            running.manager.send("orders", b"%d" % number)
        yield running


def client(server: FakeServer, retries: int = 3) -> BulkClient:
    return BulkClient(Endpoint(server.url, retries=retries, retry_interval_ms=1, timeout_ms=5000))


def asked(server: FakeServer, words: str) -> int:
    return sum(words in line for line in server.requests)


@pytest.mark.parametrize("kind", ["refuse", "drop", "lose"])
def test_calls_that_may_be_repeated_are(server: FakeServer, kind: str) -> None:
    calls = {
        "GET /v1/bulk/bounds": lambda c: c.bounds(["orders"]),
        "POST /v1/bulk/plan": lambda c: c.plan("orders", 0, 10),
        "GET /v1/bulk/rows": lambda c: list(c.rows("orders", 0, 5)),
        "POST /v1/bulk/ack": lambda c: c.ack("s", "orders", 1),
        "POST /v1/bulk/publish": lambda c: c.publish("w", 1, 1, []),
        "POST /v1/bulk/discard": lambda c: c.discard([]),
        "PUT /v1/bulk/subscriptions": lambda c: c.subscribe("lake"),
        "POST /v1/bulk/subscriptions": lambda c: c.commit("lake", 2),
    }
    for path, call in calls.items():
        server.fault(path, kind, 2)
        call(client(server))
        assert asked(server, path) == 3, path
        server.fault(path, kind, 3)
        with pytest.raises(Unavailable):
            call(client(server, retries=2))
        assert asked(server, path) == 6, path


def test_calls_that_must_not_be_repeated_are_not(server: FakeServer) -> None:
    batch = pa.record_batch([[b"x"], ["l"]], schema=SCHEMA)
    calls = {
        "POST /v1/bulk/lease": lambda: client(server).lease("s", "orders", max_rows=1),
        "POST /v1/bulk/stage": lambda: client(server).stage(
            "w", 1, 0, 0, SCHEMA, iter([batch]), queue="orders"
        ),
    }
    for path, call in calls.items():
        server.fault(path, "lose")
        with pytest.raises(Unavailable):
            call()
        assert asked(server, path) == 1, path
        call()
    server.fault("POST /v1/bulk/lease", "refuse", 2)  # the server said that it did nothing
    assert calls["POST /v1/bulk/lease"]().rows == 1


def test_a_kept_connection_that_the_server_closed_is_no_failure(server: FakeServer) -> None:
    one = client(server, retries=1)
    one.bounds()
    server.fault("GET", "drop")
    assert one.bounds().next == 11
    one.close()
    assert one.lease("s", "orders", max_rows=1).rows == 1


@pytest.mark.parametrize("content", ["messages", "events"])
def test_a_stream_that_is_cut_is_never_taken_for_a_whole_one(server: FakeServer, content: str) -> None:
    server.fault("/rows", "cut")
    rows = client(server).rows("orders", 0, 11) if content == "messages" else client(server).events(1, 11)
    with pytest.raises(Truncated, match="broke off"):
        list(rows)
    assert sum(batch.num_rows for batch in client(server).rows("orders", 0, 11)) == 10


def stream(batches: int, *, end: bool = True) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        for number in range(batches):
            writer.write_batch(pa.record_batch([[b"%d" % number], ["l"]], schema=SCHEMA))
    content = bytes(sink.getvalue())
    return content if end else content[:-8]


@contextlib.contextmanager
def answering(*parts: bytes) -> Iterator[str]:
    """A server that gives each connection one of these answers; the last one again and again."""
    listener = socket.create_server(("127.0.0.1", 0))
    answers = list(parts)

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(5)
                    connection.recv(65536)
                    connection.sendall(answers.pop(0) if len(answers) > 1 else answers[0])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apache.arrow.stream\r\n"


def length(content: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(content) + content


def chunk(content: bytes) -> bytes:
    return b"%x\r\n" % len(content) + content + b"\r\n"


@pytest.mark.parametrize(
    ("answer", "rows"),
    [
        (length(stream(3)), 3),
        (length(stream(0)), 0),
        (HEAD + b"Connection: close\r\n\r\n" + stream(3), 3),
        (length(stream(3, end=False)), None),  # whole for HTTP, and for pyarrow
        (HEAD + b"Connection: close\r\n\r\n" + stream(3, end=False), None),
        (length(stream(3))[:-20], None),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n" + stream(3)[:16] + b"\r\n", None),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(stream(3)) + chunk(b""), 3),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(stream(3)), None),  # all but the last chunk
        (length(stream(3) + b"x"), None),
        (length(b""), None),
        (length(b"not arrow at all"), None),
    ],
)
def test_only_a_stream_with_its_end_mark_is_whole(answer: bytes, rows: int | None) -> None:
    with answering(answer) as url:

        def read() -> int:
            return sum(batch.num_rows for batch in BulkClient(Endpoint(url, retries=0)).rows("q", 0, 9))

        if rows is None:
            with pytest.raises(Truncated):
                read()
        else:
            assert read() == rows


@pytest.mark.parametrize("kind", ["refuse", "drop", "lose"])
def test_rows_that_can_be_taken_again_are_sent_again(server: FakeServer, kind: str) -> None:
    batch = pa.record_batch([[b"x"], ["l"]], schema=SCHEMA)
    server.fault("POST /v1/bulk/stage", kind, 2)
    staged = client(server).stage("w", 1, 0, 0, SCHEMA, [batch], queue="orders")
    assert asked(server, "POST /v1/bulk/stage") == 3
    (_, _, rows) = server.manager.stages[staged.stage]
    assert [row["body"] for row in rows] == [b"x"]
    server.fault("POST /v1/bulk/stage", kind, 4)
    with pytest.raises(Unavailable):
        client(server).stage("w", 1, 0, 0, SCHEMA, [batch], queue="orders")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Unavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", BulkError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", BulkError),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\n<p>", Unavailable),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", BulkError),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Unavailable),
        (b"", Unavailable),
    ],
)
def test_answers_of_something_else(answer: bytes, kind: type[BulkError]) -> None:
    with answering(answer) as url, pytest.raises(kind) as wrong:
        BulkClient(Endpoint(url, retries=0)).bounds()
    assert type(wrong.value) is kind


def test_a_refusal_in_the_middle_of_an_upload_is_told_as_it_is() -> None:
    body = b'{"error": "TOO_LARGE", "message": "a stage has at most 5 bytes"}'
    answer = (
        b"HTTP/1.1 413 X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    batch = pa.record_batch([[b"x" * 1000] * 1000, ["l"] * 1000], schema=SCHEMA)
    with answering(answer) as url, pytest.raises(BulkError) as wrong:
        BulkClient(Endpoint(url)).stage("w", 1, 0, 0, SCHEMA, (batch for _ in range(200)), queue="q")
    # The kernel may throw the answer away together with the connection.
    assert isinstance(wrong.value, bulk.TooLarge | Unavailable)


def test_a_fault_of_the_rows_ends_the_upload_and_stages_nothing(server: FakeServer) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[b"x" * (2 << 20)], ["l"]], schema=SCHEMA)
        raise RuntimeError("the job failed")

    with pytest.raises(RuntimeError, match="the job failed"):
        client(server).stage("w", 1, 0, 0, SCHEMA, rows(), queue="orders")
    assert server.manager.stages == {}


def test_large_and_many_batches_arrive_as_they_are(server: FakeServer) -> None:
    batches = [pa.record_batch([[b"%d" % n * (n * 500)], [str(n)]], schema=SCHEMA) for n in range(800, 804)]
    staged = client(server).stage("w", 1, 0, 0, SCHEMA, batches, queue="orders")
    (_, _, rows) = server.manager.stages[staged.stage]
    assert [row["body"] for row in rows] == [batch["body"][0].as_py() for batch in batches]


# ---- addresses and secrets


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("msmq+bulk://host:1234", ("host", 1234, False)),
        ("msmq+bulk://host", ("host", 1802, False)),
        ("http://10.0.0.1:80/", ("10.0.0.1", 80, False)),
        ("https://[::1]:9", ("::1", 9, True)),
    ],
)
def test_addresses(url: str, address: tuple[str, int, bool]) -> None:
    assert Endpoint(url).address() == address


@pytest.mark.parametrize(
    "url",
    [
        "host:1802",
        "ftp://host",
        "http://",
        "http://h:99999",
        "http://h/x",
        "http://u:s3cret@h",
        "http://h?a=1",
    ],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match="not a valid address of a queue manager") as wrong:
        Endpoint(url)
    assert "s3cret" not in str(wrong.value)


def test_where_the_token_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    monkeypatch.delenv("MSMQ_FAST_TOKEN", raising=False)
    monkeypatch.delenv("MSMQ_FAST_TOKEN_FILE", raising=False)
    assert Endpoint("http://h").secret() is None
    monkeypatch.setenv("MSMQ_FAST_TOKEN_FILE", str(file))
    assert Endpoint("http://h").secret() == "from-file"
    monkeypatch.setenv("MSMQ_FAST_TOKEN", "from-variable")
    assert Endpoint("http://h").secret() == "from-variable"
    assert Endpoint("http://h", token_file=str(file)).secret() == "from-file"
    assert Endpoint("http://h", token="given").secret() == "given"  # noqa: S106
    assert "given" not in repr(Endpoint("http://h", token="given"))  # noqa: S106
    for bad in ("two words", "línea", "a\r\nX-Evil: 1"):
        with pytest.raises(ValueError, match="only printable ASCII"):
            Endpoint("http://h", token=bad).secret()
    with pytest.raises(ValueError, match="cannot be read"):
        Endpoint("http://h", token_file=str(tmp_path / "absent")).secret()


def test_clients_and_errors_travel_between_processes(server: FakeServer) -> None:
    with client(server) as one:
        one.bounds()
        other = pickle.loads(pickle.dumps(one.with_incarnation(1)))  # noqa: S301
    assert other.bounds().next == 11
    error = error_of(409, {"error": "LEASE_LOST", "message": "gone", "more": 5}, "GET /rows")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(again) is LeaseLost
    assert (str(again), again.details) == (str(error), error.details)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unavailable, match=rf"http://127\.0\.0\.1:{port}.*refused"):
        BulkClient(Endpoint(f"http://127.0.0.1:{port}", retries=1, retry_interval_ms=1)).bounds()


def test_a_server_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(Unavailable, match="timed out"):
            BulkClient(Endpoint(url, retries=0, timeout_ms=100)).bounds()
