"""Reading queues with Spark: `python -m bench.sparksource [--rows N]`.

A fresh server and a queue of recoverable messages; `local[2]`, two partitions, the sink `noop`, best and
median of the turns after two that warm up. `msmq_tuples` is the same query through a source that gives Spark
rows as Python tuples. Then a stream beside a sender of 200 messages a second: from the send to the moment at
which `foreachBatch` has the row.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

import msmq_fast
from bench.process import family_cpu_s
from bench.server import Server
from msmq_fast import sync
from msmq_fast.spark.datasource import MsmqDataSource
from msmq_fast.spark.source import MsmqReader, checked_options

QUEUE: Final = "bench"
CHOICES: Final = {
    "core": "core",
    "ten columns with body": "arrival_seq,lookup_id,message_id,priority,class,label,body_size,sent_time,"
    "arrived_time,body",
    "arrival_seq, body": "arrival_seq,body",
}
WARM: Final = 2


class _TupleReader(MsmqReader):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        for batch in super().read(partition):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class TupleSource(MsmqDataSource):
    """The same rows, one Python tuple each."""

    @classmethod
    def name(cls) -> str:
        return "msmq_tuples"

    def reader(self, schema: StructType) -> MsmqReader:
        return _TupleReader(checked_options(dict(self.options), schema), schema)


def session() -> SparkSession:
    """Two cores, no UI."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def fill(server: Server, rows: int, body: int) -> None:
    """Recoverable messages of all priorities."""
    content = os.urandom(body)
    with (
        sync.connect(f"unix:{server.socket}") as connection,
        connection.open(QUEUE, msmq_fast.Access.SEND) as queue,
    ):
        queue.send_many(
            msmq_fast.Message(content, label="order", priority=n % 8, delivery=msmq_fast.RECOVERABLE)
            for n in range(rows)
        )


def rate(
    spark: SparkSession, source: str, options: dict[str, str], rows: int, turns: int
) -> dict[str, float]:
    """Rows a second of the turns after the first two; microseconds of processor time a row, of everybody."""
    seconds = []
    used = 0.0
    for turn in range(WARM + turns):
        if turn == WARM:
            used = family_cpu_s(os.getpid())
        begun = time.perf_counter()
        frame = spark.read.format(source).options(**options).load()
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - begun)
    warm = sorted(seconds[WARM:])
    used = (family_cpu_s(os.getpid()) - used) / turns
    return {"best": rows / warm[0], "median": rows / statistics.median(warm), "cpu_us": used / rows * 1e6}


def latency(spark: SparkSession, server: Server, url: str, seconds: float) -> dict[str, float]:
    """Milliseconds from send to row at 200 messages a second."""
    found: list[float] = []

    def look(batch: DataFrame, number: int) -> None:
        bodies = batch.select("body").toArrow().column(0).to_pylist()
        now = time.time()
        found.extend(now - float(body) for body in bodies)

    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            spark.readStream.format("msmq")
            .options(url=url, subscribe=QUEUE, columns="arrival_seq,body", startingOffsets="latest")
            .load()
            .writeStream.foreachBatch(look)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        with (
            sync.connect(f"unix:{server.socket}") as connection,
            connection.open(QUEUE, msmq_fast.Access.SEND) as queue,
        ):
            while query.lastProgress is None:
                time.sleep(0.1)
            begun, sent = time.perf_counter(), 0
            skipped = None
            while (passed := time.perf_counter() - begun) < seconds:
                if skipped is None and passed > seconds / 3:
                    skipped = len(found)
                while sent < passed * 200:
                    queue.send(msmq_fast.Message(repr(time.time()).encode(), delivery=msmq_fast.RECOVERABLE))
                    sent += 1
                time.sleep(0.001)
        deadline = time.monotonic() + 30
        while len(found) < sent and time.monotonic() < deadline:
            time.sleep(0.05)
        query.stop()
    warm = sorted(found[skipped or 0 :])
    cuts = statistics.quantiles(warm, n=100)
    return {"n": len(warm), "p50": cuts[49] * 1e3, "p95": cuts[94] * 1e3, "p99": cuts[98] * 1e3}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one JSON object a line."""
    parser = argparse.ArgumentParser(prog="python -m bench.sparksource", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--body", type=int, default=1024, help="bytes (1024)")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--latency", type=float, default=30, help="seconds of the stream, 0: none (30)")
    parser.add_argument("--only", choices=["rates", "latency"])
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args(arguments)
    with Server(given.directory, queues=[QUEUE], settings="[bulk]\nshare = 0\n") as server:
        url = f"msmq+bulk://127.0.0.1:{server.admin_port}"
        spark = session()
        spark.dataSource.register(TupleSource)
        if given.only != "latency":
            fill(server, given.rows, given.body)
            for source in ("msmq", "msmq_tuples"):
                for what, columns in CHOICES.items():
                    options = {"url": url, "subscribe": QUEUE, "columns": columns, "minPartitions": "2"}
                    found = rate(spark, source, options, given.rows, given.turns if source == "msmq" else 2)
                    print(
                        json.dumps(
                            {"source": source, "columns": what, **{k: round(v, 1) for k, v in found.items()}}
                        )
                    )
        if given.only != "rates" and given.latency:
            found = latency(spark, server, url, given.latency)
            print(json.dumps({"latency_ms_at_200_per_second": {k: round(v) for k, v in found.items()}}))
        spark.stop()


if __name__ == "__main__":
    main()
