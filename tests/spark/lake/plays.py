"""Many pairs of queue managers in one lake, audited together, and what the audit found."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msmq_fast.spark.lake import silver
from msmq_fast.spark.lake.audit import Rules, audit
from msmq_fast.spark.lake.layout import Lake
from tests.spark.lake.feeds import DAY, Pair, Truth
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
