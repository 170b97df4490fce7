"""`msmq-fast queue find`: finds public queues in the directory."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from typing import Any
from uuid import UUID

from msmq_fast.cli.directoryentries import all_entries
from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_COLUMNS = ("name", "label", "transactional", "format_name")
_AFTER_BACKSLASH = "]"  # the character that follows it: the end of the range of names of one computer


def _guid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a GUID like 00112233-4455-6677-8899-aabbccddeeff"
        ) from None


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "glob",
        metavar="GLOB",
        nargs="?",
        help="only queues whose name, without the computer, matches a pattern with * ? and []",
    )
    parser.add_argument("--label", metavar="TEXT", help="only queues with this label")
    parser.add_argument("--type", type=_guid, metavar="GUID", help="only queues of this type")
    parser.add_argument("--computer", metavar="NAME", help="only queues of this computer")
    parser.add_argument("--transactional", action="store_true", help="only transactional queues")
    add_client(parser)


def _conditions(arguments: argparse.Namespace) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    if arguments.label is not None:
        found.append(("Label", "=", arguments.label))
    if arguments.type is not None:
        found.append(("Type", "=", arguments.type))
    if arguments.transactional:
        found.append(("Transactional", "=", True))
    if arguments.computer is not None:
        found += [
            ("Pathname", ">=", f"{arguments.computer}\\"),
            ("Pathname", "<", f"{arguments.computer}{_AFTER_BACKSLASH}"),
        ]
    return found


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": entry["Pathname"],
        "label": entry.get("Label", ""),
        "type": entry.get("Type"),
        "transactional": bool(entry.get("Transactional", False)),
        "authenticated": bool(entry.get("Authentication", False)),
        "computer": entry["Pathname"].partition("\\")[0],
        "guid": entry["Identifier"],
        "format_name": f"PUBLIC={entry['Identifier']}",
    }


async def _find(connection: Connection, arguments: argparse.Namespace) -> int:
    pattern = (arguments.glob or "*").casefold()
    rows = [
        _row(entry)
        for entry in await all_entries(connection, "Queue", _conditions(arguments))
        if fnmatchcase(entry["Pathname"].partition("\\")[2].casefold(), pattern)
    ]
    rows.sort(key=lambda row: row["name"].casefold())
    if arguments.form is Form.JSON:
        for row in rows:
            show(row, arguments.form)
    else:
        show_table(rows, _COLUMNS, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="find",
    help="find public queues of all computers",
    description="""Finds public queues in the directory: that of the domain, or the embedded one. Text is
        compared without regard to case. For the queues of this computer, with their messages, see
        `queue list`.""",
    run=lambda arguments: converse(_find, arguments),
    add_arguments=_add_arguments,
    examples=(
        Example("--label 'Order entry'", "where programs find it by its label"),
        Example("'orders*' --computer ALPHA", "by its name and computer"),
    ),
)
