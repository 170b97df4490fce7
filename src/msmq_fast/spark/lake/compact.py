"""`msmq-lake compact`: large files instead of many small ones, each body once, and old things go."""

from __future__ import annotations

import argparse
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.cli.exits import Exit
from msmq_fast.cli.progress import Progress
from msmq_fast.spark.lake import bronze, session, silver
from msmq_fast.spark.lake.layout import Batch, Lake, Swap, batch_directory, latest
from msmq_fast.spark.lake.output import print_result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_BYTES: Final = 256 << 20
"""About the size of a file of bronze."""
_FOLDED: Final = "compacted"
_DAILY: Final = ("silver/events", "silver/lifecycle")


def add_parser(verbs: Any) -> None:
    """The arguments of the verb."""
    parser = verbs.add_parser("compact", help="small files into large ones; drop what is too old")
    parser.add_argument("--lake", required=True, metavar="DIR")
    parser.add_argument("--keep-bronze", type=int, metavar="DAYS", help="older archived batches are deleted")
    parser.add_argument(
        "--keep-silver", type=int, metavar="DAYS", help="older events and lifecycles are deleted"
    )
    parser.add_argument("--json", action="store_true")


def run(arguments: argparse.Namespace) -> int:
    """Compacts; exit code 0."""
    lake = Lake.open(arguments.lake)
    spark = session.start("compact")
    today = datetime.now(UTC).date()
    with lake.exclusive("compact"), Progress("compact", 6) as progress:
        merged = silver.merge(spark, lake).batches
        progress.add(1)
        dropped = expire_bronze(lake, arguments.keep_bronze, today) + expire_days(
            lake, arguments.keep_silver, today
        )
        progress.add(1)
        folded = 0
        for name in ("events", "messages", "counters"):
            folded += fold(spark, lake, name)
            progress.add(1)
        folded += fold_bodies(spark, lake)
        progress.add(1)
    result = {"lake": lake.root, "merged": merged, "folded": folded, "dropped": dropped}
    print_result(result, as_json=arguments.json, text=_line)
    return Exit.OK


def fold(spark: SparkSession, lake: Lake, name: str) -> int:
    """Makes one batch of all batches of a run but the last; returns how many went into others.

    The last one stays: an archive that was killed may be about to repeat it. Batches of events must be in
    silver.
    """
    runs: dict[str, list[Batch]] = defaultdict(list)
    for batch in lake.batches(name):
        runs[batch.run].append(batch)
    count = 0
    for run, batches in runs.items():
        old = sorted(batches, key=lambda batch: batch.number)[:-1]
        if len(old) < 2:
            continue
        stage = lake.staging()
        rows = bronze.read(spark, name, [batch.path for batch in old])
        _write(lake, rows, stage, _size(lake, name, old))
        goal = batch_directory(name, run, old[-1].number)
        gone = [batch_directory(name, run, batch.number) for batch in old[:-1]]
        lake.swap(Swap(gone, [(stage, goal)]))
        count += len(gone)
    return count


def fold_bodies(spark: SparkSession, lake: Lake) -> int:
    """One batch of all bodies: each body once, if a message names it.

    Those of a batch whose messages are still to come are left as they are.
    """
    last = latest(lake.batches("messages"))
    everything = lake.batches("bodies")
    old = [batch for batch in everything if batch.run == _FOLDED or batch.number <= last.get(batch.run, -1)]
    if len(old) < 2:
        return 0
    rows = bronze.read(spark, "bodies", [batch.path for batch in old]).dropDuplicates(["body_sha256"])
    named = bronze.table(spark, lake, "messages").select("body_sha256")
    stage = lake.staging()
    _write(lake, rows.join(named, "body_sha256", "left_semi"), stage, _size(lake, "bodies", old))
    number = max((batch.number for batch in old if batch.run == _FOLDED), default=-1) + 1
    gone = [batch_directory("bodies", batch.run, batch.number) for batch in old]
    lake.swap(Swap(gone, [(stage, batch_directory("bodies", _FOLDED, number))]))
    return len(old) - 1


def expire_bronze(lake: Lake, keep: int | None, today: date) -> int:
    """Deletes batches of events, messages, counters whose rows are all older than `keep` days; how many."""
    if keep is None:
        return 0
    limit = datetime.combine(today - timedelta(days=keep), datetime.min.time(), UTC)
    gone = []
    for name, column in (("events", "event_time"), ("messages", "arrived_time"), ("counters", "taken_at")):
        for batch in lake.batches(name):
            directory = batch_directory(name, batch.run, batch.number)
            newest = lake.newest(directory, column)
            if newest is not None and newest < limit:
                gone.append(directory)
    lake.swap(Swap(gone, []))
    return len(gone)


def expire_days(lake: Lake, keep: int | None, today: date) -> int:
    """Deletes the days of silver before the last `keep`; gold stays, since it is small."""
    if keep is None:
        return 0
    limit = f"day={today - timedelta(days=keep)}"
    gone = [f"{table}/{name}" for table in _DAILY for name in lake.names(table) if "day=" <= name < limit]
    lake.swap(Swap(gone, []))
    return len(gone)


def _write(lake: Lake, rows: DataFrame, stage: str, size: int) -> None:
    rows.repartition(max(1, size // FILE_BYTES)).write.parquet(lake.path(stage))


def _size(lake: Lake, name: str, batches: list[Batch]) -> int:
    return sum(
        size for batch in batches for _, size in lake.files(batch_directory(name, batch.run, batch.number))
    )


def _line(result: dict[str, Any]) -> str:
    return (
        f"{result['lake']}: {result['merged']} batches brought into silver, {result['folded']} folded, "
        f"{result['dropped']} directories dropped"
    )
