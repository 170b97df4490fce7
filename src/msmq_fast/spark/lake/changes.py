"""Finds the days whose audit would have another result than their last one, so that an audit need not repeat
the others.

Every audit stores a note in gold/audits: its rules, how many events the lake had of each day that it
searched, and how many counts of each day. These tables only gain rows, until a whole day is deleted: an equal
number means equal rows. The days are checked in two steps:

1. `outdated` needs no Spark. A day is outdated if it has no note, other rules, more events than before, or
   was not over at its last audit. It is `doubtful` if a day around it has more events, or the queue managers
   were counted again.
2. `affected` decides about the doubtful days after the outdated ones were audited, whose coverage tells what
   the lake has now. A doubtful day is affected if new events belong to its messages, or if they, or new
   counts, can change what the audit could not prove before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msmq_fast.spark.lake import bronze, silver
from msmq_fast.spark.lake.coverage import Wanted
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.rules import Rules
from msmq_fast.spark.lake.summary import audited, gold_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVENTS: Final = "bronze/events"
_COUNTERS: Final = "bronze/counters"
_SILVER: Final = "silver/events"
_LIVES: Final = "silver/lifecycle"
_DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Feed = tuple[str, int]
"""GUID of the queue manager, incarnation of its store."""


class Outdated(NamedTuple):
    """`certain`: days that must be audited again. `doubtful`: other days, each with the days around it that
    have more events than at its last audit; none of them if only counts are new.
    """

    certain: list[date]
    doubtful: dict[date, list[date]]


def unmerged(lake: Lake) -> bool:
    """Returns whether bronze has events that are not in silver yet."""
    return bool(lake.table(_EVENTS).since(silver.merged(lake)).files)


def note(lake: Lake, day: date, rules: Rules) -> dict[str, Any]:
    """Returns the row of gold/audits for an audit of a day that begins now."""
    events = _rows(lake, _SILVER)
    around = {str(one) for one in _around(day, rules.lookback)}
    return {
        "audited_at": datetime.now(UTC),
        "until": _wanted(day, rules).until,
        "rules": json.dumps(_rules(rules)),
        "events": json.dumps({one: n for one, n in events.items() if one in around}),
        "counters": json.dumps(_rows(lake, _COUNTERS)),
    }


def outdated(lake: Lake, days: Collection[date], rules: Rules) -> Outdated:
    """Returns which of the days are outdated or doubtful; see the head of this module."""
    known = set(audited(lake))
    events, counters = _rows(lake, _SILVER), _rows(lake, _COUNTERS)
    certain: list[date] = []
    doubtful: dict[date, list[date]] = {}
    for day in sorted(days):
        notes = gold_rows(lake, "audits", day) if day in known else []
        if not notes or json.loads(notes[0]["rules"]) != _rules(rules):
            certain.append(day)
            continue
        new = _more(events, json.loads(notes[0]["events"]))
        fresh = [one for one in _around(day, rules.lookback) if str(one) in new]
        if day in fresh or _went_on(lake, day, notes[0]["until"], _wanted(day, rules).until):
            certain.append(day)
        elif fresh or _more(counters, json.loads(notes[0]["counters"])):
            doubtful[day] = fresh
    return Outdated(certain, doubtful)


def affected(spark: SparkSession, lake: Lake, doubtful: dict[date, list[date]], rules: Rules) -> list[date]:
    """Returns the doubtful days that must be audited again."""
    if not doubtful:
        return []
    now = _feeds_now(lake)
    counted = _Counted(spark, lake)
    found = {
        day
        for day, fresh in doubtful.items()
        if (fresh and _feeds_changed(lake, day, now, rules))
        or _proof_advanced(lake, day, now, counted, rules)
    }
    others = {day: fresh for day, fresh in doubtful.items() if fresh and day not in found}
    return sorted(found | _with_new_events(spark, lake, others))


def _rules(rules: Rules) -> dict[str, Any]:
    return {
        "lookback": rules.lookback,
        "grace_s": rules.grace_s,
        "poison_aborts": rules.poison_aborts,
        "gone": sorted(rules.gone),
    }


def _wanted(day: date, rules: Rules) -> Wanted:
    return Wanted.around(day, rules.lookback, rules.now, rules.grace_s)


def _around(day: date, lookback: int) -> list[date]:
    return [day + _DAY * distance for distance in range(-lookback, lookback + 1)]


def _rows(lake: Lake, table: str) -> dict[str, int]:
    """Returns how many rows a table has of each day, from its log."""
    counts: Counter[str] = Counter()
    for file in lake.table(table).files():
        counts[file.partition["day"] or ""] += file.rows
    return dict(sorted(counts.items()))


def _more(now: dict[str, int], before: dict[str, int]) -> set[str]:
    """Returns the days that have more rows than before."""
    return {day for day, count in now.items() if count > before.get(day, 0)}


def _went_on(lake: Lake, day: date, before: datetime, until: datetime) -> bool:
    """Returns whether an audit would expect more of a day now than before, of a feed that the lake did not
    have up to `until`.
    """
    if until <= before:
        return False
    return any(row["through"] is None or row["through"] < until for row in gold_rows(lake, "coverage", day))


def _feeds_now(lake: Lake) -> dict[_Feed, dict[str, Any]]:
    """Returns the row of gold/coverage of each feed in the latest audit."""
    notes = [(gold_rows(lake, "audits", day), day) for day in audited(lake)]
    newest = max((rows[0]["audited_at"], day) for rows, day in notes if rows)[1]
    return _feeds(lake, newest)


def _feeds(lake: Lake, day: date) -> dict[_Feed, dict[str, Any]]:
    return {(row["qm"], row["incarnation"]): row for row in gold_rows(lake, "coverage", day)}


class _Counted:
    """The last times at which queues were counted. They are read when they are first needed."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._found: dict[tuple[str, str | None], datetime] | None = None

    def last(self, qm: str, queue: str | None = None) -> datetime:
        """Returns the time at which a queue, or any queue of a queue manager, was last counted; the earliest
        possible time if it never was.
        """
        from pyspark.sql import functions as F

        if self._found is None:
            rows = bronze.table(self._spark, self._lake, "counters").groupBy("qm_guid", "queue")
            self._found = {}
            for guid, name, micros in rows.agg(F.unix_micros(F.max("taken_at"))).collect():
                time = _EPOCH + timedelta(microseconds=micros)
                for key in {(guid, name), (guid, None)}:
                    self._found[key] = max(time, self._found.get(key, time))
        return self._found.get((qm, queue), _EPOCH)


def _feeds_changed(lake: Lake, day: date, now: dict[_Feed, dict[str, Any]], rules: Rules) -> bool:
    """Returns whether the lake has feeds around the day that it did not have, or earlier events of a feed,
    or whether holes of a feed were filled or came into being.
    """
    wanted, before = _wanted(day, rules), _feeds(lake, day)
    for key, row in now.items():
        if row["from_seq"] is None:
            continue
        old = before.get(key)
        if old is None or old["from_seq"] is None:
            if row["from_time"].date() <= wanted.last and row["through"].date() >= wanted.first:
                return True
        else:
            regular = row["events"] - old["events"] == row["to_seq"] - old["to_seq"]
            if row["from_seq"] < old["from_seq"] or not regular:
                return True
    return False


def _proof_advanced(
    lake: Lake, day: date, now: dict[_Feed, dict[str, Any]], counted: _Counted, rules: Rules
) -> bool:
    """Returns whether the lake now has evidence for the end of the day that it lacked at its last audit: that
    a feed is complete, that an acknowledged message did not arrive, or how many messages were in a queue.
    """
    wanted = _wanted(day, rules)
    end = datetime.combine(day + _DAY, datetime.min.time(), UTC)
    settled = end + _DAY * rules.lookback + timedelta(seconds=rules.grace_s)
    sums = gold_rows(lake, "reconciliation", day)
    pending = any(row["pending"] > row["overdue"] for row in sums)
    for (qm, incarnation), row in _feeds(lake, day).items():
        before = row["through"] or _EPOCH
        feed = now.get((qm, incarnation))
        reach = max(feed["through"] or _EPOCH if feed else _EPOCH, counted.last(qm))
        if row["ended_early"] and reach >= wanted.until:
            return True
        if pending and before < settled and reach > before:
            return True
    return any(
        counted.last(row["qm"], row["queue"]) >= end
        for row in gold_rows(lake, "counters", day)
        if row["taken_at"] is None or row["taken_at"] < end
    )


def _with_new_events(spark: SparkSession, lake: Lake, days: dict[date, list[date]]) -> set[date]:
    """Returns the days of whose messages there are events that their last audits did not have. `days`: each
    day with the days around it that have new events.
    """
    from pyspark.sql import functions as F

    from msmq_fast.spark.lake import frames

    if not days:
        return set()
    feeds = [
        (day, qm, incarnation, row["from_seq"], row["to_seq"])
        for day in days
        for (qm, incarnation), row in _feeds(lake, day).items()
    ]
    known = spark.createDataFrame(
        feeds, "audited DATE, qm_guid STRING, incarnation INT, low BIGINT, high BIGINT"
    )
    pairs = spark.createDataFrame(
        [(day, one) for day, fresh in days.items() for one in fresh], "audited DATE, day DATE"
    )
    changed = sorted({one for fresh in days.values() for one in fresh})
    events = silver.events(spark, lake).where(F.col("day").isin(changed) & F.col("message_id").isNotNull())
    events = events.select("message_id", "day", "qm_guid", "incarnation", "feed_seq")
    audited_days = {str(day) for day in days}
    files = [file for file in lake.table(_LIVES).files() if file.partition["day"] in audited_days]
    lives = frames.read(spark, lake, _LIVES, {"message_id": "STRING", "day": "DATE"}, files)
    lives = lives.select("message_id", F.col("day").alias("audited")).distinct()
    new = F.coalesce((F.col("feed_seq") > F.col("high")) | (F.col("feed_seq") < F.col("low")), F.lit(True))
    rows = (
        events.join(lives, "message_id")
        .join(F.broadcast(pairs), ["audited", "day"], "left_semi")
        .join(F.broadcast(known), ["audited", "qm_guid", "incarnation"], "left")
        .where(new)
    )
    return {row.audited for row in rows.select("audited").distinct().collect()}
