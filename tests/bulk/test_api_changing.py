"""What changes something over HTTP: leases, acknowledgments, staged publishing, snapshots."""

from __future__ import annotations

import contextlib
import http.client
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from msmq_fast.client.bulk.client import (
    BadRequest,
    BulkClient,
    BulkError,
    Fenced,
    LeaseLost,
    QueueNotFound,
    StageNotFound,
    Unavailable,
)
from tests.support.http import bulk as api
from tests.support.processes.servers import Server, until


@pytest.fixture(scope="module")
def host() -> Iterator[Server]:
    with api.serving() as server:
        yield server


@pytest.fixture(scope="module")
def client(host: Server) -> BulkClient:
    return api.client(host)


def fill(host: Server, queue: str, count: int, *flags: str) -> None:
    host.ok("queue", "create", queue, *flags)
    host.ok("send", queue, "--body", queue, "--recoverable", "--count", str(count))


def numbers(batches: object) -> list[int]:
    return list(api.table(batches)["delivery_seq"].to_pylist())


def test_a_leased_message_is_hidden_until_it_is_given_back(host: Server, client: BulkClient) -> None:
    fill(host, "leased", 10)
    lease = client.lease("job", "leased", max_rows=6)
    assert (lease.start, lease.stop, lease.rows) == (1, 7, 6)
    rows = api.table(client.leased("job", "leased", 1, 7, columns="all"))
    assert rows.schema.names[0] == "delivery_seq"
    assert rows["delivery_seq"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert set(rows["lease_holder"].to_pylist()) == {"job"}
    assert numbers(client.leased("job", "leased", 3, 5)) == [3, 4]
    assert len(host.messages("leased")) == 4
    assert client.release("job", "leased", 7).removed == 6
    assert len(host.messages("leased")) == 6


def test_what_is_acknowledged_is_received(host: Server, client: BulkClient) -> None:
    fill(host, "acked", 10, "--journal")
    lease = client.lease("job", "acked")
    assert client.ack("job", "acked", 5).removed == 4
    assert client.ack("job", "acked", 5).removed == 0  # again
    assert client.ack("job", "acked", lease.stop).removed == 6
    assert host.messages("acked") == []
    (journal,) = client.bounds(["acked"], content="journal").queues
    assert journal.messages == 10
    nothing = client.lease("job", "acked")
    assert (nothing.start, nothing.stop, nothing.rows) == (11, 11, 0)


def test_numbers_that_are_void_or_unknown(host: Server, client: BulkClient) -> None:
    fill(host, "void", 3)
    lease = client.lease("job", "void")
    client.release("job", "void", lease.stop)
    for call in (
        lambda: client.leased("job", "void", 1, 4),
        lambda: client.ack("job", "void", 4),
        lambda: client.leased("job", "void", 10, 20),
        lambda: client.leased("stranger", "void", 1, 2),
    ):
        with pytest.raises(LeaseLost):
            call()
    with pytest.raises(QueueNotFound):
        client.lease("job", "absent")
    with pytest.raises(BadRequest, match="not a range"):
        client.leased("job", "void", 0, 1)


def test_a_lease_ends_by_itself(host: Server, client: BulkClient) -> None:
    fill(host, "short", 2)
    client.lease("job", "short", lease_ms=1000)
    assert host.messages("short") == []
    until(lambda: len(host.messages("short")), what="the end of the lease")


def rows_of(bodies: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch([bodies, ["l"] * len(bodies)], schema=api.messages_schema())


def stage(client: BulkClient, part: int, bodies: list[bytes], batch: int = 1, queue: str = "target") -> str:
    schema = api.messages_schema()
    staged = client.stage("writer", batch, part, 0, schema, [rows_of(bodies)], queue=queue)
    assert staged.rows == len(bodies)
    return staged.stage


def bodies(client: BulkClient, queue: str) -> list[bytes]:
    bounds = client.bounds([queue])
    return list(api.table(client.rows(queue, 0, bounds.next, columns="body"))["body"].to_pylist())


def test_uploads_take_their_turns() -> None:
    """Each may hold much: a server has places for some of them."""
    with api.serving("[bulk]\nuploads = 1\n") as server:
        server.ok("queue", "create", "orders")
        slow = http.client.HTTPConnection("127.0.0.1", server.port("admin"), timeout=30)
        with contextlib.closing(slow):
            slow.putrequest("POST", "/v1/bulk/stage?writer=slow&batch=0&part=0&queue=orders")
            slow.putheader("Content-Type", api.ARROW)
            slow.putheader("Transfer-Encoding", "chunked")
            slow.endheaders()
            data = api.stream_of([(b"x", "")])
            slow.send(b"%x\r\n%b\r\n" % (len(data), data))
            until(lambda: "msmq_fast_stages 1" in api.metrics(server), 10)
            rows = pa.record_batch([[b"y"], [""]], schema=api.messages_schema())

            def stage(**options: int) -> int:
                with api.client(server, **options) as client:
                    return client.stage("w", 0, 0, 0, rows.schema, [rows], queue="orders").rows

            with pytest.raises(Unavailable, match="timed out"):
                stage(timeout_ms=300)
            slow.send(b"0\r\n\r\n")
            assert slow.getresponse().status == 200
            assert stage() == 1
            assert "msmq_fast_stages 2" in api.metrics(server)  # who left while he waited brought nothing


def test_a_batch_is_published_once_and_in_order_over_a_crash(host: Server) -> None:
    client = api.client(host)
    host.ok("queue", "create", "target", "--transactional")
    first, second = stage(client, 0, [b"1", b"2"]), stage(client, 1, [b"3"])
    assert bodies(client, "target") == []
    host.kill()
    host.start()
    client = api.client(host)
    published = client.publish("writer", 1, 1, [first, second])
    assert (published.dup, published.rows) == (False, 3)
    host.kill()
    host.start()
    client = api.client(host)
    assert bodies(client, "target") == [b"1", b"2", b"3"]
    assert client.publish("writer", 1, 1, [first, second]).dup
    assert bodies(client, "target") == [b"1", b"2", b"3"]
    with pytest.raises(Fenced, match="epoch"):
        client.publish("writer", 0, 9, [])
    thrown = stage(client, 0, [b"4"], batch=2)
    client.discard([thrown])
    with pytest.raises(StageNotFound):
        client.publish("writer", 1, 2, [thrown])
    assert client.publish("writer", 1, 2, []).rows == 0


def test_defaults_and_mistakes_of_a_stage(host: Server) -> None:
    client = api.client(host)
    host.ok("queue", "create", "defaults")
    schema = pa.schema([("body", pa.string())])
    batch = pa.record_batch([["text", None]], schema=schema)
    defaults = {"priority": 6, "label": "by default", "delivery": 1}
    staged = client.stage("other", 1, 0, 0, schema, [batch], queue="defaults", defaults=defaults)
    client.publish("other", 1, 1, [staged.stage])
    seen = host.messages("defaults")
    assert [(message["priority"], message["label"]) for message in seen] == [(6, "by default")] * 2
    with pytest.raises(QueueNotFound, match="row 0"):
        client.stage("other", 2, 0, 0, schema, [batch], queue="absent")
    with pytest.raises(BadRequest, match="priority"):
        client.stage("other", 2, 0, 0, schema, [batch], queue="defaults", defaults={"priority": 9})


def test_what_the_source_gives_the_sink_takes(host: Server) -> None:
    client = api.client(host)
    fill(host, "origin", 5)
    host.ok("queue", "create", "copy")
    batches = list(client.rows("origin", 0, client.bounds().next, columns="body,label,priority,body_type"))
    staged = client.stage("copier", 1, 0, 0, batches[0].schema, batches, queue="copy")
    assert client.publish("copier", 1, 1, [staged.stage]).rows == 5
    assert bodies(client, "copy") == bodies(client, "origin")


def test_a_snapshot_is_made_by_administrators_in_a_new_directory(host: Server) -> None:
    client = api.client(host)
    target = host.data.parent / "copies" / "one"
    try:
        manifest = client.snapshot(str(target), bytes_per_second=1 << 30)
        assert manifest["size"] == (target / "data.mdb").stat().st_size
        assert manifest["incarnation"] == client.bounds().incarnation
        with pytest.raises(BadRequest, match="exists already"):
            client.snapshot(str(target))
        assert api.ask(host, "GET", "/snapshot").content == {"running": False}
    finally:
        shutil.rmtree(target.parent, ignore_errors=True)


def test_a_snapshot_whose_client_leaves_is_given_up(host: Server, tmp_path: Path) -> None:
    host.ok("queue", "create", "heavy")
    host.ok("send", "heavy", "--body", "x" * 100_000, "--recoverable", "--count", "10")
    with pytest.raises(BulkError):
        api.client(host).snapshot(str(tmp_path / "copy"), bytes_per_second=65536, timeout_ms=300)
    until(lambda: api.ask(host, "GET", "/snapshot").content == {"running": False}, what="the end of it")
    assert not (tmp_path / "copy").exists()
