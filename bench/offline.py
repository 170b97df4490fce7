"""Reading stores and captures with Spark: `python -m bench.offline [--rows N] [--messages N] [--turns N]`.

A store with N recoverable messages of 1 KiB whose server was stopped, and a capture of N such messages in 40
connections with 1 % of segments repeated and 1 % out of order; `local[2]`, two partitions, the sink `noop`,
best and median of the turns after two that warm up. `memory` is the anonymous memory of the Python worker
that has most. With `--no-spark` the readers alone, in this process: rows for each second of processor time,
best of the turns, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.server import Server
from bench.sparksource import QUEUE, fill, session
from msmq_fast.spark.pcap.tables import Scan, read
from msmq_fast.spark.source import spark_schema
from msmq_fast.spark.storereader import store_columns, store_options, store_reader
from tests.spark import traffic
from tests.spark.traffic import Packet, Talk

WARM: Final = 2
CONNECTIONS: Final = 40


def capture(path: Path, messages: int) -> None:
    """Connections side by side, disturbed."""
    rng = random.Random(1)
    body = rng.randbytes(1 << 16)
    talks: list[list[Packet]] = []
    for number in range(CONNECTIONS):
        talk = Talk((f"10.0.1.{number + 1}", 40_000 + number), segment=1448).open()
        asks, answers = traffic.opening()
        talk.say(asks).say(answers, 1)
        held = b""
        for count in range(1, messages // CONNECTIONS + 1):
            start = count * 37 % 60_000
            held += traffic.message(count, body[start : start + 1024], session=count % 16 == 0)
            if count % 16 == 0:
                talk.say(held).say(traffic.acknowledgment(count & 0xFFFF), 1)
                held = b""
        talk.say(held).close()
        talks.append(traffic.disturbed(talk.packets, number))
    packets: list[Packet] = []
    while any(talks):
        for side in talks:
            packets += side[:9]
            del side[:9]
    traffic.write(path, packets, traffic.ETHERNET)


def worker_memory() -> float:
    """MiB."""
    most = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if b"pyspark.daemon" in (status.parent / "cmdline").read_bytes():
                most = max(most, int(status.read_text().split("RssAnon:")[1].split()[0]))
        except (OSError, IndexError):
            continue
    return round(most / 1024, 1)


def rate(
    spark: SparkSession, source: str, options: dict[str, Any], count: int, turns: int
) -> dict[str, float]:
    """Rows a second of the turns after those that warm up."""
    seconds = []
    for _ in range(WARM + turns):
        begun = time.perf_counter()
        frame = spark.read.format(source).options(**options).load()
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - begun)
    warm = sorted(seconds[WARM:])
    found = {"best": count / warm[0], "median": count / statistics.median(warm)}
    return {name: round(value) for name, value in found.items()} | {"memory": worker_memory()}


def processor_rate(read: Callable[[], Iterator[pa.RecordBatch]], turns: int) -> int:
    """Rows for each second of processor time, best of the turns."""
    rates = []
    for _ in range(turns):
        begun = time.process_time()
        rows = sum(batch.num_rows for batch in read())
        rates.append(rows / (time.process_time() - begun))
    return round(max(rates))


def store_rows(options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """All that the tasks of a query would read."""
    checked = store_options({name: str(value) for name, value in options.items()})
    reader = store_reader(checked, spark_schema(store_columns(checked)))
    for partition in reader.partitions():
        yield from reader.read(partition)


def main(arguments: Sequence[str] | None = None) -> None:
    """One line of JSON for each measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--no-spark", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        spark = None if given.no_spark else session()
        try:
            path = Path(directory) / "traffic.pcap"
            capture(path, given.messages)
            for table in ("frames", "sessions", "packets"):
                found = captured(spark, path, table, given.messages, given.turns)
                print(json.dumps({"pcap": table, "messages": given.messages, **found}), flush=True)
            store(spark, Path(directory), given.rows, given.turns)
        finally:
            if spark is not None:
                spark.stop()


def captured(
    spark: SparkSession | None, path: Path, table: str, messages: int, turns: int
) -> dict[str, float]:
    """One table of the capture."""
    if spark is None:
        scan = Scan(table, (str(path),), frozenset((1801,)))
        return {"rows_per_processor_second": processor_rate(lambda: read(scan), turns)}
    options = {"path": str(path), "table": table, "minPartitions": 2}
    return rate(spark, "msmq_pcap", options, messages, turns)


def store(spark: SparkSession | None, directory: Path, rows: int, turns: int) -> None:
    """Fills a store, stops its server, and reads it."""
    choices: dict[str, dict[str, str]] = {
        "core": {},
        "all": {"columns": "all"},
        "without body": {"includeBody": "false"},
        "plain decoder": {"decoder": "plain"},
    }
    with Server(directory, queues=[QUEUE]) as server:
        fill(server, rows, 1024)
        server.stop()
        for name, more in choices.items():
            options = {"path": str(server.data), "queues": QUEUE, "partitions": 2, **more}
            if name == "plain decoder":
                turns = 1
            if spark is None:
                read_all = functools.partial(store_rows, options)
                found: dict[str, float] = {"rows_per_processor_second": processor_rate(read_all, turns)}
            else:
                found = rate(spark, "msmq_store", options, rows, turns)
            print(json.dumps({"store": name, "rows": rows, **found}), flush=True)


if __name__ == "__main__":
    main()
