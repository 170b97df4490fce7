"""Faults that are injected into two feeds: the audit finds all of them, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.lake.feeds import Truth, depths
from tests.spark.lake.plays import Play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _found(play: Play) -> Truth:
    found = Truth()
    for row in play.of_pairs("silver/lifecycle"):
        if row["state"] in ("lost", "lost?"):
            found.lost.add(row["message_id"])
        if row["state"] in ("expired", "purged"):
            getattr(found, row["state"]).add(row["message_id"])
    for row in play.of_pairs("gold/duplicates"):
        (found.wire if row["wire_dup"] else found.duplicated).add(row["message_id"])
    found.poisoned = {row["message_id"] for row in play.of_pairs("gold/poison")}
    found.nacked = play.truth().nacked
    kinds = {"gap": found.gaps, "reorder": found.reordered, "duplicate": found.repeated}
    for row in play.of_pairs("gold/sequence_gaps"):
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
    rows = play.of_pairs("gold/reconciliation")
    assert sum(row["lost"] for row in rows) == len(truth.lost)
    assert sum(row["unclear"] for row in rows) == 0
    assert sum(row["sent"] for row in rows) == len(
        {r["message_id"] for r in play.rows if r.get("message_id")}
    )
    nacks = play.of_pairs("gold/nack_by_class")
    assert sum(row["n"] for row in nacks) == len(truth.nacked)
    assert {row["class_name"] for row in nacks} <= {"NACK_RECEIVE_TIMEOUT", "NACK_ACCESS_DENIED"}
    assert all(row["whole"] and row["from_first"] for row in play.of_pairs("gold/coverage"))
    lost = Counter(message.split("\\")[0].strip("{}") for message in truth.lost)
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
    for row in sorted(play.of_pairs("gold/queue_minute"), key=lambda row: row["minute"]):
        last[row["qm"], row["queue"]] = row["depth_end"]
    assert last == expected
    told = {(row["qm"], row["queue"]): row for row in play.of_pairs("gold/counters")}
    assert set(told) == set(expected)
    assert all(row["equal"] and row["computed"] == expected[key] for key, row in told.items())


@pytest.mark.long(seconds=11)
def test_every_fault_is_found_and_none_is_invented(play: Play) -> None:
    assert all(getattr(play.truth(), item.name) for item in fields(Truth))  # each kind of fault is there
    _check(play)


@pytest.mark.long(seconds=20)
def test_scenes(play: Play) -> None:
    """Routers, messages between queue managers, holes, strangers, restored stores."""
    scenes = play.scenes
    lives = {row["message_id"]: row for row in play.table("silver/lifecycle")}
    found = {
        message: lives[message]["state"] if message in lives else "left out" for message in scenes.states
    }
    assert found == scenes.states
    names = {manager.guid: name for name, manager in scenes.managers.items()}
    coverage = {
        (names[row["qm"]], row["incarnation"]): row
        for row in play.table("gold/coverage")
        if row["qm"] in names
    }
    assert {key for key, row in coverage.items() if not row["whole"]} == {("holed", 1), ("restored", 2)}
    assert coverage["holed", 1]["missing_ranges"] == ["3-3"]
    assert coverage["restored", 2]["restored"]
    verdicts = {
        (names[row["sender"]], row["dest"].rpartition("\\")[2]): row["verdict"]
        for row in play.table("gold/reconciliation")
        if row["sender"] in names
    }
    assert verdicts == {
        ("origin", "routed"): "lost",
        ("partner", "inbox"): "unproven",
        ("partner", "far"): "unproven",
        ("restored", "own"): "unproven",
    }
    twice = {row["message_id"] for row in play.table("gold/duplicates")}
    assert not twice & scenes.states.keys()  # what a restored store tells again happened once
    own = [row for row in play.table("gold/queue_minute") if names.get(row["qm"]) == "restored"]
    assert sum(row["arrived"] for row in own) == sum(row["received"] for row in own) == 2
    assert max(own, key=lambda row: row["minute"])["depth_end"] == 0


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(600)
def test_a_hundred_seeds(small: SparkSession, tmp_path: Path) -> None:
    _check(Play(small, tmp_path, range(1000, 1100)))
