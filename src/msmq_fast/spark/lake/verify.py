"""`msmq-lake verify`: checks the files, counts and body hashes of the lake."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import bronze, session, silver
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.output import print_result
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[["SparkSession", Lake], list[str]]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--lake", required=True, metavar="DIR", help="directory of the lake")
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Checks the lake and prints one line for each problem. Returns exit code 0 if there are none, otherwise
    1.
    """
    lake = Lake.open(arguments.lake)
    found = damaged(lake)  # Spark would stop at the first one
    if not found:
        spark = session.start("verify")
        with Progress("verify", len(CHECKS)) as progress:
            for check in CHECKS:
                found += check(spark, lake)
                progress.add(1)
    torn = [f"{table.name}/{path}" for table in lake.tables() for path in table.strays()]
    result = {"lake": lake.root, "problems": found, "torn": torn}
    print_result(result, arguments.form, text=_text)
    return Exit.FAILURE if found else Exit.OK


def damaged(lake: Lake) -> list[str]:
    """Returns one line for each file of a table that is missing, cannot be read, or has another number of
    rows than was written.
    """
    from pyarrow import ArrowException, parquet

    found = []
    for table in lake.tables():
        for file in table.files():
            path = f"{table.name}/{file.path}"
            try:
                with lake.open_file(path) as stream:
                    rows = parquet.read_metadata(stream).num_rows
            except FileNotFoundError:
                found.append(f"{path} is missing")
            except (ArrowException, OSError) as error:
                found.append(f"{path} cannot be read: {str(error).splitlines()[0]}")
            else:
                if rows != file.rows:
                    found.append(f"{path} has {rows} rows, and {file.rows} were written")
    return found


def missing_in_silver(spark: SparkSession, lake: Lake) -> list[str]:
    """Returns a line if silver lacks archived events, other than those of days that `compact --keep-silver`
    has deleted.
    """
    from pyspark.sql import functions as F

    silver.merge(spark, lake)
    known = silver.events(spark, lake).select(*silver.IDENTITY)
    events = bronze.table(spark, lake, "events")
    if (first := silver.kept(lake).first) is not None:
        events = events.where(F.to_date("event_time") >= F.lit(first))
    lost = events.join(known, list(silver.IDENTITY), "left_anti").count()
    return [f"{lost} archived events are not in silver"] if lost else []


def doubled_in_silver(spark: SparkSession, lake: Lake) -> list[str]:
    """Returns a line if silver has an event more than once."""
    from pyspark.sql import functions as F

    rows = silver.events(spark, lake).groupBy(*silver.IDENTITY).count()
    twice = rows.where(F.col("count") > 1).count()
    return [f"silver has {twice} events more than once"] if twice else []


def contradictions(spark: SparkSession, lake: Lake) -> list[str]:
    """Returns a line if one event number was archived with different contents, which happens if a store was
    set back to an earlier state unnoticed.
    """
    from pyspark.sql import functions as F

    contents = F.xxhash64("event", "event_time", "message_id", "lookup_id")
    rows = bronze.table(spark, lake, "events").groupBy(*silver.IDENTITY)
    count = rows.agg(F.min(contents).alias("low"), F.max(contents).alias("high")).where("low <> high").count()
    return [f"{count} event numbers were archived with different contents"] if count else []


def bodies_missing(spark: SparkSession, lake: Lake) -> list[str]:
    """Returns a line if bodies of messages are missing, other than those of archives with --no-bodies."""
    from pyspark.sql import functions as F

    rows = bronze.table(spark, lake, "messages").where(F.coalesce("body_kept", F.lit(True)))
    named = rows.where(F.col("body_sha256").isNotNull()).select("body_sha256")
    known = bronze.table(spark, lake, "bodies").select("body_sha256")
    count = named.distinct().join(known, "body_sha256", "left_anti").count()
    return [f"{count} bodies of archived messages are missing"] if count else []


def bodies_damaged(spark: SparkSession, lake: Lake) -> list[str]:
    """Returns a line if a stored body does not match its hash."""
    from pyspark.sql import functions as F

    rows = bronze.table(spark, lake, "bodies")
    count = rows.where(F.sha2("body", 256) != F.col("body_sha256")).count()
    return [f"{count} bodies are damaged"] if count else []


CHECKS: Final[tuple[Check, ...]] = (
    missing_in_silver,
    doubled_in_silver,
    contradictions,
    bodies_missing,
    bodies_damaged,
)


def _text(result: dict[str, Any]) -> str:
    lines = [f"{result['lake']}: {problem}" for problem in result["problems"]]
    if result["torn"]:
        lines.append(f"{result['lake']}: {len(result['torn'])} files were never committed and do not count")
    return "\n".join(lines) if lines else f"{result['lake']}: everything fits"


COMMAND = Command(
    name="verify",
    help="check files, counts and hashes of the lake",
    description="""The exit code is 0 if everything fits, 1 with a line for each problem if not.""",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(Example("--lake lake", "the whole lake"),),
)
