"""An audit has the same tables whether the driver or tasks read and write the files of the lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from msmq_fast.spark.lake.tables import GOLD
from tests.spark.lake.feeds import DAY
from tests.spark.lake.plays import Play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("silver/events", "silver/lifecycle", *(f"gold/{name}" for name in GOLD if name != "audits"))


def _rows(play: Play, name: str) -> list[str]:
    found = play.lake.dataset(f"{name}/day={DAY.date()}")
    return [] if found is None else sorted(map(repr, found.to_table().to_pylist()))


@pytest.mark.long(seconds=40)
@pytest.mark.timeout(1200)
def test_the_driver_writes_what_tasks_write(few: SparkSession, small: SparkSession, tmp_path: Path) -> None:
    by_driver = Play(few, tmp_path / "driver", range(3))
    by_tasks = Play(small, tmp_path / "tasks", range(3))
    for name in TABLES:
        assert _rows(by_driver, name) == _rows(by_tasks, name), name
        assert _rows(by_driver, name) or name == "gold/nack_by_class", name
        schemas = [play.lake.table(name).schema() for play in (by_driver, by_tasks)]
        assert schemas[0] == schemas[1], name
