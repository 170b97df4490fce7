"""What a report tells, gathered from the gold tables by pyarrow alone: no Spark, no JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any, Final

from msmq_fast.cli.exits import CommandError, Exit
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.tables import GOLD

SHOWN: Final = 50
"""Rows of a long table that a report lists; it says how many there are."""

QUEUES: Final = 8
"""Queues that are drawn one by one: the deepest."""

COUNTS: Final = (
    "sent",
    "arrived",
    "received",
    "open",
    "lost",
    "unclear",
    "expired",
    "purged",
    "dead",
    "nacked",
    "removed",
    "duplicated",
)
Rows = list[dict[str, Any]]


def audited(lake: Lake) -> list[date]:
    """The days that were audited."""
    names = lake.names("gold/reconciliation")
    return [date.fromisoformat(name.removeprefix("day=")) for name in names if name.startswith("day=")]


def gather(lake: Lake, day: date) -> dict[str, Any]:
    """Everything about one day, as values that JSON knows, times as datetimes. CommandError: it was not
    audited.
    """
    if day not in audited(lake):
        raise CommandError(
            Exit.EMPTY, f"{day} was not audited: run `msmq-lake audit --lake {lake.root}` first"
        )
    tables = {name: _rows(lake, name, day) for name in GOLD}
    rows = tables["reconciliation"]
    differing = [row for row in tables["counters"] if row["equal"] is False]
    return {
        "day": day.isoformat(),
        "lake": lake.root,
        "verdict": verdict(rows, tables["coverage"], differing),
        "totals": {name: sum(row[name] for row in rows) for name in COUNTS},
        "reconciliation": sorted(rows, key=lambda row: (_RANK[row["verdict"]], -row["sent"])),
        "coverage": sorted(tables["coverage"], key=lambda row: (str(row["name"]), row["incarnation"])),
        "counters_differing": differing,
        "counters_unproven": sum(row["equal"] is None for row in tables["counters"]),
        "sequence_gaps": _first(tables["sequence_gaps"], "first_seen"),
        "sequence_kinds": _count(row["kind"] for row in tables["sequence_gaps"]),
        "duplicates": _first([row for row in tables["duplicates"] if not row["wire_dup"]], "message_id"),
        "wire_duplicates": sum(row["wire_dup"] for row in tables["duplicates"]),
        "poison": _first(tables["poison"], "message_id"),
        "nacks": sorted(tables["nack_by_class"], key=lambda row: -row["n"]),
        "latency": sorted(tables["latency"], key=lambda row: (row["dest"] or "", row["hour"], row["leg"])),
        "lost": lost(lake, day),
        **_series(tables["queue_minute"]),
    }


_RANK: Final = {"lost": 0, "unproven": 1, "ok": 2}


def verdict(rows: Rows, coverage: Rows, differing: Rows) -> str:
    """`ok` is said only where everything is in the lake and all counts agree."""
    verdicts = {row["verdict"] for row in rows}
    if "lost" in verdicts:
        return "lost"
    whole = all(row["whole"] for row in coverage)
    return "unproven" if differing or "unproven" in verdicts or not whole else "ok"


def outcome(lake: Lake, day: date) -> dict[str, Any]:
    """The verdict on one day and its totals."""
    rows = _rows(lake, "reconciliation", day)
    differing = [row for row in _rows(lake, "counters", day) if row["equal"] is False]
    return {
        "day": day.isoformat(),
        "verdict": verdict(rows, _rows(lake, "coverage", day), differing),
        **{name: sum(row[name] for row in rows) for name in COUNTS},
        "counters_differing": len(differing),
    }


def lost(lake: Lake, day: date) -> Rows:
    """Some of the messages that are lost, or may be."""
    from pyarrow import compute

    data = lake.dataset(f"silver/lifecycle/day={day}")
    if data is None:
        return []
    gone = compute.field("state").isin(["lost", "lost?"])
    columns = ["message_id", "dest", "sender", "receiver", "first_sent", "acked_time", "state"]
    return list(data.head(SHOWN, columns=columns, filter=gone).to_pylist())


def _rows(lake: Lake, table: str, day: date) -> Rows:
    data = lake.dataset(f"gold/{table}/day={day}")
    return [] if data is None else list(data.to_table().to_pylist())


def _first(rows: Rows, key: str) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: row[key])
    return {"n": len(rows), "rows": ordered[:SHOWN]}


def _count(values: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for value in values:
        counts[value] += 1
    return dict(sorted(counts.items()))


def _series(minutes: Rows) -> dict[str, Any]:
    """`depth`: points of the deepest queues; `throughput`: what came into queues and was received."""
    minutes = sorted(minutes, key=lambda row: row["minute"])
    depth: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    flow: dict[datetime, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in minutes:
        depth[row["queue"]].append((row["minute"], row["depth_end"]))
        if "=" not in row["queue"]:  # not an outgoing queue: those pass on what arrives elsewhere
            sums = flow[row["minute"]]
            for index, name in enumerate(("arrived", "received", "bytes")):
                sums[index] += row[name]
    deepest = sorted(depth, key=lambda queue: -max(point[1] for point in depth[queue]))[:QUEUES]
    return {
        "queues": len(depth),
        "depth": {queue: depth[queue] for queue in deepest},
        "throughput": [(minute, *sums) for minute, sums in sorted(flow.items())],
    }
