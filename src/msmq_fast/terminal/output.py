"""Prints the results of commands: tables for people, JSON lines for programs, bare values for shells.

| form | one object | several objects |
|---|---|---|
| table | one `key: value` a line | a table with a head |
| json | one JSON object on one line | one JSON object a line |
| raw | one `key TAB value` a line | the values of a row with tabs between them; no head |

The forms `table` and `raw` escape control characters, so that a name or a label that another host chose
cannot move the cursor or add a column.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, TextIO

from msmq_fast.protocol.text import printable
from msmq_fast.terminal.parser import terminal_width

__all__ = ["Form", "add_output", "coloured", "short_size", "show", "show_table"]

_TIMES = frozenset(  # values in Unix seconds, 0 for none: people see the time of day, programs the number
    (
        "arrived_time",
        "began",
        "created",
        "event_time",
        "last_ack_time",
        "last_error_time",
        "modified",
        "next_attempt",
        "oldest",
        "resend_time",
        "sent_time",
        "since",
        "time",
    )
)
_NARROWEST = 20  # columns of a folded cell
_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


class Form(StrEnum):
    """The form in which a command prints its results."""

    TABLE = "table"
    JSON = "json"
    RAW = "raw"


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `-o` and `--json` to a parser; the argument `form` holds the chosen Form."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        dest="form",
        type=Form,
        choices=list(Form),
        default=Form.TABLE,
        metavar="table|json|raw",
        help="table for people (default), JSON with one object a line, or bare values with tabs",
    )
    group.add_argument("--json", dest="form", action="store_const", const=Form.JSON, help="short for -o json")


def show(content: Mapping[str, Any], form: Form) -> None:
    """Print one object, given as a mapping of keys to values."""
    if form is Form.JSON:
        sys.stdout.write(json.dumps(content, default=str) + "\n")
        return
    width = max((len(key) for key in content), default=0)
    for key, value in content.items():
        head = f"{key}\t" if form is Form.RAW else f"{key + ':':{width + 1}} "
        sys.stdout.write(f"{head}{_cell(key, value)}".rstrip() + "\n")


def show_table(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], form: Form, *, fold: bool = False
) -> None:
    """Print several objects. JSON contains all keys of each object; the other forms contain the keys
    `columns` only. JSON and raw lines are printed one by one as `rows` yields the objects.

    With `fold`, the last column of a table is wrapped to the width of the terminal.
    """
    if form is Form.JSON:
        for row in rows:
            sys.stdout.write(json.dumps(row, default=str) + "\n")
        return
    lines = ([_cell(column, row.get(column, "")) for column in columns] for row in rows)
    if form is Form.RAW:
        sys.stdout.writelines("\t".join(line) + "\n" for line in lines)
        return
    cells = [[column.upper() for column in columns], *lines]
    if fold:
        cells = list(_folded(cells))
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for number, line in enumerate(cells):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        sys.stdout.write(f"{coloured(text, 'bold') if number == 0 else text}\n")


def _folded(cells: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the rows of a table with the last cell wrapped to the width of the terminal. Each further line of
    that cell becomes a row in which the other cells are empty.
    """
    import textwrap  # few commands need it

    taken = sum(max(map(len, column)) + 2 for column in list(zip(*cells, strict=True))[:-1])
    width = max(_NARROWEST, terminal_width() - taken)
    for *before, last in cells:
        first, *others = textwrap.wrap(last, width, break_long_words=False, break_on_hyphens=False) or [""]
        yield [*before, first]
        yield from ([*("" for _ in before), each] for each in others)


def short_size(size: int) -> str:
    """Return a size in bytes with at most four digits and a binary unit, rounded: `1.4 GiB`."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Return `text` in a colour ("bold", "dim", "red", "green", "yellow").

    The text is unchanged if `stream` (default: standard output) is not a terminal with colours, or NO_COLOR
    is set.
    """
    stream = sys.stdout if stream is None else stream
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def _cell(key: str, value: object) -> str:
    """Return a value as text for a terminal."""
    if key in _TIMES and isinstance(value, int):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(value)) if value else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return printable(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))
