"""format("msmq") inside Spark itself: found by its name, batch and stream, errors as users see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from msmq_fast.spark import register
from tests.spark.fakeserver import FakeServer, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


@pytest.fixture(scope="module")
def orders() -> Iterator[FakeServer]:
    """60 messages in `orders`, 40 in `audit`."""
    with serving() as server:
        for name, count in (("orders", 60), ("audit", 40)):
            server.manager.create(name)
            for index in range(count):
                server.manager.send(name, f"{name} {index}".encode(), priority=index % 8, label="étiquette")
        yield server


def rows_of(spark: SparkSession, server: FakeServer, **options: Any) -> DataFrame:
    return spark.read.format("msmq").options(url=server.url, subscribe="orders,audit", **options).load()


def streaming(
    spark: SparkSession, server: FakeServer, directory: Path, **options: Any
) -> tuple[StreamingQuery, Any]:
    """A query of what is there, into directories of its batches, and its last progress."""

    def write(batch: DataFrame, number: int) -> None:
        batch.coalesce(1).write.mode("overwrite").parquet(str(directory / "out" / f"batch={number}"))

    query = (
        spark.readStream.format("msmq")
        .options(url=server.url, subscribe="orders,audit", **options)
        .load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(100)
    return query, query.lastProgress


def written(directory: Path) -> list[dict[str, Any]]:
    files = sorted((directory / "out").glob("batch=*/*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_a_batch(spark: SparkSession, orders: FakeServer) -> None:
    found = rows_of(spark, orders, minPartitions=4, columns="core").where("queue like '%orders'").collect()
    assert sorted(row["body"] for row in found) == sorted(b"orders %d" % index for index in range(60))
    assert {row["label"] for row in found} == {"étiquette"}
    assert found[0]["arrived_time"].year == 2023


def test_a_stream_that_keeps_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    with serving() as server:
        for name in ("orders", "audit"):
            server.manager.create(name)
            for index in range(30):
                server.manager.send(name, b"%d" % index)
        query, progress = streaming(
            spark, server, tmp_path, startingOffsets="earliest", maxRowsPerTrigger=40, includeBody="false"
        )
        assert query.exception() is None
        assert progress["sources"][0]["endOffset"] is not None
        assert len(written(tmp_path)) == 60
        assert "body" not in written(tmp_path)[0]
        server.manager.send("audit", b"more")
        query, _ = streaming(
            spark, server, tmp_path, startingOffsets="earliest", maxRowsPerTrigger=40, includeBody="false"
        )
        assert len({row["message_id"] for row in written(tmp_path)}) == len(written(tmp_path)) == 61


def test_a_stream_that_removes_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    with serving() as server:
        for name in ("orders", "audit"):
            server.manager.create(name)
            for index in range(20):
                server.manager.send(name, b"%d" % index)
        query, _ = streaming(
            spark, server, tmp_path, onSourceCommit="remove", subscription="lake", maxRowsPerTrigger=25
        )
        assert query.exception() is None
        assert len({row["message_id"] for row in written(tmp_path)}) == len(written(tmp_path)) == 40
        assert not any(queue.held for queue in server.manager.queues.values())


def test_errors_reach_the_user_in_one_line(spark: SparkSession, orders: FakeServer, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="did you mean 'subscribePattern'"):
        spark.read.format("msmq").options(url=orders.url, subscribePatern=".*").load()
    with pytest.raises(PySparkException, match="no queue 'nowhere' on fake"):
        spark.read.format("msmq").options(url=orders.url, subscribe="nowhere").load().count()
    with pytest.raises(PySparkException, match="select them with option 'columns'"):
        spark.read.schema("a int").format("msmq").options(url=orders.url, subscribe="orders").load().count()


def test_registering_by_hand(spark: SparkSession, orders: FakeServer) -> None:
    register(spark)
    assert rows_of(spark, orders, columns="arrival_seq", maxRowsPerPartition=50).count() == 100


def test_a_table_of_the_catalog(spark: SparkSession, fake: FakeServer) -> None:
    """Spark adds `provider` and more to its options, which was refused; to read it, a query repeats them."""
    fake.manager.create("orders")
    fake.manager.send("orders", b"1")
    options = f"(url '{fake.url}', subscribe 'orders')"
    properties = "comment 'ours' tblproperties ('owner_team' = 'a', 'cost.centre' = '7')"
    spark.sql(f"create table of_catalog using msmq options {options} {properties}")
    try:
        assert spark.sql(f"select body from of_catalog with {options}").count() == 1  # noqa: S608
    finally:
        spark.sql("drop table of_catalog")
    spark.sql(f"create temporary view of_session using msmq options {options}")
    assert spark.sql("select body from of_session").count() == 1
    spark.catalog.dropTempView("of_session")
