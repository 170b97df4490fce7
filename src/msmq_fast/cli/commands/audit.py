"""`msmq-fast audit`: lists and exports administrative acts, denials and log-ons."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, TextIO

from msmq_fast.cli.session import add_client, connected, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.resources import AuditEntry
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import show, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import first_second, last_second

__all__ = ["COMMAND"]

_COLUMNS: Final = ("time", "kind", "caller", "address", "operation", "object", "result", "detail", "more")
_KINDS: Final = ("act", "denial", "login")


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= len(text) <= 9 or int(text) == 0:
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: give a number from 1")
    return int(text)


def _add_filters(parser: Parser) -> None:
    group = parser.add_argument_group("filters")
    group.add_argument("--kind", choices=_KINDS, default="", help="only entries of this kind")
    group.add_argument(
        "--caller", default="", metavar="TEXT", help="only callers with this text, or this SID"
    )
    group.add_argument("--operation", default="", metavar="TEXT", help="only operations with this text")
    group.add_argument("--object", default="", metavar="TEXT", help="only objects with this text")
    group.add_argument(
        "--since", type=first_second, default=0, metavar="TIME", help="only entries from this time on (UTC)"
    )
    group.add_argument(
        "--until", type=last_second, default=0, metavar="TIME", help="only entries up to this time (UTC)"
    )


def _add_list(parser: Parser) -> None:
    _add_filters(parser)
    parser.add_argument(
        "--limit", type=_count, default=100, metavar="N", help="print at most N entries; default: 100"
    )
    parser.add_argument("--oldest-first", action="store_true", help="begin with the oldest entry")
    add_client(parser)


def _add_export(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="file to write, one JSON object a line; - for stdout")
    _add_filters(parser)
    add_client(parser)


async def _entries(
    connection: Connection, arguments: argparse.Namespace, *, newest_first: bool
) -> AsyncIterator[AuditEntry]:
    start, finished = 0, False
    while not finished:
        page = await connection.admin.audit.page(
            start,
            newest_first=newest_first,
            kind=arguments.kind,
            caller=arguments.caller,
            operation=arguments.operation,
            object=arguments.object,
            since=arguments.since,
            until=arguments.until,
        )
        for entry in page.entries:
            yield entry
        start, finished = page.next, page.finished


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    async for entry in _entries(connection, arguments, newest_first=not arguments.oldest_first):
        rows.append(entry.as_map())
        if len(rows) == arguments.limit:
            break
    show_table(rows, _COLUMNS, arguments.form)
    return Exit.OK


def _export(arguments: argparse.Namespace) -> int:
    if arguments.file == "-":
        return converse(lambda connection, _: _write(connection, arguments, sys.stdout), arguments)
    path = Path(arguments.file)
    try:
        # Entries name callers and addresses: not for every user of the machine.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            return converse(lambda connection, _: _write(connection, arguments, file), arguments)
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"cannot write {path}: {error.strerror}") from None


async def _write(connection: Connection, arguments: argparse.Namespace, file: TextIO) -> int:
    count = 0
    async for entry in _entries(connection, arguments, newest_first=False):
        file.write(json.dumps(entry.as_map()) + "\n")
        count += 1
    if file is not sys.stdout:
        show({"file": arguments.file, "entries": count}, arguments.form)
    return Exit.OK


COMMAND = Group(
    name="audit",
    help="list and export administrative acts, denials and log-ons",
    description="""Lists and exports the audit: administrative acts, denials and log-ons, with caller,
        address, object and result. Administrators and readers may read it.""",
    commands=members(
        Command(
            name="list",
            help="list entries of the audit, the newest first",
            run=connected(_list),
            add_arguments=_add_list,
            examples=(
                Example("--kind denial --limit 20", "the last 20 denials"),
                Example("--object orders --since 2026-01-31", "what was done to a queue since then"),
            ),
        ),
        Command(
            name="export",
            help="write entries of the audit as JSON lines, the oldest first",
            run=_export,
            add_arguments=_add_export,
            examples=(
                Example("audit.jsonl", "everything that the ring holds"),
                Example("- --kind act", "all acts, to stdout"),
            ),
        ),
    ),
)
