"""Faults that are injected into two feeds: the audit finds all of them, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.spark.lake.summary import ended, undelivered
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


BAD_ENDS = {
    "expired": ("expired", "NACK_RECEIVE_TIMEOUT"),
    "unsent": ("expired", "NACK_REACH_QUEUE_TIMEOUT"),
    "purged": ("purged", "NACK_Q_PURGED"),
    "refused": ("nacked", "NACK_ACCESS_DENIED"),
}
"""The faults that end a message without losing it: its state, and the reason that an audit gives."""


def _check_headline(play: Play) -> None:
    """Every message that ended badly is in the headline with its reason, and no other one is."""
    ends = [end for pair in play.pairs.values() for end in pair.ends]
    truth = Counter((kind not in ("unsent", "refused"), *BAD_ENDS[kind]) for kind in ends)
    rows = play.summary["undelivered_by"]
    assert {(row["arrived"], row["state"], row["reason"]): row["n"] for row in rows} == truth
    sentences = [*undelivered(play.summary)]
    if play.summary["overdue"]:  # a scene: one waits at a router
        assert sentences.pop().startswith(f"{play.summary['overdue']} messages wait ")
    assert len(sentences) == len({arrived for arrived, _, _ in truth})
    for (arrived, state, reason), number in truth.items():
        assert f"{number} {ended(state, reason)}" in sentences[-1 if arrived else 0]
        whole = sum(n for key, n in truth.items() if key[0] is arrived)
        assert any(sentence.startswith(f"{whole} messages ") for sentence in sentences)
    assert sum(row["undelivered"] for row in play.of_pairs("gold/reconciliation")) == len(ends)


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
    _check_headline(play)


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


@pytest.mark.long(seconds=300)
@pytest.mark.timeout(1800)
def test_bad_ends_of_twenty_seeds_are_in_the_headline(small: SparkSession, tmp_path: Path) -> None:
    """Messages that end badly without being lost: the headline says how many and why, in amber."""
    for seed in range(2000, 2020):
        faults = tuple(random.Random(seed).sample(sorted(BAD_ENDS), k=1 + seed % len(BAD_ENDS)))
        play = Play(small, tmp_path / str(seed), range(seed, seed + 1), faults=faults, scenes=False)
        _check_headline(play)
        discarded = play.summary["discarded"]
        assert play.summary["verdict"] == ("undelivered" if discarded else "ok"), seed
        assert play.summary["lost"] == play.summary["unclear"] == play.summary["overdue"] == 0
