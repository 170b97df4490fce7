"""Gathers the content of a report from the gold tables with pyarrow alone, without Spark and its JVM."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Any, Final

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.text import counted
from msmq_fast.spark.lake.checks import checks
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.lifecycle import UNDELIVERED
from msmq_fast.spark.lake.queues import matter_most, minutes, queue_rows, series

SHOWN: Final = 50
"""The number of rows of a long table that a report lists. It also gives the total."""

COUNTS: Final = (
    "sent",
    "arrived",
    "received",
    "open",
    "lost",
    "unclear",
    "overdue",
    "expired",
    "purged",
    "dead",
    "nacked",
    "removed",
    "undelivered",
    "discarded",
    "duplicated",
)
_UNKNOWN_BEFORE: Final = ("undelivered", "discarded")
"""Counts that an audit of an earlier release did not store; it did not store `overdue`, either."""
_ENDED: Final = ("expired", "purged", "dead", "nacked", "removed")
Rows = list[dict[str, Any]]


def audited(lake: Lake) -> list[date]:
    """Returns the audited days."""
    return lake.days("gold/reconciliation")


def gather(lake: Lake, day: date) -> dict[str, Any]:
    """Returns the content of the report on one day as JSON values, except that times are datetimes. Raises
    CommandError if the day was not audited.
    """
    if day not in audited(lake):
        raise CommandError(
            Exit.EMPTY, f"{day} was not audited: run `msmq-lake audit --lake {lake.root}` first"
        )
    rows, proof = _reconciliation(lake, day), gold_rows(lake, "coverage", day)
    counters = gold_rows(lake, "counters", day)
    latency = gold_rows(lake, "latency", day)
    kinds, queues = _kinds(lake, day), queue_rows(lake, day)
    doubled = _part(lake, f"gold/duplicates/day={day}", ["message_id"], _of("wire_dup", value=False))
    found = {
        "day": day.isoformat(),
        "lake": lake.root,
        "verdict": verdict(rows, proof, counters, kinds.get("gap", 0)),
        "totals": {name: sum(row[name] for row in rows) for name in COUNTS},
        "reconciliation": sorted(rows, key=lambda row: (_RANK[row["verdict"]], -row["sent"])),
        "coverage": sorted(proof, key=lambda row: (str(row["name"]), row["incarnation"])),
        "counters_differing": [row for row in counters if row["equal"] is False],
        "counters_unproven": sum(row["equal"] is None for row in counters),
        "counters_compared": sum(row["equal"] is not None for row in counters),
        "sequence_gaps": _sequences(lake, day),
        "sequence_kinds": kinds,
        "duplicates": doubled,
        "wire_duplicates": _part(lake, f"gold/duplicates/day={day}", [], _of("wire_dup", value=True))["n"],
        "poison": _part(lake, f"gold/poison/day={day}", ["message_id"]),
        "undelivered": sorted(
            gold_rows(lake, "undelivered", day), key=lambda row: (-row["n"], row["reason"])
        ),
        "undelivered_by": undelivered_by(lake, day),
        "nacks": sorted(gold_rows(lake, "nack_by_class", day), key=lambda row: -row["n"]),
        "latency": sorted(latency, key=lambda row: (row["dest"] or "", row["hour"], row["leg"])),
        "lost": lost(lake, day),
        "latency_day": sorted(
            gold_rows(lake, "latency_day", day), key=lambda row: (row["dest"] or "", row["leg"])
        ),
        "messages": {name: messages(lake, day, name) for name in _LISTED},
        "queue_list": queues,
        "queue_depth": minutes(lake, day, matter_most(queues, rows)),
        "audit": next(iter(gold_rows(lake, "audits", day)), None),
        **series(lake, day, {row["qm"]: row["name"] for row in proof}),
    }
    return found | {"checks": [check._asdict() for check in checks(found)]}


_RANK: Final = {"lost": 0, "unproven": 1, "undelivered": 2, "ok": 3}


def verdict(rows: Rows, coverage: Rows, counters: Rows, gaps: int) -> str:
    """Returns the verdict on a day: `lost`, `unproven`, `undelivered` or `ok`.

    `ok` requires that the lake has all events of the day, and that all counts of the queue managers are equal
    to the sums of their events; a missing count is not equal. `undelivered` requires the same, but some
    messages are overdue, or were refused, expired, purged or removed and are in no dead-letter queue. If
    messages are lost, the verdict is `lost`; otherwise it is `unproven`.
    """
    verdicts = {row["verdict"] for row in rows}
    if "lost" in verdicts:
        return "lost"
    whole = bool(coverage) and all(row["whole"] for row in coverage)
    equal = all(row["equal"] for row in counters) and bool(counters or not rows)
    if not (whole and equal and not gaps and verdicts <= {"ok", "undelivered"}):
        return "unproven"
    return "undelivered" if "undelivered" in verdicts else "ok"


def undelivered_by(lake: Lake, day: date) -> Rows:
    """Counts the messages that no program received and none will receive, and returns one row per `arrived`,
    `state` and `reason`.

    `arrived`: whether the messages were in their queue. `n`: their number. `dead_lettered`: how many of them
    are in a dead-letter queue. Messages that did not arrive come first; within each group, the most frequent
    reason is first.
    """
    sums: dict[tuple[bool, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in gold_rows(lake, "undelivered", day):
        found = sums[row["arrived"], row["state"], row["reason"]]
        found[0] += row["n"]
        found[1] += row["n"] if row["dead_lettered"] else 0
    ordered = sorted(sums.items(), key=lambda item: (item[0][0], -item[1][0], item[0][1:]))
    return [
        {"arrived": arrived, "state": state, "reason": reason, "n": n, "dead_lettered": dead}
        for (arrived, state, reason), (n, dead) in ordered
    ]


_WORDS: Final = {"nacked": "refused", "dead": "dead-lettered"}
"""Words for states of messages that are not words of their own."""


def undelivered(found: dict[str, Any]) -> Iterator[str]:
    """Yields, in words, the messages that did not reach their queue, those that left it unread, and those
    that are overdue. `found` is the result of `gather` or `outcome`.
    """
    for arrived, what in ((False, "did not reach their queue"), (True, "left their queue unread")):
        rows = [row for row in found["undelivered_by"] if row["arrived"] is arrived]
        if not rows:
            continue
        dead = sum(row["dead_lettered"] for row in rows)
        reasons = ", ".join(f"{row['n']} {ended(row['state'], row['reason'])}" for row in rows)
        where = f"{dead} of them are in dead-letter queues" if dead else "none is in a dead-letter queue"
        yield f"{counted(sum(row['n'] for row in rows), 'message')} {what}: {reasons} ({where})"
    if overdue := found.get("totals", found)["overdue"]:
        waits = counted(overdue, "message waits", "messages wait")
        yield f"{waits} at the sender or at a router for longer than the time allowed"


def ended(state: str, reason: str) -> str:
    """Returns the words for how a message ended, for example `refused (NACK_BAD_DST_Q)`."""
    word = _WORDS.get(state, state)
    return word if reason == state else f"{word} ({reason})"


def outcome(lake: Lake, day: date) -> dict[str, Any]:
    """Returns the verdict on one day and its totals."""
    rows, counters = _reconciliation(lake, day), gold_rows(lake, "counters", day)
    gaps = _kinds(lake, day).get("gap", 0)
    return {
        "day": day.isoformat(),
        "verdict": verdict(rows, gold_rows(lake, "coverage", day), counters, gaps),
        **{name: sum(row[name] for row in rows) for name in COUNTS},
        "undelivered_by": undelivered_by(lake, day),
        "counters_differing": sum(row["equal"] is False for row in counters),
        "counters_unproven": sum(row["equal"] is None for row in counters),
    }


_LISTED: Final = ("undelivered", "overdue", "open")
"""The groups of messages that a report lists, besides the lost ones."""


def messages(lake: Lake, day: date, group: str) -> dict[str, Any]:
    """Returns the first SHOWN messages of a group of _LISTED, as `rows`, and their number `n`. `open`: those
    that wait in the queue where they arrived.
    """
    from pyarrow import compute

    data = lake.dataset(f"silver/lifecycle/day={day}")
    names = () if data is None else data.schema.names
    columns = ["message_id", "dest", "first_sent", "first_arrived", "terminal_time", "state", "reason"]
    columns += ["dead_lettered"]
    if not {*columns, "overdue"} <= {*names}:  # of an earlier release
        return {"n": 0, "rows": []}
    state = compute.field("state")
    wanted = {
        "undelivered": state.isin(list(UNDELIVERED)),
        "overdue": compute.field("overdue"),
        "open": (state == "open") & compute.field("seen_arrived"),
    }[group]
    return _part(lake, f"silver/lifecycle/day={day}", ["first_sent", "message_id"], wanted, columns)


def trend(lake: Lake, last: date, days: int) -> Rows:
    """Returns the `outcome` of the last audited days up to `last`, at most `days` of them, in order."""
    return [outcome(lake, day) for day in audited(lake) if day <= last][-days:]


def lost(lake: Lake, day: date) -> Rows:
    """Returns at most SHOWN of the messages in the states `lost` and `lost?`."""
    from pyarrow import compute

    data = lake.dataset(f"silver/lifecycle/day={day}")
    if data is None:
        return []
    gone = compute.field("state").isin(["lost", "lost?"])
    columns = ["message_id", "dest", "sender", "receiver", "first_sent", "acked_time", "state"]
    return list(data.head(SHOWN, columns=columns, filter=gone).to_pylist())


def _reconciliation(lake: Lake, day: date) -> Rows:
    """Returns gold/reconciliation of a day. In a table of an earlier release, which did not count dead
    letters, all undelivered messages count as discarded.
    """
    rows = gold_rows(lake, "reconciliation", day)
    for row in rows:
        row["overdue"] = row.get("overdue") or 0
        if row.get(_UNKNOWN_BEFORE[0]) is None:
            ended = sum(row.get(name) or 0 for name in _ENDED)
            row.update(dict.fromkeys(_UNKNOWN_BEFORE, ended))
            if ended and row["verdict"] == "ok":
                row["verdict"] = "undelivered"
    return rows


def gold_rows(lake: Lake, table: str, day: date) -> Rows:
    """Returns the rows of one day of a gold table that is small."""
    data = lake.dataset(f"gold/{table}/day={day}")
    return [] if data is None else list(data.to_table().to_pylist())


def _of(column: str, *, value: Any) -> Any:
    from pyarrow import compute

    return compute.field(column) == value


def _part(
    lake: Lake, path: str, order: list[str], wanted: Any = None, columns: list[str] | None = None
) -> dict[str, Any]:
    """Returns an extract of a table that may be long. `n`: the number of its rows. `rows`: the first SHOWN of
    these rows in the order of the columns `order`; none if `order` is empty.
    """
    import pyarrow as pa
    from pyarrow import compute

    data = lake.dataset(path)
    if data is None:
        return {"n": 0, "rows": []}
    count, first = 0, None
    for batch in data.to_batches(columns=columns, filter=wanted):
        count += batch.num_rows
        if order and batch.num_rows:
            both = [_table(batch)] if first is None else [first, _table(batch)]
            first = pa.concat_tables(both)
            keys = [(column, "ascending") for column in order]
            first = first.take(compute.select_k_unstable(first, min(SHOWN, len(first)), keys))
    return {"n": count, "rows": [] if first is None else first.to_pylist()}


def _sequences(lake: Lake, day: date) -> dict[str, Any]:
    """Returns the findings about sequences: their number `n`, and the first of them as `rows`. Restarts come
    last, because they may be many, and are not faults.
    """
    from pyarrow import compute

    begun = compute.field("kind") == "restart"
    wrong = _part(lake, f"gold/sequence_gaps/day={day}", ["first_seen"], ~begun)
    again = _part(lake, f"gold/sequence_gaps/day={day}", ["first_seen"], begun)
    return {"n": wrong["n"] + again["n"], "rows": [*wrong["rows"], *again["rows"]][:SHOWN]}


def _kinds(lake: Lake, day: date) -> dict[str, int]:
    data = lake.dataset(f"gold/sequence_gaps/day={day}")
    counts: Counter[str] = Counter()
    for batch in data.to_batches(columns=["kind"]) if data is not None else ():
        for pair in batch.column(0).value_counts().to_pylist():
            counts[pair["values"]] += pair["counts"]
    return dict(sorted(counts.items()))


def _table(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])
