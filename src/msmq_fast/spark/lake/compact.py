"""`msmq-lake compact`: merges small files, stores each body once, and deletes old data."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import bronze, session, silver
from msmq_fast.spark.lake.delta import FILE_BYTES, RETENTION_H
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import REPLAYS, ROWS, Lake
from msmq_fast.spark.lake.output import print_result
from msmq_fast.spark.lake.tables import BODIES, COUNTED_ON_S, table_schema
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MERGED: Final = ("events", "messages", "counters")
"""Tables of bronze whose small files are merged, and whose old days are deleted."""
_BATCH_S: Final = 3600.0
"""Maximum time of a batch of an archive, in seconds."""


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--lake", required=True, metavar="DIR", help="directory of the lake")
    parser.add_argument(
        "--keep-bronze",
        type=number(0, 100_000),
        metavar="DAYS",
        help="delete archived batches that are older than this many days",
    )
    parser.add_argument(
        "--keep-silver",
        type=number(0, 100_000),
        metavar="DAYS",
        help="delete events and lifecycles that are older than this many days",
    )
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Compacts the lake. Returns exit code 0."""
    lake = Lake.open(arguments.lake)
    spark = session.start("compact")
    today = datetime.now(UTC).date()
    with Progress("compact", 7) as progress:
        merged = silver.merge(spark, lake).batches
        progress.add(1)
        dropped = expire_bronze(lake, arguments.keep_bronze, today) + expire_days(
            lake, arguments.keep_silver, today
        )
        progress.add(1)
        folded = 0
        for name in _MERGED:
            folded += lake.table(f"bronze/{name}").compact()
            progress.add(1)
        folded += fold_bodies(spark, lake)
        progress.add(1)
        sweep(lake)
        progress.add(1)
    result = {"lake": lake.root, "merged": merged, "folded": folded, "dropped": dropped}
    print_result(result, arguments.form, text=_line)
    return Exit.OK


def fold_bodies(spark: SparkSession, lake: Lake, now: float | None = None) -> int:
    """Rewrites the files of bodies, so that each body is stored once, and bodies to which no message refers
    are deleted. Returns how many files there are fewer. `now`: the present time; default: that of the clock.

    A file is left unchanged until it is two hours old: a task of a running archive may have found a body
    there, and therefore not stored it again for its own messages, which are not in the lake yet.
    """
    from pyspark.sql import functions as F

    from msmq_fast.spark.lake import frames

    limit = (time.time() if now is None else now) - COUNTED_ON_S - _BATCH_S
    table = lake.table("bronze/bodies")
    old = [file for file in table.files() if file.modified < limit]
    if not old:
        return 0
    named = bronze.table(spark, lake, "messages").select("body_sha256")
    known = bronze.read(spark, lake, "bodies", old)
    once = known.join(named, "body_sha256", "left_semi").dropDuplicates(["body_sha256"])
    if len(old) == 1 and once.agg(F.count("*")).collect()[0][0] == old[0].rows:
        return 0
    shares = max(1, sum(file.size for file in old) // FILE_BYTES)
    written = frames.write(once.repartition(shares), lake, table.name)
    table.commit(written, table_schema(BODIES), removed=old)
    return len(old) - len(written)


def expire_bronze(lake: Lake, keep: int | None, today: date) -> int:
    """Deletes the events, messages and counters of days before the last `keep` days. Returns the number of
    deleted days, counted for each table.

    Keeps events that were not merged into silver yet, since an archive may have just written them.
    """
    if keep is None:
        return 0
    limit = today - timedelta(days=keep)
    fresh = {file.path for file in lake.table("bronze/events").since(silver.merged(lake)).files}
    count = 0
    for name in _MERGED:
        table = lake.table(f"bronze/{name}")
        gone = [file for file in table.files() if (file.partition["day"] or "9") < str(limit)]
        if name == "events":
            gone = [file for file in gone if file.path not in fresh]
        if not gone:
            continue
        if name == "counters":  # first: a day whose counts are gone must not be audited without them
            bronze.note_counted_since(lake, limit)
        table.remove(gone)
        count += len({file.partition["day"] for file in gone})
    return count


def expire_days(lake: Lake, keep: int | None, today: date) -> int:
    """Deletes the days of silver before the last `keep` days. Returns how many days were deleted, counted for
    each table. Gold is kept, since it is small.
    """
    return 0 if keep is None else silver.forget(lake, today - timedelta(days=keep))


def sweep(lake: Lake) -> None:
    """Deletes files that no table has had for a week, and what a killed replay has left."""
    for table in lake.tables():
        table.vacuum()
    for name in lake.names(REPLAYS):
        if name.endswith(ROWS) and lake.age_s(f"{REPLAYS}/{name}") > RETENTION_H * 3600:
            lake.delete(f"{REPLAYS}/{name}")


def _line(result: dict[str, Any]) -> str:
    return (
        f"{result['lake']}: {result['merged']} batches brought into silver, {result['folded']} files folded, "
        f"{result['dropped']} days dropped"
    )


COMMAND = Command(
    name="compact",
    help="merge small files of the lake, and delete old data",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(Example("--lake lake --keep-bronze 30 --keep-silver 400", "with limits in days"),),
)
