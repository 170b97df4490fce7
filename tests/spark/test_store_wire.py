"""A store that is read offline gives what its queue manager gives over the bulk API; and both in Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from msmq_fast.client.bulk.client import BulkClient
from tests.spark.storerows import Row, rows
from tests.support.http import bulk as api
from tests.support.processes.servers import Server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVER = (1 << 63) - 1
QUEUES = ("orders", "taken", "exact")


def fill(server: Server, count: int) -> None:
    """Messages of several priorities and sizes; journals and dead letters."""
    server.ok("queue", "create", "orders")
    server.ok("queue", "create", "taken", "--journal")
    server.ok("queue", "create", "exact", "--transactional")
    for priority in (0, 3, 7):
        server.ok(
            *(
                "send",
                "orders",
                "--body",
                "x" * (700 * priority),
                "--label",
                f"größe {priority}",
                "--recoverable",
            ),
            *("--priority", str(priority), "--count", str(count // 3), "--correlation-id", "ab" * 20),
            *("--response-queue", r"DIRECT=OS:other\private$\answers", "--app-specific", "77"),
        )
    server.ok("send", "taken", "--body", "y" * 70_000, "--recoverable", "--count", "5", "--ttrq", "500")
    server.ok("send", "exact", "--body", "z", "--xact", "--count", "7")
    assert len(server.messages("taken", 2)) == 2


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, BulkClient, Path]]:
    """A server with messages, and a snapshot of its store."""
    with api.serving() as server:
        fill(server, 300)
        client = api.client(server)
        snapshot = tmp_path_factory.mktemp("snapshots") / "first"
        client.snapshot(str(snapshot))
        yield server, client, snapshot


def over_the_wire(client: BulkClient, queue: str, content: str = "messages") -> list[Row]:
    found = client.rows(queue, 0, EVER, content=content, columns="all", raw=True, security=True)
    return [row for batch in found for row in batch.to_pylist()]


def test_messages_are_those_of_the_wire(served: tuple[Server, BulkClient, Path]) -> None:
    _, client, snapshot = served
    bounds = client.bounds(QUEUES)
    computer = bounds.queues[0].name.partition("\\")[0]
    offline = rows(
        snapshot,
        columns="all",
        includeRaw="true",
        includeSecurity="true",
        computerName=computer,
    )
    asked = [(queue, "messages") for queue in QUEUES] + [("taken", "journal")]
    seen = 0
    for name, content in asked:
        wire = over_the_wire(client, name, content)
        queue = wire[0]["queue"]
        mine = sorted((row for row in offline if row["queue"] == queue), key=lambda row: row["arrival_seq"])
        assert [{k: v for k, v in row.items() if k in wire[0]} for row in mine] == wire
        seen += len(mine)
    assert seen == len(offline) == 312


def test_events_are_those_of_the_wire(served: tuple[Server, BulkClient, Path]) -> None:
    _, client, snapshot = served
    computer = client.bounds(QUEUES).queues[0].name.partition("\\")[0]
    offline = sorted(
        rows(snapshot, table="events", computerName=computer), key=lambda row: int(row["feed_seq"])
    )
    wire = [row for batch in client.events(1, offline[-1]["feed_seq"] + 1) for row in batch.to_pylist()]
    assert [{k: v for k, v in row.items() if k in wire[0]} for row in offline] == wire


@pytest.mark.timeout(300)
def test_in_spark(spark: SparkSession, served: tuple[Server, BulkClient, Path]) -> None:
    _, _, snapshot = served

    def load(**options: str) -> DataFrame:
        return spark.read.format("msmq_store").options(partitions="3", **options).load(str(snapshot))

    messages = load()
    counts = {row["queue"]: row["count"] for row in messages.groupBy("queue").count().collect()}
    assert counts == {
        r".\private$\orders": 300,
        r".\private$\taken": 3,
        r".\private$\taken;JOURNAL": 2,
        r".\private$\exact": 7,
    }
    assert load(table="queues").where("transactional").count() >= 1
    numbers = sorted(row["arrival_seq"] for row in messages.select("arrival_seq").collect())
    middle = numbers[100]
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = load(pushdown="true").where(
            rf"queue = '.\\private$\\orders' and arrival_seq >= {middle} and priority in (0, 7)"
        )
        plan = pushed._jdf.queryExecution().executedPlan().toString()
        assert "Filter (" not in plan
        expected = messages.where(
            rf"queue = '.\\private$\\orders' and arrival_seq >= {middle} and priority in (0, 7)"
        )
        assert sorted(row["message_id"] for row in pushed.collect()) == sorted(
            row["message_id"] for row in expected.collect()
        )
        assert 0 < pushed.count() < 300
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def _digest(found: list[dict[str, Any]] | pa.Table) -> str:
    digest = hashlib.sha256()
    table = found if isinstance(found, pa.Table) else pa.Table.from_pylist(found)
    for name, body in zip(table["message_id"].to_pylist(), table["body"].to_pylist(), strict=True):
        digest.update(name.encode() + body)
    return digest.hexdigest()


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(600)
def test_many_messages_have_the_same_hash(tmp_path: Path) -> None:
    """150,000 messages: the same sum over identifiers and bodies, of a snapshot and of the stopped store."""
    from tests.spark.storerows import reader

    with api.serving() as server:
        fill(server, 150_000)
        client = api.client(server)
        wire = pa.Table.from_batches(client.rows("orders", 0, EVER, columns="message_id,body,arrival_seq"))
        client.snapshot(str(tmp_path / "snapshot"))
        server.stop()
        expected = _digest(wire)
        assert wire.num_rows == 150_000
        for directory in (tmp_path / "snapshot", server.data):
            one = reader(directory, columns="message_id,body,arrival_seq", queues="orders")
            batches = [batch for partition in one.partitions() for batch in one.read(partition)]
            offline = pa.Table.from_batches(batches).sort_by("arrival_seq")
            assert offline.num_rows == 150_000
            assert _digest(offline) == expected
