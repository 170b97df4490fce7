"""`msmq-lake audit`: determines the fate of every message of a day, and whether the lake can prove it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import bronze, changes, gold, lifecycle, reconcile, session, silver, timeline
from msmq_fast.spark.lake.arguments import day_argument
from msmq_fast.spark.lake.coverage import Wanted, coverage
from msmq_fast.spark.lake.daytables import DayTables
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.output import print_result
from msmq_fast.spark.lake.rules import Rules
from msmq_fast.spark.lake.sequences import sequence_gaps
from msmq_fast.spark.lake.summary import COUNTS, audited, outcome, undelivered
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import duration, number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STEPS: Final = 15

_READ: Final = ("bronze/events", "bronze/counters", "silver/events")
"""The tables whose size tells how much an audit has to read."""
_SMALL_BYTES: Final = 16 << 20
"""Bytes of these tables, about half a million events, up to which a small session needs less time."""
_FEW_ROWS: Final = 50_000
"""Rows of these tables up to which the driver reads and writes all tables."""

_WINDOWS_UP_TO: Final = 200_000
"""Number of events up to which sorting them twice costs less than starting the Python workers that follow
sequences with their state.
"""

_VERDICTS: Final = {
    "ok": "nothing lost",
    "lost": "messages are lost",
    "unproven": "unproven, `msmq-lake report` says why",
    "undelivered": "nothing lost",
}


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--lake", required=True, metavar="DIR", help="directory of the lake")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--day",
        type=day_argument,
        metavar="YYYY-MM-DD",
        help="day to audit, in UTC; default: every day that changed since its last audit",
    )
    which.add_argument("--all", action="store_true", help="audit every day in the lake")
    parser.add_argument(
        "--lookback",
        type=number(0, 100_000),
        default=7,
        metavar="DAYS",
        help="number of days before and after that are searched, too; default: 7",
    )
    parser.add_argument(
        "--grace",
        type=duration(315_360_000),
        default=3600.0,
        metavar="TIME",
        help="how long a message may be on its way, and how old the newest data may be; default: 1h",
    )
    parser.add_argument(
        "--poison-aborts",
        type=number(1, 100_000),
        default=3,
        metavar="N",
        help="number of aborted receives that make a message poison; default: 3",
    )
    parser.add_argument(
        "--gone",
        action="append",
        default=[],
        metavar="NAME",
        help="name or GUID of a queue manager that was removed: its events may end; may be repeated",
    )
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Audits the requested days. Returns exit code 0 whatever the verdicts are, because even a bad verdict
    means that the command succeeded.
    """
    lake = Lake.open(arguments.lake)
    rules = Rules(
        arguments.lookback,
        arguments.grace,
        arguments.poison_aborts,
        datetime.now(UTC),
        tuple(arguments.gone),
    )
    engine = _Engine(lake)
    if changes.unmerged(lake):
        silver.merge(engine.spark, lake)
    days = [arguments.day] if arguments.day else silver.days(lake)
    if not days:
        raise CommandError(Exit.EMPTY, f"{arguments.lake} has no events yet: run `msmq-lake archive` first")
    closed = {day for day in days if _closed(lake, day)}
    if arguments.day in closed:
        raise CommandError(
            Exit.REFUSED,
            f"{arguments.day} cannot be audited again: `compact --keep-bronze` deleted the counts of "
            f"the queue managers; `msmq-lake report --day {arguments.day}` shows its last audit",
        )
    open_days = [day for day in days if day not in closed]
    if arguments.day or arguments.all:
        fresh = _audit_all(engine, open_days, rules)
    else:
        fresh = _audit_changed(engine, open_days, rules)
    results = [outcome(lake, day) | {"audited_now": day in fresh} for day in days]
    _show(results, arguments.form)
    return Exit.OK


class _Engine:
    """The Spark session of an audit of a lake, started when it is first needed: if no day changed, the
    command needs no JVM.
    """

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    @cached_property
    def spark(self) -> SparkSession:
        """The session."""
        files = [file for name in _READ for file in self.lake.table(name).files()]
        data = session.Data.LARGE
        if sum(file.rows for file in files) <= _FEW_ROWS:
            data = session.Data.FEW
        elif sum(file.size for file in files) < _SMALL_BYTES:
            data = session.Data.SMALL
        return session.start("audit", data=data)


def _audit_all(engine: _Engine, days: list[date], rules: Rules) -> set[date]:
    """Audits the days. Returns them."""
    with Progress("audit", _STEPS * len(days)) as progress:
        for day in days:
            audit(engine.spark, engine.lake, day, rules, done=lambda: progress.add(1))
    return set(days)


def _audit_changed(engine: _Engine, days: list[date], rules: Rules) -> set[date]:
    """Audits the days that changed since their last audit. Returns them."""
    certain, doubtful = changes.outdated(engine.lake, days, rules)
    done = _audit_all(engine, certain, rules)
    if not doubtful:
        return done
    return done | _audit_all(engine, changes.affected(engine.spark, engine.lake, doubtful, rules), rules)


def _closed(lake: Lake, day: date) -> bool:
    """Returns whether a day was audited with counts of the queue managers that have since been deleted. Such
    a day must not be audited again: without its counts, nothing could contradict its events.
    """
    first = bronze.counted_since(lake)
    return first is not None and day < first and day in audited(lake)


def audit(
    spark: SparkSession, lake: Lake, day: date, rules: Rules, *, done: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Rewrites silver/lifecycle and the gold tables of one day. Returns the summary of the day. silver/events
    must be up to date.

    Raises CommandError if the lake has no events of that day, and Conflict if another process audits it, too.
    """
    if day not in silver.days(lake):
        raise CommandError(
            Exit.EMPTY, f"the lake has no events of {day}; it has {_ranges(silver.days(lake))}"
        )
    with DayTables(spark, lake, day, done) as tables:
        note = changes.note(lake, day, rules)
        tables.note(note)
        _fill(spark, lake, day, rules, tables, sum(json.loads(note["events"]).values()))
        tables.commit()
    return outcome(lake, day)


def _fill(spark: SparkSession, lake: Lake, day: date, rules: Rules, tables: DayTables, searched: int) -> None:
    """Writes the tables of one day. `searched`: the number of events of the days around it."""
    from pyspark.sql import functions as F

    wanted = Wanted.around(
        day, rules.lookback, rules.now, rules.grace_s, gone=rules.gone, dropped=silver.kept(lake).ends
    )
    history = silver.events(spark, lake)
    counters = bronze.table(spark, lake, "counters")
    proof = tables.write("gold/coverage", coverage(history, counters, wanted))
    window = history.where(F.col("day").between(F.lit(wanted.first), F.lit(wanted.last)))
    restored = timeline.restored(proof)
    events = timeline.named(timeline.single(window, restored))
    lives = lifecycle.lifecycle(lifecycle.stations(events))
    everything = tables.keep(reconcile.judged(lives, proof, rules.grace_s))
    own = tables.write(
        "silver/lifecycle", everything.where(F.col("day") == F.lit(day)).drop("day"), whole=False
    )
    own = own.withColumn("day", F.lit(day))
    gaps = sequence_gaps(events, everything, proof, stateful=searched > _WINDOWS_UP_TO)
    gaps = gaps.where(F.col("day") == F.lit(day)).drop("day")
    found = tables.write("gold/sequence_gaps", gaps)
    today = events.where(F.col("day") == F.lit(day))
    tables.write("gold/latency", gold.latency(own))
    tables.write("gold/latency_day", gold.latency(own, whole_day=True))
    tables.write("gold/waiting", gold.waiting(everything, day))
    tables.write("gold/nack_by_class", gold.nack_by_class(today))
    tables.write("gold/undelivered", gold.undelivered(own))
    tables.write("gold/duplicates", gold.duplicates(own, events))
    tables.write("gold/poison", gold.poison(own, bronze.table(spark, lake, "messages"), rules.poison_aborts))
    bases = tables.keep(gold.bases(counters, proof))
    once = gold.steps(timeline.single(history, restored))
    tables.write("gold/queue_minute", gold.queue_minute(once, bases, day))
    compared = gold.counters(gold.steps(history), counters, proof, bases, day)
    counted = tables.write("gold/counters", gold.with_uncounted(compared, history, day))
    tables.write("gold/reconciliation", reconcile.reconciliation(own, found, counted).drop("day"))


def _ranges(days: list[date]) -> str:
    if not days:
        return "nothing yet"
    return str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _show(results: list[dict[str, Any]], form: Form) -> None:
    """Prints one object for each day; for people, a line for each day that was audited now, and one line for
    the others.
    """
    others = Counter(result["verdict"] for result in results if not result["audited_now"])
    for result in results:
        if result["audited_now"] or form is not Form.TABLE:
            print_result(result, form, text=_line)
    if others and form is Form.TABLE:
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(others.items()))
        days = (
            "1 day is as it was at its"
            if others.total() == 1
            else f"{others.total()} days are as they were at their"
        )
        print(f"{days} last audit: {verdicts}", flush=True)


def _line(result: dict[str, Any]) -> str:
    counts = ", ".join(
        f"{result[name]} {name}" for name in COUNTS if result[name] or name in ("sent", "lost")
    )
    verdict = "; ".join([_VERDICTS[result["verdict"]], *undelivered(result)])
    return f"{result['day']}: {verdict} ({counts})"


COMMAND = Command(
    name="audit",
    help="account for every message of a day",
    description="""Determines for every message whether it was delivered, is undelivered, or was lost. The
        exit code is 0 for every verdict; it is not 0 if the audit failed.""",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(
        Example("--lake lake", "every day that changed since its last audit"),
        Example(
            "--lake lake --day yesterday --grace 2h", "one day; messages may be on their way for two hours"
        ),
    ),
)
