"""The parts of which the pages of a report consist. Every text is escaped here: senders choose names
and labels.

A page needs no scripts and no other file; its content security policy forbids both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

from msmq_fast.spark.lake.reporttext import Explained, Link, MessageId, Section, Verdict, cell, visible

MEANINGS: Final = {
    "ok": "good",
    "passed": "good",
    "equal": "good",
    "undelivered": "warn",
    "unproven": "warn",
    "noted": "warn",
    "not compared": "warn",
    "lost": "bad",
    "failed": "bad",
    "differs": "bad",
}
"""The colour of each word that has a meaning: `good`, `warn` or `bad`."""

MARKS: Final = {"good": "✓", "warn": "!", "bad": "✗"}
"""A mark for each colour, for paper without colours, and for readers that do not see them."""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #1b8a5f; --warn: #b87400;
--bad: #c0392b; --info: #3366cc; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb98a; --warn: #d99a2b; --bad: #f0776a;
--info: #7da2f0; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: .3rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; overflow-wrap: anywhere; }
a { color: inherit; } nav a { margin-right: 1rem; } td a[href$=".html"] { white-space: nowrap; }
.contents { font-size: 13px; margin: 1rem 0; } .only { font-size: 13px; display: block; margin: .3rem 0; }
.only:has(:checked) + table tr.fine { display: none; }
summary { cursor: pointer; } details { max-width: 48rem; } details p { margin: .2rem 0; opacity: .75; }
.verdict { padding: .7rem 1rem; border-left: .4rem solid; background: var(--soft); margin: .5rem 0; }
.verdict b { font-size: 1.1rem; }
.good { border-color: var(--good); } .warn { border-color: var(--warn); } .bad { border-color: var(--bad); }
.info { border-color: var(--info); } .none, .note { opacity: .75; font-size: 13px; }
.mark { font-weight: 600; white-space: nowrap; } .mark.good { color: var(--good); }
.mark.warn { color: var(--warn); } .mark.bad { color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.4rem, 1fr)); gap: .5rem;
margin: 1rem 0; }
.tiles a { background: var(--soft); padding: .4rem .6rem; border: 0 solid;
border-top-width: .2rem; text-decoration: none; }
.tiles .good { border-color: var(--good); } .tiles .info { border-color: var(--info); }
.tiles .warn { border-color: var(--warn); color: var(--warn); } .tiles .bad { border-color: var(--bad);
color: var(--bad); } .tiles b { display: block; font-size: 1.15rem; }
.tiles small { display: block; opacity: .75; font-size: 11px; }
.tiles .zero { opacity: .55; border-color: var(--line); }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
td, th { text-align: left; padding: .25rem .4rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 3.5em; } th { overflow-wrap: normal; vertical-align: bottom; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n { overflow-wrap: normal; } td.t { overflow-wrap: normal; min-width: 6em; }
svg { width: 100%; height: auto; } .grid { stroke: var(--line); }
.axis { font-size: 11px; fill: currentColor; } .legend span { margin-right: 1.2rem; font-size: 13px;
display: inline-block; overflow-wrap: anywhere; } .legend i { display: inline-block; width: .8rem;
height: .8rem; margin-right: .3rem; border-radius: 2px; }
.bar.good { fill: var(--good); } .bar.warn { fill: var(--warn); } .bar.bad { fill: var(--bad); }
.bar.info { fill: var(--info); }
@media screen and (max-width: 45rem) { body { padding: 0 .5rem; } table { font-size: 12px; }
table.many thead { display: none; } table.many tr { display: block; border-bottom: 1px solid var(--line);
padding: .3rem 0; } table.many td { display: inline-block; border: 0; min-width: 0;
padding: .05rem .8rem .05rem 0; }
table.many td::before { content: attr(data-name) ": "; opacity: .7; } table.many td:empty { display: none; } }
@page { margin: 12mm; }
@media print { body { max-width: none; margin: 0; padding: 0; font-size: 12px; } table { font-size: 9px; }
td, th { padding: .15rem .2rem; } td { min-width: 2.5em; }
tr, svg, .verdict, .tiles a { break-inside: avoid; } h2, h3, .note { break-after: avoid; }
.note { font-size: 11px; }
nav, .only { display: none; } * { print-color-adjust: exact; } }
"""


def text(value: Any) -> str:
    """Returns a value as text that has no markup."""
    return escape(visible(cell(value)))


def document(title: str, body: str) -> str:
    """Returns a whole page; `body` is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{text(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"{body}</body></html>\n"
    )


def mark(word: str) -> str:
    """Returns a word such as a verdict in the colour of its meaning, after the mark of this meaning."""
    meaning = MEANINGS.get(word, "warn")
    return f'<span class="mark {meaning}">{MARKS[meaning]} {text(word)}</span>'


def banner(meaning: str, head: str, sentence: str = "") -> str:
    """Returns a headline in a colour, with a sentence behind it."""
    more = f" {text(sentence)}" if sentence else ""
    return f'<p class="verdict {meaning}"><b>{text(head)}</b>{more}</p>'


def tile(label: str, number: int, meaning: str, anchor: str, note: str = "") -> str:
    """Returns a figure that links to the section with its details, with a small note below it. The figure has
    no colour if it is 0.
    """
    small = f"<small>{text(note)}</small>" if note else ""
    start = f'<a class="{meaning if number else "zero"}" href="#{anchor}">'
    return f"{start}<b>{text(number)}</b>{text(label)}{small}</a>"


def contents(named: Iterable[tuple[str, str]]) -> str:
    """Returns the links to the sections of a page, pairs of an anchor and a title."""
    links = "".join(f'<a href="#{anchor}">{text(title)}</a> ' for anchor, title in named)
    return f'<nav class="contents">{links}</nav>'


def table(section: Section, console: str | None = None, *, level: int = 2) -> str:
    """Returns a section as HTML. `console`: the address of the web console, to which identifiers of messages
    are linked.
    """
    head = f'<h{level} id="{section.anchor}">{text(section.title)}</h{level}>' if section.title else ""
    head += f'<p class="note">{text(section.note)}</p>' if section.note else ""
    if not section.rows:
        return head + '<p class="none">none</p>'
    sides = [
        _side(next((row[at] for row in section.rows if row[at] not in (None, "")), ""))
        for at in range(len(section.columns))
    ]
    names = "".join(f"<th{side}>{text(name)}</th>" for side, name in zip(sides, section.columns, strict=True))
    many = len(section.columns) > _MANY
    labels = [f' data-name="{text(name)}"' if many else "" for name in section.columns]
    lines = "".join(
        ('<tr class="fine">' if _fine(row) else "<tr>")
        + "".join(
            f"<td{label}{_side(value)}>{_content(value, console)}</td>"
            for label, value in zip(labels, row, strict=True)
        )
        + "</tr>"
        for row in section.rows
    )
    start = '<table class="many">' if many else "<table>"
    if len({_fine(row) for row in section.rows}) > 1:
        head += '<label class="only"><input type="checkbox"> only what needs attention</label>'
    return f"{head}{start}<thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


_MANY: Final = 5
"""The number of columns that fit a narrow screen. The rows of wider tables are shown there as paragraphs."""


def _fine(row: Sequence[Any]) -> bool:
    """Returns whether a row has a verdict that needs no attention."""
    return any(isinstance(value, Verdict) and MEANINGS.get(value) == "good" for value in row)


def _content(value: Any, console: str | None) -> str:
    if isinstance(value, Link):
        target = value.anchor if value.anchor.endswith(".html") else f"#{value.anchor}"
        return f'<a href="{text(target)}">{text(value.value)}</a>'
    if isinstance(value, Verdict):
        return mark(value)
    if isinstance(value, Explained):
        return f"<details><summary>{text(value.value)}</summary><p>{text(value.how)}</p></details>"
    if isinstance(value, MessageId) and console is not None:
        return f'<a href="{escape(trace_address(console, value))}">{text(value)}</a>'
    return text(value)


def trace_address(console: str, message_id: str) -> str:
    """Returns the address of the page of the console that traces a message."""
    return f"{console.rstrip('/')}/trace?{urlencode({'id': message_id})}"


def _side(value: Any) -> str:
    """Returns the HTML attribute that aligns a cell by the kind of its value; "" for texts."""
    if isinstance(value, Link):
        return _side(value.value)
    if isinstance(value, datetime):
        return " class=t"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return " class=n" if number else ""
