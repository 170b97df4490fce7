"""`msmq-lake report`: writes an audited day as an HTML page, Markdown or JSON."""

from __future__ import annotations

import argparse
import json
import socket
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.arguments import day_argument
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.reporthtml import index, page
from msmq_fast.spark.lake.reporttext import markdown
from msmq_fast.spark.lake.summary import audited, gather, trend
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

_TREND: Final = 30
"""The number of days that the trend on a page has."""


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--lake", required=True, metavar="DIR", help="directory of the lake")
    parser.add_argument(
        "--day", type=day_argument, metavar="YYYY-MM-DD", help="audited day; default: the last one"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write an HTML page with plots to this file; default: msmq-DAY.html"
    )
    parser.add_argument("--markdown", metavar="FILE", help="write the report as Markdown to this file")
    parser.add_argument(
        "--all",
        metavar="DIR",
        help="write an HTML page and a JSON file for every audited day, and an index page, to this directory",
    )
    parser.add_argument(
        "--title", default="", metavar="TEXT", help="title of the report; default: Message audit"
    )
    parser.add_argument(
        "--console",
        type=_console,
        metavar="URL",
        help="address of the web console, such as https://orders01:1803/ui, to which messages are linked",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _console(address: str) -> str:
    """Returns the address of a web console unchanged if a page may link to it."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{address!r} is not an address such as https://orders01:1803/ui")
    return address


def _run(arguments: argparse.Namespace) -> int:
    """Writes the report. Returns exit code 0 whatever verdict the report has."""
    lake = Lake.open(arguments.lake)
    days = audited(lake)
    if not days:
        raise CommandError(
            Exit.EMPTY, f"no day was audited yet: run `msmq-lake audit --lake {arguments.lake}`"
        )
    if arguments.all:
        for name in ("day", "html", "markdown", "json"):
            if getattr(arguments, name):
                raise CommandError(Exit.USAGE, f"--all cannot be combined with --{name}")
        _write_all(lake, days, arguments)
        return Exit.OK
    found = _report(lake, arguments.day or days[-1], arguments)
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


def _report(lake: Lake, day: date, arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the report of a day with what its forms say about the report itself."""
    return gather(lake, day) | {
        "title": arguments.title,
        "console": arguments.console,
        "made_at": datetime.now(UTC),
        "host": socket.gethostname(),
        "trend": trend(lake, day, _TREND),
    }


def _write_all(lake: Lake, days: list[date], arguments: argparse.Namespace) -> None:
    """Writes a page for each day, which links to the days before and after, the same as JSON, and the index
    page.
    """
    directory = Path(arguments.all)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{directory}: {error.strerror}") from error
    found: dict[str, Any] = {}
    with Progress("report", len(days)) as progress:
        for before, day, after in zip([None, *days], days, [*days[1:], None], strict=False):
            around = [("all days", "index.html")]
            around += [(str(other), f"{other}.html") for other in (before, after) if other]
            around.append(("this day as JSON", f"{day}.json"))
            found = _report(lake, day, arguments)
            _write(directory / f"{day}.json", as_json(found))
            found |= {"links": around}
            _write(directory / f"{day}.html", page(found))
            progress.add(1)
    _write(directory / "index.html", index(trend(lake, days[-1], len(days)), found))
    print(f"{directory / 'index.html'}: {len(days)} days")


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
        Example("--lake lake --all /srv/www/audit", "a page for each audited day, and an index page"),
    ),
)
