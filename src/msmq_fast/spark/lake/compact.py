"""`msmq-lake compact`: merges small files, stores each body once, and deletes old data."""

from __future__ import annotations

import argparse
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import bronze, manifest, session, silver
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import FOLDED, RECENT, Batch, Lake, Swap, batch_directory, latest
from msmq_fast.spark.lake.output import print_result
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_BYTES: Final = 256 << 20
"""Approximate size of a bronze file in bytes."""
_EXPIRED: Final = "_state/expired.json"
"""The file that maps each run to the last of its batches of messages that was deleted by age."""
_COUNTED_ON_S: Final = 3600.0
"""Maximum time of a batch of an archive, in seconds."""
_TIMES: Final = {"events": "event_time", "messages": "arrived_time", "counters": "taken_at"}


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
    with lake.exclusive("compact"), Progress("compact", 6) as progress:
        merged = silver.merge(spark, lake).batches
        progress.add(1)
        dropped = expire_bronze(lake, arguments.keep_bronze, today) + expire_days(
            lake, arguments.keep_silver, today
        )
        progress.add(1)
        folded = 0
        for name in _TIMES:
            folded += fold(spark, lake, name)
            progress.add(1)
        folded += fold_bodies(spark, lake)
        progress.add(1)
    result = {"lake": lake.root, "merged": merged, "folded": folded, "dropped": dropped}
    print_result(result, arguments.form, text=_line)
    return Exit.OK


def fold(spark: SparkSession, lake: Lake, name: str) -> int:
    """Merges batches of the bronze table `name`: those batches of a run whose last rows are of the same day
    become one batch. Returns how many batches were merged into others.

    Merging by day allows old batches to be deleted as a whole later, and avoids that a merged batch is
    rewritten each time. The last batch of a run is not merged: a killed archive may be about to repeat it.
    All batches of events must have been merged into silver before.
    """
    runs: dict[str, list[Batch]] = defaultdict(list)
    for batch in lake.batches(name):
        runs[batch.run].append(batch)
    count = 0
    for batches in runs.values():
        old = sorted(batches, key=lambda batch: batch.number)[:-1]
        for _, group in groupby(old, key=lambda batch: _last_day(lake, name, batch)):
            count += _fold(spark, lake, name, list(group))
    return count


def _fold(spark: SparkSession, lake: Lake, name: str, old: list[Batch]) -> int:
    if len(old) < 2:
        return 0
    stage = lake.staging()
    promised = sum(sum(manifest.counted(lake, lake.relative(batch.path)).values()) for batch in old)
    rows = bronze.read(spark, name, [batch.path for batch in old])
    if (written := _write(lake, rows, stage, _size(lake, name, old))) != promised:
        raise CommandError(
            Exit.FAILURE,
            f"{len(old)} batches of bronze/{name} up to {old[-1].path} have {promised} rows, and Spark read "
            f"{written} of them: these batches were not changed; run `msmq-lake verify`",
        )
    target = batch_directory(name, old[-1].run, old[-1].number)
    gone = [batch_directory(name, batch.run, batch.number) for batch in old[:-1]]
    lake.swap(Swap(gone, [(stage, target)]))
    return len(gone)


def fold_bodies(spark: SparkSession, lake: Lake) -> int:
    """Merges all batches of bodies into one batch, which has each body once, and lacks bodies to which no
    message refers. Returns how many batches were merged into others.

    A batch of bodies is left unchanged as long as its messages are not in the lake. A body in a batch that is
    recent, or was recent an hour ago, is kept even if no message refers to it: a task of a running archive
    may have found the body there, and therefore not stored it again for its own messages.
    """
    everything = lake.batches("bodies")
    settled = _newer(lake.read_json(_EXPIRED) or {}, latest(lake.batches("messages")))
    old = [batch for batch in everything if batch.run == FOLDED or batch.number <= settled.get(batch.run, -1)]
    if not old:
        return 0
    recent = {batch.path for batch in lake.recent("bodies", RECENT) if batch.run != FOLDED}
    recent |= {batch.path for batch in old if batch.run == FOLDED and lake.age_s(batch) < _COUNTED_ON_S}
    fresh = [batch.path for batch in old if batch.path in recent]
    others = [batch.path for batch in old if batch.path not in fresh]
    named = bronze.table(spark, lake, "messages").select("body_sha256")
    known = bronze.read(spark, "bodies", others)
    if len(old) == 1 and (fresh or known.join(named, "body_sha256", "left_anti").isEmpty()):
        return 0
    rows = known.join(named, "body_sha256", "left_semi").unionByName(bronze.read(spark, "bodies", fresh))
    stage = lake.staging()
    _write(lake, rows.dropDuplicates(["body_sha256"]), stage, _size(lake, "bodies", old))
    number = max((batch.number for batch in old if batch.run == FOLDED), default=-1) + 1
    gone = [batch_directory("bodies", batch.run, batch.number) for batch in old]
    lake.swap(Swap(gone, [(stage, batch_directory("bodies", FOLDED, number))]))
    return len(old) - 1


def expire_bronze(lake: Lake, keep: int | None, today: date) -> int:
    """Deletes batches of events, messages and counters whose rows are all older than `keep` days. Returns the
    number of deleted batches.

    Keeps a batch of events that was not merged into silver yet, since an archive may have just written it.
    """
    if keep is None:
        return 0
    limit = today - timedelta(days=keep)
    merged = silver.merged(lake)
    gone, expired = [], dict(lake.read_json(_EXPIRED) or {})
    uncounted = False
    for name in _TIMES:
        for batch in lake.batches(name):
            if name == "events" and batch.number > merged.get(batch.run, -1):
                continue
            newest = _last_day(lake, name, batch)
            if newest is not None and newest < limit:
                gone.append(batch_directory(name, batch.run, batch.number))
                uncounted |= name == "counters"
                if name == "messages":
                    expired[batch.run] = max(batch.number, expired.get(batch.run, -1))
    if uncounted:  # first: a day whose counts are gone must not be audited without them
        bronze.note_counted_since(lake, limit)
    lake.swap(Swap(gone, []), then=(_EXPIRED, expired))
    return len(gone)


def expire_days(lake: Lake, keep: int | None, today: date) -> int:
    """Deletes the days of silver before the last `keep` days. Returns how many directories were deleted. Gold
    is kept, since it is small.
    """
    return 0 if keep is None else silver.forget(lake, today - timedelta(days=keep))


def _newer(*numbers: dict[str, int]) -> dict[str, int]:
    """Returns the greatest batch number of each run in several mappings from runs to batch numbers."""
    found: dict[str, int] = {}
    for known in numbers:
        for run, greatest in known.items():
            found[run] = max(greatest, found.get(run, -1))
    return found


def _last_day(lake: Lake, name: str, batch: Batch) -> date | None:
    """Returns the last day of the rows of a batch, None if it is unknown."""
    newest = lake.newest(lake.relative(batch.path), _TIMES[name])
    return None if newest is None else newest.date()


def _write(lake: Lake, rows: DataFrame, stage: str, size: int) -> int:
    """Writes rows, `size` bytes in total, to files of about FILE_BYTES each. Returns the number of rows."""
    rows.repartition(max(1, size // FILE_BYTES)).write.parquet(lake.path(stage))
    found = manifest.counted(lake, stage)
    manifest.note(lake, stage, found)
    return sum(found.values())


def _size(lake: Lake, name: str, batches: list[Batch]) -> int:
    return sum(
        size for batch in batches for _, size in lake.files(batch_directory(name, batch.run, batch.number))
    )


def _line(result: dict[str, Any]) -> str:
    return (
        f"{result['lake']}: {result['merged']} batches brought into silver, {result['folded']} folded, "
        f"{result['dropped']} directories dropped"
    )


COMMAND = Command(
    name="compact",
    help="merge small files of the lake, and delete old data",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(Example("--lake lake --keep-bronze 30 --keep-silver 400", "with limits in days"),),
)
