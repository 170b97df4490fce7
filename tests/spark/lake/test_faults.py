"""Faults that are injected into two feeds: the audit finds all of them, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.spark.lake import session, silver
from msmq_fast.spark.lake.audit import Rules, audit
from msmq_fast.spark.lake.layout import Lake
from tests.spark.lake.feeds import DAY, Pair, Truth, depths
from tests.spark.lake.lakes import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Play:
    """Many pairs in one lake, audited together."""

    def __init__(self, spark: SparkSession, directory: Path, seeds: range) -> None:
        self.pairs = {seed: Pair(seed) for seed in seeds}
        self.lake = Lake.create(str(directory / "lake"))
        rows = [row for pair in self.pairs.values() for row in pair.rows()]
        third = len(rows) // 3
        write_batch(self.lake, "events", 0, rows[: 2 * third])
        write_batch(self.lake, "events", 1, rows[third:])  # a part of it was archived twice
        write_batch(self.lake, "events", 2, rows[:5], success=False)
        told = [row for pair in self.pairs.values() for row in pair.told(DAY + timedelta(hours=20))]
        write_batch(self.lake, "counters", 0, told)
        self.rows = rows
        spark = session.prepared(spark)
        silver.merge(spark, self.lake)
        self.summary = audit(spark, self.lake, DAY.date(), Rules())

    def table(self, name: str) -> list[dict[str, Any]]:
        found = self.lake.dataset(f"{name}/day={DAY.date()}")
        return found.to_table().to_pylist() if found is not None else []

    def truth(self) -> Truth:
        whole = Truth()
        for pair in self.pairs.values():
            for item in fields(Truth):
                getattr(whole, item.name).update(getattr(pair.truth, item.name))
        return whole


def _found(play: Play) -> Truth:
    found = Truth()
    for row in play.table("silver/lifecycle"):
        if row["state"] in ("lost", "lost?"):
            found.lost.add(row["message_id"])
        if row["state"] in ("expired", "purged"):
            getattr(found, row["state"]).add(row["message_id"])
    for row in play.table("gold/duplicates"):
        (found.wire if row["wire_dup"] else found.duplicated).add(row["message_id"])
    found.poisoned = {row["message_id"] for row in play.table("gold/poison")}
    found.nacked = play.truth().nacked
    kinds = {"gap": found.gaps, "reorder": found.reordered, "duplicate": found.repeated}
    for row in play.table("gold/sequence_gaps"):
        if row["kind"] == "restart":
            found.restarted.add((row["sender"], row["seq_id"]))
        else:
            numbers = range(row["from_no"], row["to_no"] + 1)
            kinds[row["kind"]].update((row["sender"], row["seq_id"], number) for number in numbers)
    return found


def _check(play: Play) -> None:
    truth, found = play.truth(), _found(play)
    for item in fields(Truth):
        assert getattr(found, item.name) == getattr(truth, item.name), item.name
    _check_sums(play, truth)
    _check_depths(play)


def _check_sums(play: Play, truth: Truth) -> None:
    assert play.summary["lost"] == len(truth.lost)
    assert play.summary["sent"] == len({row["message_id"] for row in play.rows if row.get("message_id")})
    nacks = play.table("gold/nack_by_class")
    assert sum(row["n"] for row in nacks) == len(truth.nacked)
    assert {row["class_name"] for row in nacks} <= {"NACK_RECEIVE_TIMEOUT", "NACK_ACCESS_DENIED"}
    assert all(row["whole"] and row["from_first"] for row in play.table("gold/coverage"))
    lost = Counter(message.split("\\")[0].strip("{}") for message in truth.lost)
    rows = play.table("gold/reconciliation")
    senders = {row["sender"] for row in rows}
    assert {s: sum(row["lost"] for row in rows if row["sender"] == s) for s in senders} == {
        s: lost[s] for s in senders
    }
    gaps = {sender for sender, _, _ in truth.gaps}
    assert {row["sender"] for row in rows if row["verdict"] == "lost"} == set(lost)
    assert {row["sender"] for row in rows if row["verdict"] == "unproven"} <= gaps


def _check_depths(play: Play) -> None:
    expected = {}
    for pair in play.pairs.values():
        for manager in pair.managers:
            expected |= {(manager.guid, queue): count for queue, count in depths(manager.feed()).items()}
    last: dict[tuple[str, str], Any] = {}
    for row in sorted(play.table("gold/queue_minute"), key=lambda row: row["minute"]):
        last[row["qm"], row["queue"]] = row["depth_end"]
    assert last == expected
    told = {(row["qm"], row["queue"]): row for row in play.table("gold/counters")}
    assert set(told) == set(expected)
    assert all(row["equal"] and row["computed"] == expected[key] for key, row in told.items())


def test_every_fault_is_found_and_none_is_invented(spark: SparkSession, tmp_path: Path) -> None:
    play = Play(spark, tmp_path, range(6))
    assert all(getattr(play.truth(), item.name) for item in fields(Truth))  # each kind of fault is there
    _check(play)


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(600)
def test_a_hundred_seeds(spark: SparkSession, tmp_path: Path) -> None:
    play = Play(spark, tmp_path, range(1000, 1100))
    _check(play)
