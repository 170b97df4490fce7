"""Many pairs of queue managers in one lake, audited together, and what the audit found."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msmq_fast.spark.lake import silver
from msmq_fast.spark.lake.audit import audit
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.rules import Rules
from tests.spark.lake.feeds import DAY, FAULTS, Pair, Scenes, Truth
from tests.support.lakes import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Play:
    """Many pairs in one lake, audited together; without `scenes`, only the pairs."""

    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        seeds: range,
        *,
        faults: tuple[str, ...] = FAULTS,
        scenes: bool = True,
    ) -> None:
        self.scenes = Scenes()
        self.pairs = {seed: Pair(seed, faults=faults) for seed in seeds}
        self.lake = Lake.create(str(directory / "lake"))
        rows = [row for pair in self.pairs.values() for row in pair.rows()]
        self.rows = list(rows)
        if scenes:
            rows += self.scenes.rows
        third = len(rows) // 3
        write_batch(self.lake, "events", 0, rows[: 2 * third])
        write_batch(self.lake, "events", 1, rows[third:])  # a part of it was archived twice
        write_batch(self.lake, "events", 2, rows[:5], success=False)
        after = DAY + timedelta(days=1)
        told = [row for pair in self.pairs.values() for row in pair.told(after)]
        if scenes:
            told += self.scenes.told(after)
        write_batch(self.lake, "counters", 0, told)
        silver.merge(spark, self.lake)
        self.summary = audit(spark, self.lake, DAY.date(), Rules())

    def table(self, name: str) -> list[dict[str, Any]]:
        """The audited day of a table."""
        found = self.lake.dataset(f"{name}/day={DAY.date()}")
        return found.to_table().to_pylist() if found is not None else []

    def of_pairs(self, name: str) -> list[dict[str, Any]]:
        """Likewise, without the scenes."""
        apart = {manager.guid for manager in self.scenes.managers.values()}
        columns = ("qm", "sender")
        messages = self.scenes.states
        return [
            row
            for row in self.table(name)
            if not any(row.get(column) in apart for column in columns)
            and row.get("message_id") not in messages
        ]

    def truth(self) -> Truth:
        whole = Truth()
        for pair in self.pairs.values():
            for item in fields(Truth):
                getattr(whole, item.name).update(getattr(pair.truth, item.name))
        return whole
