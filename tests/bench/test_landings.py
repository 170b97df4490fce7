"""The measurement of what a batch of the archive costs: it archives what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.landings import measure
from msmq_fast.spark.lake.layout import Lake
from tests.support.lakes import contents


@pytest.mark.parametrize("content", ["messages", "events"])
def test_each_batch_is_landed_and_committed(tmp_path: Path, content: str) -> None:
    found = measure(tmp_path / "lake", content, rows=3, batches=2)
    assert [len(values) for values in found.values()] == [2, 2]
    lake = Lake.open(str(tmp_path / "lake"))
    rows = contents(lake, content)
    assert sorted(row["arrival_seq"] for row in rows) == list(range(1, 7))
    if content == "messages":
        assert {row["body_sha256"] for row in rows} == {
            row["body_sha256"] for row in contents(lake, "bodies")
        }
