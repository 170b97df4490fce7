"""How far a query is behind, for the progress reports of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MOST_NAMED: Final = 20
"""The most queues that a report names."""


@dataclass(frozen=True)
class Lag:
    """The rows that were waiting behind the end of the latest batch when it was planned.

    `queues` is the number of queues of the query (in mode events: of queue managers); `rows` are the waiting
    rows of those that have any, by name; `following` is the next number of each queue manager, by its name.
    """

    queues: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    following: Mapping[str, int] = field(default_factory=dict)

    def to_json(self, source: str) -> dict[str, Any]:
        """Returns the report: dicts, numbers and strings, as offsets are. `source` describes what is read.

        The names are those of the metrics of Spark's Kafka source. `behind` names the queues that are
        furthest behind.
        """
        counts = self.rows.values()
        total, few = sum(counts), len(self.rows) < max(self.queues, 1)
        furthest = sorted(self.rows.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMED]
        return {
            "source": source,
            "queues": self.queues,
            "next": dict(sorted(self.following.items())),
            "rowsBehindLatest": total,
            "minOffsetsBehindLatest": 0 if few else min(counts, default=0),
            "maxOffsetsBehindLatest": max(counts, default=0),
            "avgOffsetsBehindLatest": round(total / self.queues, 3) if self.queues else 0,
            "behind": dict(furthest),
        }
