"""The bench of audits: its lake can be migrated, and it counts the processor time of all descendants."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.audits import cpu_s_of, make_lake
from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main

BURN = "import time\nwhile time.process_time() < 0.2: pass"


def test_the_lake_has_four_events_for_each_message(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", 5, 2)
    assert main(["migrate", "--lake", str(tmp_path / "lake"), "--quiet"]) == Exit.OK
    found = Lake.open(str(tmp_path / "lake")).dataset("bronze/events").to_table()
    assert found.num_rows == 2 * 5 * 4
    for qm in set(found["qm_guid"].to_pylist()):
        numbers = [row["feed_seq"] for row in found.to_pylist() if row["qm_guid"] == qm]
        assert sorted(numbers) == list(range(1, 2 * 5 * 2 + 1))


def test_a_child_that_outlives_its_parent_counts() -> None:
    program = (
        f"import os\nif os.fork() == 0:\n    {BURN.replace(chr(10), chr(10) + '    ')}\nelse: os._exit(0)"
    )
    used, _ = cpu_s_of([sys.executable, "-c", program], dict(os.environ))
    assert used >= 0.2


def test_a_command_that_fails_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="ended with code 3"):
        cpu_s_of([sys.executable, "-c", "raise SystemExit(3)"], dict(os.environ))
