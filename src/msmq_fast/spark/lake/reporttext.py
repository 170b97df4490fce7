"""The sentences and tables of a report, which all its forms share, and its Markdown form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Any, Final

from msmq_fast.spark.lake.summary import undelivered

Section = tuple[str, str, Sequence[str], Sequence[Sequence[Any]]]
"""Title, note, names of columns, rows."""

VERDICTS: Final = {
    "ok": "Nothing lost.",
    "lost": "Messages are lost.",
    "unproven": "Unproven.",
    "undelivered": "Nothing lost, but not everything was delivered.",
}


def explained(found: dict[str, Any]) -> str:
    """Returns a sentence with the reasons for the verdict."""
    if found["verdict"] in ("ok", "undelivered"):
        return (
            "The lake has the whole event feeds of both sides; every message has an explained end "
            "or is still there."
        )
    reasons = [*_reasons(found)]
    return "; ".join(reasons)[:1].upper() + "; ".join(reasons)[1:] + "."


def _reasons(found: dict[str, Any]) -> Iterator[str]:
    totals = found["totals"]
    if totals["lost"]:
        yield f"{totals['lost']} messages were acknowledged by the next queue manager but are not in its feed"
    if totals["unclear"]:
        yield f"{totals['unclear']} messages were not found at their receiver, whose feed is incomplete"
    for row in found["coverage"]:
        yield from _holes(row)
    if not found["coverage"]:
        yield "the lake does not record which events it contains"
    if found["counters_differing"]:
        yield f"{len(found['counters_differing'])} queues differ from the sum of their events"
    if found["counters_unproven"]:
        yield (
            f"of {found['counters_unproven']} queues the lake has no count, or none of an earlier time, that "
            "their events could be compared with"
        )
    elif found["reconciliation"] and not found["counters_compared"]:
        yield "no queue manager's own counts are in the lake, so nothing was compared with them"
    if gaps := found["sequence_kinds"].get("gap"):
        yield f"{gaps} gaps in transactional sequences"
    partners = {row["sender"] for row in found["reconciliation"]} | {
        row["receiver"] for row in found["reconciliation"]
    }
    missing = partners - {row["qm"] for row in found["coverage"]}
    if missing:
        yield f"the lake has no events of {len(missing)} queue managers that sent or received messages"


def _holes(row: dict[str, Any]) -> Iterator[str]:
    name = row["name"] or row["qm"]
    if row["from_seq"] is None:
        yield f"no events of {name} are archived"
    if row.get("began_late"):
        yield f"what the lake has of {name} begins at {cell(row['from_time'])}"
    if row.get("ended_early"):
        yield f"what the lake has of {name} ends at {cell(row['through'])}"
    if row["missing"]:
        yield f"{row['missing']} events of {name} are missing in the lake"
    if row["dropped"]:
        yield f"{name} dropped {row['dropped']} events before they were archived"
    if row["restored"]:
        yield f"the store of {name} came back from a backup (incarnation {row['incarnation']})"
    if row.get("rolled_back"):
        yield f"the store of {name} went back to an earlier state: it counted fewer events than before"


def sections(found: dict[str, Any]) -> list[Section]:
    """Returns the tables of a report."""
    names = {row["qm"]: row["name"] for row in found["coverage"]}
    return [
        (
            "Sender and receiver",
            "",
            ("verdict", "from", "to", *_COUNTS),
            [
                (
                    row["verdict"],
                    names.get(row["sender"]) or _short(row["sender"]),
                    row["dest"] or "?",
                    *(row[name] for name in _COUNTS),
                )
                for row in found["reconciliation"]
            ],
        ),
        (
            "Messages that were not delivered",
            "; ".join(undelivered(found)),
            ("from", "to", "reason", "was in its queue", "in a dead-letter queue", "n", "such as"),
            [
                (
                    names.get(row["sender"]) or _short(row["sender"]),
                    row["dest"] or "?",
                    row["reason"],
                    row["arrived"],
                    row["dead_lettered"],
                    row["n"],
                    row["sample_ids"][0],
                )
                for row in found["undelivered"]
            ],
        ),
        (
            "Lost messages",
            f"{found['totals']['lost']} lost, {found['totals']['unclear']} unclear",
            ("message", "to", "sent", "acknowledged", "state"),
            [
                (row["message_id"], row["dest"], row["first_sent"], row["acked_time"], row["state"])
                for row in found["lost"]
            ],
        ),
        _sequences(found),
        _limited(found, "duplicates", "Duplicates", ("message_id", "dest", "n"), _wire(found)),
        _limited(
            found, "poison", "Poison messages", ("message_id", "queue", "abort_count", "move_count", "label")
        ),
        _coverage(found),
        (
            "Counters that differ",
            f"{found['counters_unproven']} queues can't be checked" if found["counters_unproven"] else "",
            ("queue manager", "queue", "counted", "by events"),
            [
                (_short(row["qm"]), row["queue"], row["counted"], row["computed"])
                for row in found["counters_differing"]
            ],
        ),
    ]


_COUNTS: Final = (
    "sent",
    "arrived",
    "received",
    "open",
    "lost",
    "expired",
    "purged",
    "dead",
    "nacked",
    "removed",
)


def _wire(found: dict[str, Any]) -> str:
    return f"{found['wire_duplicates']} more came again over the wire and were dropped, as they should be"


def _limited(
    found: dict[str, Any], table: str, title: str, columns: Sequence[str], note: str = ""
) -> Section:
    part = found[table]
    rows = [tuple(row[name] for name in columns) for row in part["rows"]]
    more = f"{part['n']} in all" + (f"; {note}" if note else "")
    return title, more, [name.replace("_", " ") for name in columns], rows


def _sequences(found: dict[str, Any]) -> Section:
    kinds = ", ".join(f"{n} of kind {kind}" for kind, n in found["sequence_kinds"].items())
    columns = ("sender", "dest", "seq_id", "from_no", "to_no", "kind", "first_seen")
    rows = [tuple(row[name] for name in columns) for row in found["sequence_gaps"]["rows"]]
    return "Transactional sequences", kinds, [name.replace("_", " ") for name in columns], rows


def _coverage(found: dict[str, Any]) -> Section:
    columns = ("name", "incarnation", "from_seq", "to_seq", "missing", "dropped", "through", "whole")
    rows = [(_short(row["qm"]), *(row[name] for name in columns)) for row in found["coverage"]]
    note = "the proof of the lake itself: event numbers that it has without a hole"
    return "Coverage", note, ["queue manager", *(name.replace("_", " ") for name in columns)], rows


def _short(guid: str | None) -> str:
    return (guid or "?").split("-")[0]


def cell(value: Any) -> str:
    """Returns a value as display text."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def _plain(text: str) -> str:
    """Returns the text on one line, without Markdown markup and cell separators: senders choose labels and
    names, and must not be able to change the page.
    """
    escaped = escape(" ".join(text.split()), quote=False)
    return escaped.replace("|", "\\|").replace("[", "\\[")


def markdown(found: dict[str, Any]) -> str:
    """Returns the report as Markdown, without plots."""
    lines = [
        f"# Message audit of {found['day']}",
        "",
        f"**{VERDICTS[found['verdict']]}** {_plain(explained(found))}",
        *(line for sentence in undelivered(found) for line in ("", f"**{_plain(sentence)}.**")),
        "",
        "| " + " | ".join(found["totals"]) + " |",
        "|" + "---|" * len(found["totals"]),
        "| " + " | ".join(cell(value) for value in found["totals"].values()) + " |",
    ]
    nacks = [(row["class_name"], row["queue"], row["n"]) for row in found["nacks"]]
    latency = [
        tuple(row[name] for name in ("dest", "hour", "leg", "n", "p50_ms", "p95_ms", "p99_ms", "max_ms"))
        for row in found["latency"]
    ]
    more: list[Section] = [
        ("Latency", "", ("to", "hour", "leg", "n", "p50 ms", "p95 ms", "p99 ms", "max ms"), latency),
        ("Negative acknowledgments", "", ("class", "queue", "n"), nacks),
    ]
    for title, note, columns, rows in [*sections(found), *more]:
        lines += ["", f"## {title}", ""]
        if note:
            lines += [note, ""]
        if not rows:
            lines.append("none")
            continue
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(_plain(cell(value)) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
