"""The tasks of the archive store each body once, whichever rows and row groups have it."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from msmq_fast.spark.lake.delta import Landed
from msmq_fast.spark.lake.landing import Landing
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.recent import RecentBodies
from msmq_fast.spark.lake.tables import COUNTED_ON_S
from msmq_fast.spark.lake.writing import Placing
from tests.support.lakes import contents

BODIES = [b"a", b"b", None, b"a", b"", b"b", None, b"", b"c", b"c", b"a", b"d"]
GROUP = 1 << 16
"""Rows that fill a row group."""


def _batch(bodies: list[bytes | None]) -> pa.RecordBatch:
    times = pa.array([datetime(2026, 3, 1, tzinfo=UTC)] * len(bodies), pa.timestamp("us", tz="UTC"))
    return pa.record_batch({"arrived_time": times, "body": pa.array(bodies, pa.binary())})


def _place(lake: Lake, number: int, batches: list[pa.RecordBatch]) -> None:
    rows = Landing(lake.root, events=False).land(batches)
    landed = [Landed(**row) for row in rows.to_pylist()]
    Placing(lake, "messages", "run", lambda rows: None).place(landed, number)


def test_each_body_is_stored_once(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    _place(lake, 0, [_batch(BODIES[:7]), _batch([b"x"] * GROUP), _batch([*BODIES[7:], b"x"])])
    _place(lake, 1, [_batch([b"d", b"e", None])])
    stored = [row["body"] for row in contents(lake, "bodies")]
    assert len(stored) == len(set(stored))
    assert {*stored} == {*BODIES, b"x", b"e"} - {None}
    assert sum(file.rows for file in lake.table("bronze/messages").files()) == len(BODIES) + GROUP + 1 + 3


def test_bodies_of_other_tasks_are_found_by_the_log(tmp_path: Path) -> None:
    """Behind a compaction, too; for an hour, and not once the lake has lost them."""
    lake = Lake.create(str(tmp_path / "lake"))
    known = RecentBodies(Lake.open(lake.root))
    assert known.hashes(time.time()).to_pylist() == []
    for number, body in enumerate((b"a", b"b", b"c")):
        _place(lake, number, [_batch([body])])
        assert len(known.hashes(time.time())) == number + 1
    bodies = lake.table("bronze/bodies")
    assert bodies.compact() == 2
    names = [hashlib.sha256(body).hexdigest() for body in (b"a", b"b", b"c")]
    assert sorted(known.hashes(time.time()).to_pylist()) == sorted(names)
    _place(lake, 3, [_batch([b"d"])])
    assert len(known.hashes(time.time())) == 4
    bodies.remove([file for file in bodies.files() if file.rows == 3])
    (left,) = known.hashes(time.time()).to_pylist()
    assert left == hashlib.sha256(b"d").hexdigest()
    assert RecentBodies(Lake.open(lake.root)).hashes(time.time()).to_pylist() == [left]
    assert known.hashes(time.time() + COUNTED_ON_S + 1).to_pylist() == []
