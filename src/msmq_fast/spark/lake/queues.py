"""What a report says of queues: their depths over the day, and one row for each."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.lifecycle import INTERNAL_QUEUE

QUEUES: Final = 8
"""The number of queues in one plot: the deepest ones."""

DETAILED: Final = 20
"""The number of queues that have a section of their own in a report."""

OUTGOING: Final = r"^[^\\]*="
r"""Matches the names of outgoing queues: `DIRECT=OS:HOST\private$\x`, but not `HOST\private$\a=b`. RE2."""

_COPIES: Final = re.compile(r"(?i);(journal|deadletter|deadxact)$")
_KINDS: Final = {"journal": "journal", "deadletter": "dead letters", "deadxact": "dead letters"}
_INTERNAL: Final = re.compile(INTERNAL_QUEUE)
Rows = list[dict[str, Any]]


def kind_of(queue: str) -> str:
    """Returns `queue`, `outgoing`, `journal`, `dead letters` or `internal`, by the name of a queue."""
    if re.match(OUTGOING, queue):
        return "outgoing"
    if match := _COPIES.search(queue):
        return _KINDS[match[1].lower()]
    return "internal" if _INTERNAL.search(queue) else "queue"


def queue_rows(lake: Lake, day: date) -> Rows:
    """Returns one row per queue with events, messages or counts on the day, the deepest ones first.

    `depth`: the number of messages at the end of the day: as the events tell, else as the queue manager
    counted them within a day after it; null if neither is known. `depth_max`: the greatest number at the end
    of a minute. `waiting`, `oldest`, `oldest_id`: the messages of the searched days that were there at the
    end, and the oldest of them. `equal`: whether the count is equal to the sum of the events; null if it was
    not compared.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    end = datetime.combine(day + timedelta(days=2), datetime.min.time(), UTC)

    def row(qm: str, queue: str) -> dict[str, Any]:
        empty = dict.fromkeys(("depth", "depth_max", "oldest", "oldest_id", "equal"))
        sums = dict.fromkeys(("arrived", "received", "waiting"), 0)
        new = {"qm": qm, "queue": queue, "kind": kind_of(queue), **empty, **sums}
        return found.setdefault((qm, queue), new)

    for one in _sums(lake, day):
        row(one["qm"], one["queue"]).update(
            depth=one["depth_end_last"],
            depth_max=one["depth_end_max"],
            arrived=one["arrived_sum"],
            received=one["received_sum"],
        )
    for one in _all(lake, "counters", day):
        taken = one.get("taken_at")
        late = taken is not None and taken >= end
        if late and (one["qm"], one["queue"]) not in found:
            continue  # a count of a later day, of a queue that had no events on this one
        queue = row(one["qm"], one["queue"])
        queue["equal"] = one["equal"]
        if queue["depth"] is None and not late:
            queue["depth"] = one["counted"]
    for one in _all(lake, "waiting", day):
        if one["qm"] and one["queue"]:
            row(one["qm"], one["queue"]).update(
                waiting=one["n"], oldest=one["oldest"], oldest_id=one["oldest_id"]
            )
    order = sorted(found.values(), key=lambda one: (one["qm"], one["queue"]))
    return sorted(order, key=lambda one: (-(one["depth"] or 0), -(one["depth_max"] or 0)))


def matter_most(queues: Rows, reconciliation: Rows) -> Rows:
    """Returns those of the rows of `queue_rows` about which a report has a section: queues, and outgoing
    queues, first those with another verdict than `ok`, then the deepest ones.
    """
    bad = {(row["receiver"], row["dest"]) for row in reconciliation if row["verdict"] != "ok"}
    own = [row for row in queues if row["kind"] in ("queue", "outgoing")]
    return sorted(own, key=lambda row: (row["qm"], row["queue"]) not in bad)[:DETAILED]


def minutes(lake: Lake, day: date, queues: Rows) -> Rows:
    """Returns the depth of queues over the day, each with `qm`, `queue` and `points`: pairs (minute, number
    of messages).
    """
    from pyarrow import compute

    data = lake.dataset(f"gold/queue_minute/day={day}")
    found: dict[tuple[str, str], list[tuple[datetime, int]]] = {
        (row["qm"], row["queue"]): [] for row in queues
    }
    if data is not None:
        wanted = compute.field("queue").isin(sorted({queue for _, queue in found}))
        read = data.to_table(columns=["qm", "queue", "minute", "depth_end"], filter=wanted)
        for row in read.sort_by("minute").to_pylist():
            if (key := (row["qm"], row["queue"])) in found:
                found[key].append((row["minute"], row["depth_end"]))
    return [{"qm": qm, "queue": queue, "points": points} for (qm, queue), points in found.items()]


def series(lake: Lake, day: date, names: dict[str, str | None]) -> dict[str, Any]:
    """Returns the values over time for the plots of a report. `names`: the names of queue managers.

    `queues`: the number of queues. `depth`: the points (minute, number of messages) of the deepest queues and
    outgoing queues that were not empty all day. `depth_apart`: likewise of journals and dead-letter queues.
    `throughput`: for each minute, how many messages arrived in all queues, how many were received from them,
    and the bytes that arrived.
    """
    from pyarrow import compute

    data = lake.dataset(f"gold/queue_minute/day={day}")
    deepest: dict[tuple[str, str], int] = {}
    flow: dict[datetime, list[int]] = defaultdict(lambda: [0, 0, 0])
    columns = ("arrived", "received", "bytes")
    read = ["qm", "queue", "minute", "depth_end", *columns]
    for batch in data.to_batches(columns=read) if data is not None else ():
        table = _table(batch)
        for row in table.group_by(["qm", "queue"]).aggregate([("depth_end", "max")]).to_pylist():
            key = (row["qm"], row["queue"])
            deepest[key] = max(row["depth_end_max"], deepest.get(key, row["depth_end_max"]))
        # An outgoing queue passes on messages that arrive elsewhere.
        here = table.filter(compute.invert(compute.match_substring_regex(table["queue"], OUTGOING)))
        sums = here.group_by("minute").aggregate([(name, "sum") for name in columns])
        for row in sums.to_pylist():
            for index, name in enumerate(columns):
                flow[row["minute"]][index] += row[f"{name}_sum"]
    shown = sorted((key for key, most in deepest.items() if most), key=lambda key: (-deepest[key], key))
    kinds = {key: kind_of(key[1]) for key in shown}
    own = [key for key in shown if kinds[key] in ("queue", "outgoing")]
    apart = [key for key in shown if kinds[key] in ("journal", "dead letters")]
    return {
        "queues": len(deepest),
        "depth": depths(lake, day, own[:QUEUES], names),
        "depth_apart": depths(lake, day, apart[:QUEUES], names),
        "throughput": [(minute, *sums) for minute, sums in sorted(flow.items())],
    }


def depths(
    lake: Lake, day: date, shown: list[tuple[str, str]], names: dict[str, str | None]
) -> dict[str, list[tuple[datetime, int]]]:
    """Returns the points (minute, number of messages) of the queues `shown`, by the name of the queue. If
    several of these queues have the same name, the name of the queue manager is added.
    """
    from pyarrow import compute

    several = Counter(queue for _, queue in shown)
    data = lake.dataset(f"gold/queue_minute/day={day}") if shown else None
    if data is None:
        return {}
    found = {}
    for qm, queue in shown:
        wanted = (compute.field("qm") == qm) & (compute.field("queue") == queue)
        rows = data.to_table(columns=["minute", "depth_end"], filter=wanted).sort_by("minute").to_pylist()
        name = queue if several[queue] == 1 else f"{queue} ({names.get(qm) or qm})"
        found[name] = [(row["minute"], row["depth_end"]) for row in rows]
    return found


def _sums(lake: Lake, day: date) -> Rows:
    data = lake.dataset(f"gold/queue_minute/day={day}")
    if data is None:
        return []
    table = data.to_table(columns=["qm", "queue", "minute", "depth_end", "arrived", "received"])
    sums = [("depth_end", "max"), ("depth_end", "last"), ("arrived", "sum"), ("received", "sum")]
    grouped = table.sort_by("minute").group_by(["qm", "queue"], use_threads=False).aggregate(sums)
    return list(grouped.to_pylist())


def _all(lake: Lake, table: str, day: date) -> Rows:
    data = lake.dataset(f"gold/{table}/day={day}")
    return [] if data is None else list(data.to_table().to_pylist())


def _table(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])
