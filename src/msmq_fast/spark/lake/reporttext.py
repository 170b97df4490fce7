"""The sentences and tables of a report, which all its forms share, and its Markdown form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Any, Final, NamedTuple
from unicodedata import category

from msmq_fast.protocol.text import counted
from msmq_fast.spark.lake.summary import ended, undelivered


class Section(NamedTuple):
    """A table of a report. `anchor`: its name in links to it. `note`: a sentence above the table; "" for
    none.
    """

    anchor: str
    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class MessageId(str):
    """The identifier of a message, which a page may link to the console."""

    __slots__ = ()


class Verdict(str):
    """A verdict or the result of a check, which a page shows in the colour of its meaning."""

    __slots__ = ()


class Link(NamedTuple):
    """A number or name in a table, with the anchor of the section, or the file of the page, that has the
    details.
    """

    value: Any
    anchor: str


class Explained(NamedTuple):
    """A text in a table, with a sentence that a page shows on demand."""

    value: str
    how: str


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
        differ = counted(len(found["counters_differing"]), "queue differs", "queues differ")
        yield f"{differ} from the sum of the events"
    if found["counters_unproven"]:
        yield (
            f"of {found['counters_unproven']} queues the lake has no count, or none of an earlier time, that "
            "their events could be compared with"
        )
    elif found["reconciliation"] and not found["counters_compared"]:
        yield "no queue manager's own counts are in the lake, so nothing was compared with them"
    if gaps := found["sequence_kinds"].get("gap"):
        yield f"{counted(gaps, 'gap')} in transactional sequences"
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
    """Returns the tables of a report that all its forms have."""
    return [
        _destinations(found),
        _undelivered(found),
        _listed(found, "overdue", "Messages that wait at their sender or at a router for too long"),
        _lost(found),
        _sequences(found),
        _limited(found, "duplicates", "Duplicates", ("message_id", "dest", "n"), _wire(found)),
        _limited(
            found, "poison", "Poison messages", ("message_id", "queue", "abort_count", "move_count", "label")
        ),
        _queues(found, "queues", "Queues", ("queue", "outgoing")),
        _listed(found, "open", "Messages that wait in their queue, the oldest of this day first"),
        _queues(found, "journals", "Journals, dead-letter queues and internal queues", _APART),
        _latency(found),
        _nacks(found),
        _coverage(found),
        _counters(found),
    ]


_APART: Final = ("journal", "dead letters", "internal")
_TOTAL: Final = "total"


def names_of(found: dict[str, Any]) -> dict[str, str]:
    """Returns the names of the queue managers of a report, by GUID; without a name, a part of the GUID."""
    rows = found["reconciliation"]
    guids = {row[side] for row in rows for side in ("sender", "receiver")}
    guids |= {row["qm"] for row in found["queue_list"]} | {row["qm"] for row in found["coverage"]}
    names = {row["qm"]: row["name"] for row in found["coverage"]}
    return {guid: names.get(guid) or short(guid) for guid in guids}


def _destinations(found: dict[str, Any]) -> Section:
    names = names_of(found)
    slow = {(row["sender"], row["dest"]): row for row in found["latency_day"] if row["leg"] == _TOTAL}
    columns = (
        "verdict",
        "from",
        "to",
        "sent",
        "received",
        "open",
        "undelivered",
        "lost",
        "p50",
        "p95",
        "p99",
    )
    rows = []
    for row in found["reconciliation"][:LISTED]:
        times = slow.get((row["sender"], row["dest"]), {})
        rows.append(
            (
                Verdict(row["verdict"]),
                names[row["sender"]],
                row["dest"] or "?",
                row["sent"],
                row["received"],
                _number(row["open"], "open"),
                _number(row["undelivered"], "undelivered"),
                _number(row["lost"] + row["unclear"], "lost"),
                *(milliseconds(times.get(f"{name}_ms")) for name in ("p50", "p95", "p99")),
            )
        )
    note = (
        "p50, p95 and p99: the time from sending to receiving that half, 95 % and 99 % of the messages took"
    )
    return Section("destinations", "Sender and receiver", _of(found["reconciliation"], note), columns, rows)


def _number(value: int, anchor: str) -> Any:
    return Link(value, anchor) if value else value


def _of(rows: Sequence[Any], note: str) -> str:
    return f"the first {LISTED} of {len(rows)}; {note}" if len(rows) > LISTED else note


def _undelivered(found: dict[str, Any]) -> Section:
    groups = "; ".join(undelivered(found))
    part = found["messages"]["undelivered"]
    rows = [
        (
            MessageId(row["message_id"]),
            row["dest"] or "?",
            ended(row["state"], row["reason"] or row["state"]),
            row["dead_lettered"],
            row["first_sent"],
            row["terminal_time"],
        )
        for row in part["rows"]
    ]
    return Section(
        "undelivered",
        "Messages that were not delivered",
        "; ".join(filter(None, (groups, _more(part)))),
        ("message", "to", "how it ended", "in a dead-letter queue", "sent", "ended"),
        rows,
    )


def _more(part: dict[str, Any]) -> str:
    if part["n"] <= len(part["rows"]):
        return ""
    return f"the first {len(part['rows'])} of {part['n']}; all of them are in silver/lifecycle"


def _listed(found: dict[str, Any], group: str, title: str) -> Section:
    part = found["messages"][group]
    rows = [
        (MessageId(row["message_id"]), row["dest"] or "?", row["first_sent"], row["first_arrived"])
        for row in part["rows"]
    ]
    return Section(group, title, _more(part), ("message", "to", "sent", "arrived"), rows)


def _lost(found: dict[str, Any]) -> Section:
    return Section(
        "lost",
        "Lost messages",
        f"{found['totals']['lost']} lost, {found['totals']['unclear']} unclear",
        ("message", "to", "sent", "acknowledged", "state"),
        [
            (MessageId(row["message_id"]), row["dest"], row["first_sent"], row["acked_time"], row["state"])
            for row in found["lost"]
        ],
    )


def _wire(found: dict[str, Any]) -> str:
    return f"{found['wire_duplicates']} more came again over the wire and were dropped, as they should be"


def _limited(
    found: dict[str, Any], table: str, title: str, columns: Sequence[str], note: str = ""
) -> Section:
    part = found[table]
    rows = [
        tuple(MessageId(row[name]) if name == "message_id" else row[name] for name in columns)
        for row in part["rows"]
    ]
    more = f"{part['n']} in all" + (f"; {note}" if note else "")
    return Section(table, title, more, [name.replace("_", " ") for name in columns], rows)


def _sequences(found: dict[str, Any]) -> Section:
    """Restarts are no faults: they are counted only."""
    names, kinds = names_of(found), dict(found["sequence_kinds"])
    restarts = kinds.pop("restart", 0)
    counts = [f"{n} of kind {kind}" for kind, n in kinds.items()]
    counts += [f"{restarts} sequences began again at 1, which is normal"] if restarts else []
    columns = ("kind", "from", "to", "sequence", "first number", "last number", "first seen")
    rows = [
        (
            row["kind"],
            names.get(row["sender"]) or short(row["sender"]),
            row["dest"],
            str(row["seq_id"]),
            str(row["from_no"]),
            str(row["to_no"]),
            row["first_seen"],
        )
        for row in found["sequence_gaps"]["rows"]
        if row["kind"] != "restart"
    ]
    return Section("sequences", "Transactional sequences", ", ".join(counts), columns, rows)


def _queues(found: dict[str, Any], anchor: str, title: str, kinds: Sequence[str]) -> Section:
    names = names_of(found)
    queues = [row for row in found["queue_list"] if row["kind"] in kinds]
    columns = (
        "queue",
        "queue manager",
        "kind",
        "messages",
        "most",
        "oldest message",
        "arrived",
        "received",
        "counted",
    )
    counted = {True: "equal", False: "differs", None: "not compared"}
    rows = [
        (
            row["queue"],
            names[row["qm"]],
            row["kind"],
            row["depth"],
            row["depth_max"],
            row["oldest"],
            row["arrived"],
            row["received"],
            "" if row["kind"] == "outgoing" else counted[row["equal"]],
        )
        for row in queues[:LISTED]
    ]
    note = "messages at the end of the day, and the most at the end of a minute; the deepest queues first"
    return Section(anchor, title, _of(queues, note), columns, rows)


def _latency(found: dict[str, Any]) -> Section:
    rows = [
        (
            row["dest"] or "?",
            _LEGS.get(row["leg"], row["leg"]),
            row["n"],
            *(milliseconds(row[name]) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")),
        )
        for row in found["latency_day"]
    ]
    note = "of the whole day; gold/latency has every hour"
    columns = ("to", "way", "messages", "p50", "p95", "p99", "longest")
    return Section("latency", "Latency by destination", _of(rows, note), columns, rows[:LISTED])


_LEGS: Final = {
    "sent_arrived": "sent to arrived",
    "arrived_received": "arrived to received",
    "total": "sent to received",
}


def _nacks(found: dict[str, Any]) -> Section:
    rows = [(row["class_name"], row["queue"], row["n"]) for row in found["nacks"]]
    columns = ("class", "queue", "messages")
    return Section("nacks", "Negative acknowledgments", _of(rows, ""), columns, rows[:LISTED])


def _coverage(found: dict[str, Any]) -> Section:
    columns = (
        "queue manager",
        "GUID",
        "incarnation",
        "first event",
        "last event",
        "missing",
        "dropped",
        "complete up to",
        "whole day",
    )
    rows = [
        (
            row["name"],
            short(row["qm"]),
            str(row["incarnation"]),
            *("" if row[name] is None else str(row[name]) for name in ("from_seq", "to_seq")),
            row["missing"],
            row["dropped"],
            row["through"],
            row["whole"],
        )
        for row in found["coverage"]
    ]
    note = "the proof of the lake itself: event numbers that it has without a hole"
    return Section("coverage", "Coverage", note, columns, rows)


def _counters(found: dict[str, Any]) -> Section:
    names = names_of(found)
    unproven = found["counters_unproven"]
    rows = [
        (names.get(row["qm"]) or short(row["qm"]), row["queue"], row["counted"], row["computed"])
        for row in found["counters_differing"]
    ]
    return Section(
        "counters",
        "Counters that differ",
        f"{unproven} queues cannot be checked" if unproven else "",
        ("queue manager", "queue", "counted", "by events"),
        rows,
    )


LISTED: Final = 100
"""The number of queues or destinations that a table has."""


def short(guid: str | None) -> str:
    """Returns the first part of a GUID, which is enough to tell queue managers apart."""
    return (guid or "?").split("-")[0]


def milliseconds(value: float | None) -> str:
    """Returns a duration that is given in milliseconds, with its unit."""
    if value is None:
        return ""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ms"


def visible(text: str) -> str:
    """Returns a text on one line in which characters that are not shown, or change the order of others, are
    shown by their numbers: senders choose names and labels.
    """
    return "".join(
        f"\\u{{{ord(letter):x}}}" if category(letter) in _UNSEEN else letter
        for letter in " ".join(text.split())
    )


_UNSEEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def cell(value: Any) -> str:
    """Returns a value as display text."""
    if isinstance(value, Link | Explained):
        return cell(value.value)
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
    escaped = escape(visible(text), quote=False)
    return re.sub(r"([\\|\[*`~])", r"\\\1", escaped)


def markdown(found: dict[str, Any]) -> str:
    """Returns the report as Markdown, without plots."""
    lines = [
        f"# {_plain(heading(found))}",
        "",
        _plain(made(found)),
        "",
        f"**{VERDICTS[found['verdict']]}** {_plain(explained(found))}",
        *(line for sentence in undelivered(found) for line in ("", f"**{_plain(sentence)}.**")),
        "",
        "| " + " | ".join(found["totals"]) + " |",
        "|" + "---|" * len(found["totals"]),
        "| " + " | ".join(cell(value) for value in found["totals"].values()) + " |",
        "",
        "## What was checked",
        "",
    ]
    lines += [
        f"- {check['result']}: **{check['name']}**: {_plain(check['text'])}" for check in found["checks"]
    ]
    for _, title, note, columns, rows in sections(found):
        lines += ["", f"## {title}", ""]
        if note:
            lines += [_plain(note), ""]
        if not rows:
            lines.append("none")
            continue
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(_plain(cell(value)) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def heading(found: dict[str, Any]) -> str:
    """Returns the heading of a report: its title and day."""
    return f"{found.get('title') or 'Message audit'} of {found['day']}"


def made(found: dict[str, Any]) -> str:
    """Returns a line that says what the report is about, and when and where it was made."""
    names = ", ".join(sorted({row["name"] or short(row["qm"]) for row in found["coverage"]})[:SHOWN_NAMES])
    audit = found["audit"]
    parts = [f"queue managers: {names or 'unknown'}", f"lake {found['lake']}"]
    parts += [f"audited {cell(audit['audited_at'])}"] if audit else []
    parts += [f"report made {cell(found['made_at'])} on {found['host']}"] if "made_at" in found else []
    return "; ".join([*parts, "all times in UTC"])


SHOWN_NAMES: Final = 12
"""The number of queue managers that the head of a report names."""
