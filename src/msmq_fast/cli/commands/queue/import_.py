"""`msmq-fast queue import`: creates the queues of a Windows host from the output of `Get-MsmqQueue`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from msmq_fast.cli.inputs import read_input
from msmq_fast.cli.session import add_client, converse
from msmq_fast.cli.windows import Definition, read_definitions
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.text import counted
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_MAX_FILE = 64 << 20  # bytes
_COLUMNS = ("row", "outcome", "name", "detail")


@dataclass(frozen=True, slots=True)
class _Line:
    """The result for one row of the file."""

    row: int
    name: str
    outcome: str
    detail: str = ""


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="CSV or JSON file; - for stdin")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be changed")
    add_client(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Create the queues that a file defines, and change existing queues to match the file. If the file has
    mistakes, nothing is changed.
    """
    definitions = read_definitions(read_input(arguments.file, _MAX_FILE))
    for line in definitions.mistakes:
        print(f"{arguments.file}: {line}", file=sys.stderr)
    if definitions.mistakes:
        count = len(definitions.mistakes)
        raise CommandError(
            Exit.USAGE, f"{counted(count, 'mistake')} in {arguments.file}: nothing was changed"
        )

    async def run(connection: Connection, arguments: argparse.Namespace) -> int:
        existing = {_local(queue.name): queue.as_map() for queue in await connection.admin.queues.all()}
        lines = [_Line(row, name, "skipped", why) for row, name, why in definitions.skipped]
        for definition in definitions.found:
            queue = existing.get(definition.path[2:].casefold())
            lines.append(await _bring(connection, definition, queue, dry_run=arguments.dry_run))
        lines.sort(key=lambda line: line.row)
        rows = [{name: getattr(line, name) for name in _COLUMNS} for line in lines]
        show_table(rows, _COLUMNS, arguments.form)
        return Exit.REFUSED if any(line.outcome == "failed" for line in lines) else Exit.OK

    return converse(run, arguments)


def _local(path: str) -> str:
    return path.partition("\\")[2].casefold()


async def _bring(
    connection: Connection, definition: Definition, queue: dict[str, Any] | None, *, dry_run: bool
) -> _Line:
    """Create or change one queue and return the result. An error of the queue manager is part of the result;
    it is not raised.
    """
    name = definition.path[2:]
    try:
        if queue is None:
            if not dry_run:
                await connection.admin.queues.create(definition.path, **definition.properties)
            return _Line(definition.row, name, "created")
        changes = {key: value for key, value in definition.properties.items() if queue.get(key) != value}
        if not changes:
            return _Line(definition.row, name, "unchanged")
        if "transactional" in changes:
            column = definition.columns["transactional"]
            kind = "transactional" if queue["transactional"] else "not transactional"
            detail = f"column {column}: the queue is {kind}, which cannot be changed"
            return _Line(definition.row, name, "failed", detail)
        if not dry_run:
            await connection.admin.queues.set(str(queue["name"]), **changes)
        columns = ", ".join(definition.columns[key] for key in changes)
        return _Line(definition.row, name, "changed", columns)
    except MSMQError as error:
        return _Line(definition.row, name, "failed", str(error))


COMMAND = Command(
    name="import",
    help="create the queues that Get-MsmqQueue exported on a Windows host",
    description="""Reads the queues that the PowerShell cmdlet Get-MsmqQueue wrote with Export-Csv or
        ConvertTo-Json. Queues that exist get the properties in the file. A file with a mistake changes
        nothing.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("queues.csv --dry-run", "what the command would do, queue by queue"),
        Example("queues.csv", "create and change the queues"),
    ),
)
