"""The page of one audited day, and the index page of all audited days: each one HTML file without scripts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msmq_fast.spark.lake.checks import FAILED, PASSED
from msmq_fast.spark.lake.htmlparts import MEANINGS, banner, contents, document, table, text, tile
from msmq_fast.spark.lake.plots import Bar, bar_plot, day_plot, line_plot
from msmq_fast.spark.lake.reporttext import (
    VERDICTS,
    Explained,
    Link,
    Section,
    Verdict,
    explained,
    heading,
    made,
    milliseconds,
    names_of,
    sections,
)
from msmq_fast.spark.lake.summary import undelivered

_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_LINES: Final = 8
"""The number of destinations in the plot of latencies: the slowest ones."""


def page(found: dict[str, Any]) -> str:
    """Returns the page for the report that `summary.gather` returned. The report may also have `title`,
    `made_at`, `host`, `console` (the address of the web console), `trend` (see `summary.trend`) and `links`,
    pairs of names and files of other pages.
    """
    console = found.get("console")
    links = "".join(f'<a href="{text(file)}">{text(name)}</a>' for name, file in found.get("links", ()))
    colour = _colour(found)
    parts, shown = [], []
    tables = {section.anchor: section for section in sections(found)}
    counted = ("queues", "journals")
    for anchor in _ORDER:
        section = tables[anchor]
        if anchor in counted:
            section = section._replace(
                rows=[(*row[:-1], Verdict(row[-1]) if row[-1] else "") for row in section.rows]
            )
        if section.rows or anchor in _ALWAYS:
            shown.append((anchor, section.title))
            parts.append(table(section, console))
        parts += [f"<h3>{text(name)}</h3>{plot}" for name, plot in _plots(found, anchor)]
    queues, days = _each_queue(found), _trend(found.get("trend", []))
    named = [("checks", _CHECKED), *([("trend", _DAYS)] if days else []), *shown]
    head = (
        f"<nav>{links}</nav>" if links else "",
        f'<h1>{text(heading(found))}</h1><p class="note">{text(made(found))}</p>',
        banner(colour, VERDICTS[found["verdict"]], explained(found)),
        *(banner("warn", f"{line}.") for line in undelivered(found)),
        _hints(found),
        _tiles(found),
        contents([*named, *([("each", _EACH)] if queues else [])]),
        _checks(found, {anchor for anchor, _ in shown}),
        days,
    )
    return document(heading(found), "".join((*head, *parts, queues)))


_CHECKED: Final = "What was checked"
_DAYS: Final = "The last days"
_EACH: Final = "Queue by queue"
_ORDER: Final = (
    "destinations",
    "undelivered",
    "overdue",
    "lost",
    "duplicates",
    "poison",
    "sequences",
    "queues",
    "open",
    "latency",
    "nacks",
    "journals",
    "coverage",
    "counters",
)
_ALWAYS: Final = ("destinations", "undelivered", "lost", "queues", "latency", "coverage", "counters")
"""Sections that a page has even if they are empty, because figures and checks link to them."""


def _colour(found: dict[str, Any]) -> str:
    """Returns the colour of a day: green is for a day on which everything was delivered."""
    meaning = MEANINGS[found["verdict"]]
    return "warn" if meaning == "good" and [*undelivered(found)] else meaning


def _hints(found: dict[str, Any]) -> str:
    """Returns what an operator should do next."""
    totals, hints = found["totals"], []
    if totals["lost"] or totals["unclear"]:
        hints.append(
            "Trace the lost messages (`msmq-fast trace ID`), and ask their senders to send them again."
        )
    if totals["undelivered"]:
        hints.append(
            "Look at the reasons below; send what is in dead-letter queues again once the cause is removed."
        )
    if totals["overdue"]:
        hints.append("Look at the outgoing queues: `msmq-fast outgoing list` names the cause of each.")
    if any(row["ended_early"] for row in found["coverage"] if "ended_early" in row):
        hints.append("Archive once more, then run `msmq-lake audit` again: the end of the day is missing.")
    if found["poison"]["n"]:
        hints.append("Look at the poison messages: a program cannot process them.")
    items = "".join(f"<li>{text(hint)}</li>" for hint in hints)
    return f'<h2 id="todo">What to do</h2><ul>{items}</ul>' if items else ""


def _tiles(found: dict[str, Any]) -> str:
    totals = found["totals"]
    figures = (
        ("sent", "sent", "info", "destinations"),
        ("arrived", "arrived", "info", "destinations"),
        ("received", "received", "good", "destinations"),
        ("in a queue or on the way", "open", "info", "queues"),
        ("not delivered", "undelivered", "warn", "undelivered"),
        ("overdue", "overdue", "warn", "undelivered"),
        ("lost", "lost", "bad", "lost"),
        ("unclear", "unclear", "warn", "lost"),
        ("delivered twice", "duplicated", "bad", "checks"),
    )
    days = found.get("trend", [])[-2:]
    before = days[0] if len(days) == 2 else {}

    def shown(label: str, name: str, meaning: str, anchor: str) -> str:
        note = (
            f"{before['day'][5:]}: {before[name]:,}" if before.get(name) or (before and totals[name]) else ""
        )
        return tile(label, totals[name], meaning, anchor, note)

    return f'<div class="tiles">{"".join(shown(*figure) for figure in figures)}</div>'


def _checks(found: dict[str, Any], anchors: Collection[str]) -> str:
    """Returns the list of checks. Those with a section in `anchors` are linked to it."""
    checks = found["checks"]
    passed = sum(check["result"] == PASSED for check in checks)
    failed = sum(check["result"] == FAILED for check in checks)
    note = f"{passed} of {len(checks)} checks passed" + (f", {failed} failed" if failed else "")
    rows = [
        (
            Verdict(check["result"]),
            Link(check["name"], check["anchor"]) if check["anchor"] in anchors else check["name"],
            Explained(check["text"], check["how"]),
        )
        for check in checks
    ]
    return table(Section("checks", _CHECKED, note, ("result", "check", "what was found"), rows))


def _trend(days: Sequence[dict[str, Any]]) -> str:
    if len(days) < 2:
        return ""
    sent = [Bar(day["day"], ((day["sent"], _day_colour(day)),)) for day in days]
    missed = [
        Bar(day["day"], ((day["undelivered"] + day["overdue"], "warn"), (day["lost"], "bad"))) for day in days
    ]
    note = "messages sent, in the colour of the verdict"
    plots = day_plot(sent)
    if any(value for bar in missed for value, _ in bar.parts):
        note += "; below, messages that were not delivered or wait for too long, and lost ones"
        plots += day_plot(missed)
    return f'<h2 id="trend">{_DAYS}</h2><p class="note">{note}</p>{plots}'


def _day_colour(day: dict[str, Any]) -> str:
    meaning = MEANINGS[day["verdict"]]
    return "warn" if meaning == "good" and [*undelivered(day)] else meaning


def _plots(found: dict[str, Any], anchor: str) -> Sequence[tuple[str, str]]:
    """Returns the plots below a section, as pairs of title and HTML."""
    if anchor == "queues":
        flow = found["throughput"]
        flows = {
            "arrived": [(row[0], row[1] / 60) for row in flow],
            "received": [(row[0], row[2] / 60) for row in flow],
        }
        return (
            ("Depth of the deepest queues at the end of each minute", _depth(found["depth"])),
            ("Throughput by minute", line_plot(flows if flow else {}, unit="messages/s", spans=_MINUTE)),
        )
    if anchor == "journals" and found["depth_apart"]:
        return (("Journals and dead-letter queues at the end of each minute", _depth(found["depth_apart"])),)
    if anchor == "latency":
        lines = _latency(found["latency"])
        hours = {hour for line in lines.values() for hour, _ in line}
        title = "Latency by hour of the slowest destinations, sent to received, 95 % of the messages"
        return ((title, line_plot(lines, unit="ms", spans=_HOUR)),) if len(hours) > 1 else ()
    if anchor == "nacks" and found["nacks"]:
        return (("Negative acknowledgments by class", bar_plot(_nacks(found["nacks"]))),)
    return ()


def _depth(lines: dict[str, list[tuple[datetime, int]]]) -> str:
    ends = {queue: [(minute + _MINUTE, count) for minute, count in line] for queue, line in lines.items()}
    return line_plot(ends, unit="messages", steps=True)


def _latency(
    rows: Sequence[dict[str, Any]], dest: str | None = None
) -> dict[str, list[tuple[datetime, float]]]:
    """Returns the points (hour, p95) of the slowest destinations, by their names; with `dest`, the points of
    p50, p95 and p99 of this destination. Of several senders, the slowest one counts.
    """
    lines: dict[str, dict[datetime, float]] = {}
    for row in rows:
        if row["leg"] != "total" or dest not in (None, row["dest"]):
            continue
        shown = ("p50_ms", "p95_ms", "p99_ms") if dest else ("p95_ms",)
        for name in shown:
            line = lines.setdefault(name.removesuffix("_ms") if dest else row["dest"] or "?", {})
            line[row["hour"]] = max(line.get(row["hour"], row[name]), row[name])
    slowest = sorted(lines.items(), key=lambda item: -max(item[1].values()))[:_LINES]
    return {name: sorted(line.items()) for name, line in slowest}


def _nacks(rows: Sequence[dict[str, Any]]) -> list[tuple[str, float]]:
    sums: dict[str, int] = {}
    for row in rows:
        name = row["class_name"] or "no class"
        sums[name] = sums.get(name, 0) + row["n"]
    return sorted(sums.items(), key=lambda bar: -bar[1])


def _each_queue(found: dict[str, Any]) -> str:
    """Returns a section for each of the queues and outgoing queues that matter most."""
    names = names_of(found)
    ways: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for row in found["reconciliation"]:
        ways.setdefault((row["receiver"], row["dest"]), []).append(row)
    queues = {(row["qm"], row["queue"]): row for row in found["queue_list"]}
    parts = []
    for depth in found["queue_depth"]:
        key = (depth["qm"], depth["queue"])
        parts.append(_one_queue(found, queues[key], names, ways.get(key, []), depth["points"]))
    note = f'<p class="note">the {len(parts)} queues with faults, then the deepest ones</p>'
    return f'<h2 id="each">{_EACH}</h2>{note}{"".join(parts)}' if parts else ""


def _one_queue(
    found: dict[str, Any],
    queue: dict[str, Any],
    names: dict[str, str],
    ways: Sequence[dict[str, Any]],
    depth: list[tuple[datetime, int]],
) -> str:
    head = f"{queue['queue']} at {names[queue['qm']]}"
    facts = [f"{queue['depth'] or 0} messages at the end of the day, {queue['depth_max'] or 0} at most"]
    facts += [f"{queue['arrived']} arrived, {queue['received']} received"]
    if queue["oldest"] is not None:
        end = datetime.combine(
            datetime.fromisoformat(found["day"]), datetime.min.time(), queue["oldest"].tzinfo
        )
        age = (end + timedelta(days=1) - queue["oldest"]).total_seconds() * 1000
        facts += [
            f"the oldest message came {milliseconds(age)} before the end of the day: {queue['oldest_id']}"
        ]
    rows = [
        (
            Verdict(row["verdict"]),
            names[row["sender"]],
            *(row[name] for name in ("sent", "received", "open", "undelivered", "lost")),
        )
        for row in ways
    ]
    columns = ("verdict", "from", "sent", "received", "open", "undelivered", "lost")
    body = (
        table(Section("", "", "; ".join(facts), columns, rows))
        if rows
        else f"<p class=note>{text('; '.join(facts))}</p>"
    )
    times = [
        (
            row["leg"].replace("_", " to "),
            row["n"],
            *(milliseconds(row[f"{name}_ms"]) for name in ("p50", "p95", "p99", "max")),
        )
        for row in found["latency_day"]
        if row["dest"] == queue["queue"] and ways
    ]
    if times:
        body += table(Section("", "", "", ("way", "messages", "p50", "p95", "p99", "longest"), times))
        lines = _latency(found["latency"], queue["queue"])
        if len({hour for line in lines.values() for hour, _ in line}) > 1:
            body += line_plot(lines, unit="ms", spans=_HOUR)
    body += _depth({queue["queue"]: depth}) if depth and queue["depth_max"] else ""
    return f"<h3>{text(head)}</h3>{body}"


def index(days: Sequence[dict[str, Any]], found: dict[str, Any]) -> str:
    """Returns the index page of all audited days. `days`: their `outcome`, in order. `found`: the report of
    the last day.
    """
    title = found.get("title") or "Message audit"
    newest = days[-1]
    rows = [
        (
            Verdict(day["verdict"]),
            Link(day["day"], f"{day['day']}.html"),
            *(day[name] for name in _INDEXED),
            "; ".join(undelivered(day)),
        )
        for day in reversed(days)
    ]
    counts = ", ".join(
        f"{sum(day['verdict'] == verdict for day in days)} {verdict}"
        for verdict in VERDICTS
        if any(day["verdict"] == verdict for day in days)
    )
    return document(
        title,
        f'<h1>{text(title)}</h1><p class="note">{text(made(found))}</p>'
        + banner(_day_colour(newest), f"{newest['day']}: {VERDICTS[newest['verdict']]}", explained(found))
        + "".join(banner("warn", f"{line}.") for line in undelivered(newest))
        + _trend(days)
        + table(
            Section("days", "All audited days", counts, ("verdict", "day", *_INDEXED, "not delivered"), rows)
        ),
    )


_INDEXED: Final = ("sent", "received", "open", "undelivered", "overdue", "lost")
