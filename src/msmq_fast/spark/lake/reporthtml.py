"""A report as one self-contained HTML page, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape
from typing import Any, Final

from msmq_fast.spark.lake.plots import bar_plot, line_plot
from msmq_fast.spark.lake.reporttext import VERDICTS, cell, explained, sections
from msmq_fast.spark.lake.summary import undelivered

_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
.verdict { padding: .8rem 1rem; border-left: .4rem solid; background: var(--soft); font-size: 1.1rem; }
.ok { border-color: #1b9e77; } .unproven, .undelivered { border-color: #dc9a1e; }
.lost { border-color: #c0392b; }
.tiles { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0; }
.tiles div { background: var(--soft); padding: .4rem .8rem; min-width: 5rem; } .tiles b { display: block;
font-size: 1.2rem; } table { border-collapse: collapse; width: 100%; font-size: 13px; } .wide { overflow-x:
auto; } td, th { text-align: left; padding: .25rem .4rem; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; vertical-align: top; } td.n, th { white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; }
.grid { stroke: var(--line); } .axis { font-size: 11px; fill: currentColor; } .legend span { margin-right:
1.2rem; font-size: 13px; display: inline-block; } .legend i { display: inline-block;
width: .8rem; height: .8rem; margin-right: .3rem; border-radius: 2px; }
.none, .note { opacity: .7; font-size: 13px; }
@media print { body { max-width: none; margin: 0; } .wide { overflow-x: visible; } table { font-size: 9px; }
td, th { padding: .15rem .25rem; } tr, svg, .verdict { break-inside: avoid; } }
"""


def page(found: dict[str, Any]) -> str:
    """Returns the HTML page for the report that `summary.gather` returned."""
    title = f"Message audit of {found['day']}"
    tiles = "".join(f"<div><b>{cell(n)}</b>{escape(name)}</div>" for name, n in found["totals"].items())
    plots = "".join(f"<h2>{escape(name)}</h2>{plot}" for name, plot in _plots(found))
    tables = "".join(_section(*section) for section in sections(found))
    missed = [*undelivered(found)]
    short = "".join(f'<p class="verdict undelivered"><b>{escape(line)}.</b></p>' for line in missed)
    # Green is for a day on which everything was delivered.
    colour = "undelivered" if found["verdict"] == "ok" and missed else found["verdict"]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f'<h1>{title}</h1><p class="note">{escape(found["lake"])}, times in UTC</p>'
        f'<p class="verdict {colour}"><b>{VERDICTS[found["verdict"]]}</b> '
        f"{escape(explained(found))}</p>{short}"
        f'<div class="tiles">{tiles}</div>{plots}{tables}</body></html>\n'
    )


def _plots(found: dict[str, Any]) -> Sequence[tuple[str, str]]:
    flow = found["throughput"]
    arrived = [(row[0], row[1] / 60) for row in flow]
    received = [(row[0], row[2] / 60) for row in flow]
    depth = {
        queue: [(minute + _MINUTE, count) for minute, count in line] for queue, line in found["depth"].items()
    }
    flows = {"arrived": arrived, "received": received} if flow else {}
    latency = _latency(found["latency"])
    return (
        (
            "Depth of the deepest queues at the end of each minute",
            line_plot(depth, unit="messages", steps=True),
        ),
        ("Throughput by minute", line_plot(flows, unit="messages/s", spans=_MINUTE)),
        ("Latency by hour, sent to received", line_plot(latency, unit="ms", spans=_HOUR)),
        ("Negative acknowledgments by class", bar_plot(_nacks(found["nacks"]))),
    )


def _latency(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[datetime, float]]]:
    """Returns, for each percentile, the points (hour, latency of the slowest destination), because a mean of
    all destinations would hide a slow one.
    """
    names = ("p50_ms", "p95_ms", "p99_ms")
    worst: dict[str, dict[datetime, float]] = {name.removesuffix("_ms"): {} for name in names}
    for row in rows:
        if row["leg"] == "total":
            for name in names:
                line = worst[name.removesuffix("_ms")]
                line[row["hour"]] = max(line.get(row["hour"], row[name]), row[name])
    return {name: sorted(line.items()) for name, line in worst.items() if line}


def _nacks(rows: Sequence[dict[str, Any]]) -> list[tuple[str, float]]:
    sums: dict[str, int] = {}
    for row in rows:
        name = row["class_name"] or "no class"
        sums[name] = sums.get(name, 0) + row["n"]
    return sorted(sums.items(), key=lambda bar: -bar[1])


def _section(title: str, note: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = f"<h2>{escape(title)}</h2>" + (f'<p class="note">{escape(note)}</p>' if note else "")
    if not rows:
        return head + '<p class="none">none</p>'
    heads = zip(columns, rows[0], strict=True)
    names = "".join(f"<th{_side(value)}>{escape(name)}</th>" for name, value in heads)
    lines = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f'{head}<div class="wide"><table><tr>{names}</tr>{lines}</table></div>'


def _cell(value: Any) -> str:
    return f"<td{_side(value)}>{escape(cell(value))}</td>"


def _side(value: Any) -> str:
    """Returns the HTML attribute that aligns a cell to the right if `value` is a number; otherwise ""."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return " class=n" if number else ""
