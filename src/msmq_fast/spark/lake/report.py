"""`msmq-lake report`: writes an audited day as an HTML page, Markdown or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.arguments import day_argument
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.reporthtml import page
from msmq_fast.spark.lake.reporttext import markdown
from msmq_fast.spark.lake.summary import audited, gather
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.parser import Parser


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--lake", required=True, metavar="DIR", help="directory of the lake")
    parser.add_argument(
        "--day", type=day_argument, metavar="YYYY-MM-DD", help="audited day; default: the last one"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write an HTML page with plots to this file; default: msmq-DAY.html"
    )
    parser.add_argument("--markdown", metavar="FILE", help="write the report as Markdown to this file")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _run(arguments: argparse.Namespace) -> int:
    """Writes the report. Returns exit code 0 whatever verdict the report has."""
    lake = Lake.open(arguments.lake)
    days = audited(lake)
    if not days:
        raise CommandError(
            Exit.EMPTY, f"no day was audited yet: run `msmq-lake audit --lake {arguments.lake}`"
        )
    found = gather(lake, arguments.day or days[-1])
    if arguments.json:
        sys.stdout.write(as_json(found))
    html = arguments.html
    if html is None and not arguments.markdown and not arguments.json:
        html = f"msmq-{found['day']}.html"
    for name, form in ((html, page), (arguments.markdown, markdown)):
        if name:
            _write(Path(name), form(found))
            print(f"{name}: {found['verdict']}", file=sys.stderr if arguments.json else sys.stdout)
    return Exit.OK


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{path}: {error.strerror}") from error


def as_json(found: dict[str, Any]) -> str:
    """Returns the report that `summary.gather` returned as one JSON object."""
    return json.dumps(found, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    raise TypeError(type(value).__name__)


COMMAND = Command(
    name="report",
    help="write the report of an audited day as HTML, Markdown or JSON",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(
        Example("--lake lake", "a page msmq-DAY.html about the last audited day"),
        Example("--lake lake --day 2026-11-24 --json", "one day as JSON on stdout"),
    ),
)
