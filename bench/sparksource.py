"""Reading queues with Spark: `python -m bench.sparksource [--rows N]`.

A fresh server and a queue of recoverable messages; `local[2]`, two partitions, the sink `noop`, best and
median of the turns after those that warm up. Others take turns with it, so that all have the same weather:
`msmq_tuples` is the same query of the same server through a source that makes tuples of its columns;
`tuple_path` and `ready_batch` read as many rows of ten columns without a server (`bench.sparkpaths`). Then a
stream beside a sender of 200 messages a second: from the send to the moment at which `foreachBatch` has it.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

import msmq_fast
from bench import sparkpaths
from bench.process import family_cpu_s
from bench.server import Server
from msmq_fast import sync
from msmq_fast.spark.datasource import MsmqDataSource
from msmq_fast.spark.source import MsmqReader, checked_options

QUEUE: Final = "bench"
TEN: Final = "ten columns with body"
CHOICES: Final = {
    "core": "core",
    TEN: "arrival_seq,lookup_id,message_id,priority,class,label,body_size,sent_time,arrived_time,body",
    "arrival_seq, body": "arrival_seq,body",
}
WARM: Final = 8


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


@dataclass
class Reading:
    """One source and its options; what its turns took."""

    source: str
    columns: str
    options: dict[str, str]
    seconds: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)  # seconds of processor time, of everybody

    def turn(self, spark: SparkSession) -> None:
        """Read everything once."""
        used, begun = family_cpu_s(os.getpid()), time.perf_counter()
        frame = spark.read.format(self.source).options(**self.options).load()
        frame.write.format("noop").mode("overwrite").save()
        self.seconds.append(time.perf_counter() - begun)
        self.used.append(family_cpu_s(os.getpid()) - used)

    def figures(self, rows: int) -> dict[str, object]:
        """Rows a second and microseconds of processor time a row, of the turns that were warm."""
        seconds, used = self.seconds[WARM:], self.used[WARM:]
        return {
            "source": self.source,
            "columns": self.columns,
            "best": round(rows / min(seconds)),
            "median": round(rows / statistics.median(seconds)),
            "cpu_us": round(statistics.median(used) / rows * 1e6, 1),
        }


def rates(spark: SparkSession, columns: str, readings: Sequence[Reading], rows: int, turns: int) -> None:
    """Print the figures of each, and how many times the first is quicker than the others."""
    for _ in range(WARM + turns):
        for reading in readings:
            reading.turn(spark)
    for reading in readings:
        print(json.dumps(reading.figures(rows)), flush=True)
    first, *others = readings
    for other in others:
        ratios = [theirs / ours for ours, theirs in zip(first.seconds, other.seconds, strict=True)][WARM:]
        print(
            json.dumps(
                {
                    "columns": columns,
                    "times": other.source,
                    "median": round(statistics.median(ratios), 2),
                    "turns": [round(ratio, 2) for ratio in ratios],
                }
            ),
            flush=True,
        )


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
    parser.add_argument("--columns", choices=list(CHOICES), help="only these")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args(arguments)
    with Server(given.directory, queues=[QUEUE], settings="[bulk]\nshare = 0\n") as server:
        url = f"msmq+bulk://127.0.0.1:{server.admin_port}"
        spark = session()
        spark.dataSource.register(TupleSource)
        spark.dataSource.register(sparkpaths.TuplePath)
        spark.dataSource.register(sparkpaths.ReadyBatch)
        if given.only != "latency":
            fill(server, given.rows, given.body)
            path = server.data.parent / "tuples"
            sparkpaths.fill(path, given.rows, given.body)
            plain = {"path": str(path), "rows": str(given.rows), "parts": "2"}
            for what, columns in CHOICES.items():
                if given.columns not in (None, what):
                    continue
                options = {"url": url, "subscribe": QUEUE, "columns": columns, "minPartitions": "2"}
                readings = [Reading(source, what, options) for source in ("msmq", "msmq_tuples")]
                if what == TEN:
                    readings += [Reading(source, what, plain) for source in ("tuple_path", "ready_batch")]
                rates(spark, what, readings, given.rows, given.turns)
        if given.only != "rates" and given.latency:
            found = latency(spark, server, url, given.latency)
            print(json.dumps({"latency_ms_at_200_per_second": {k: round(v) for k, v in found.items()}}))
        spark.stop()


if __name__ == "__main__":
    main()
