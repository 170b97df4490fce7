"""`msmq-fast top`: shows the queues and their message rates, refreshed periodically."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any

from msmq_fast.cli.reading import ENDLESS
from msmq_fast.cli.session import add_client, connected
from msmq_fast.cli.watching import add_interval, repeat
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.resources import QueueInfo
from msmq_fast.protocol.text import counted
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, coloured, short_size, show_table
from msmq_fast.terminal.parser import Parser, terminal_width
from msmq_fast.terminal.values import number

__all__ = ["COMMAND"]

_COLUMNS = ("name", "messages", "bytes", "in_rate", "out_rate")
_SORTS = ("rate", "messages", "bytes", "name")


def _add_arguments(parser: Parser) -> None:
    add_interval(parser)
    parser.add_argument(
        "--count", type=number(1, 1_000_000), default=ENDLESS, metavar="N", help="end after N samples"
    )
    parser.add_argument("--all", action="store_true", help="also system queues, journals and subqueues")
    parser.add_argument("--sort", choices=_SORTS, default="rate", help="sort order; default: rate")
    add_client(parser)


async def _top(connection: Connection, arguments: argparse.Namespace) -> int:
    before: dict[str, QueueInfo] = {}
    looked = time.monotonic()

    async def look(connection: Connection, arguments: argparse.Namespace) -> int:
        nonlocal before, looked
        stats = await connection.admin.stats()
        queues = await connection.admin.queues.all("all" if arguments.all else "user")
        now = time.monotonic()
        rows = [
            _row(queue, before.get(queue.name), now - looked) for queue in queues if queue.kind != "outgoing"
        ]
        before, looked = {queue.name: queue for queue in queues}, now
        rows.sort(key=_key(arguments.sort))
        if arguments.form is Form.TABLE:
            _head(stats)
            if sys.stdout.isatty():
                rows = _narrow(rows)
        show_table(rows, _COLUMNS, arguments.form)
        return Exit.OK

    return await repeat(look, connection, arguments, arguments.count)


def _row(queue: QueueInfo, before: QueueInfo | None, seconds: float) -> dict[str, Any]:
    """Return the row of a queue, with its message rates since `before`, the sample `seconds` ago; the rates
    of a new queue are 0.
    """
    arrived = left = 0.0
    if before is not None and seconds > 0:
        arrived = max(0, queue.arrived - before.arrived) / seconds
        left = max(0, queue.removed + queue.expired - before.removed - before.expired) / seconds
    return {
        "name": queue.name,
        "kind": queue.kind,
        "messages": queue.messages,
        "bytes": queue.bytes,
        "in_rate": round(arrived, 1),
        "out_rate": round(left, 1),
    }


def _narrow(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with the names of queues shortened so that the numbers fit on the terminal."""
    longest = max(20, terminal_width() - 45)
    return [
        {**row, "name": row["name"] if len(row["name"]) <= longest else f"{row['name'][: longest - 1]}…"}
        for row in rows
    ]


def _key(sort: str) -> Any:
    if sort == "name":
        return lambda row: row["name"].lower()
    if sort == "rate":
        return lambda row: (-row["in_rate"] - row["out_rate"], -row["messages"], row["name"].lower())
    return lambda row: (-row[sort], row["name"].lower())


def _head(stats: Mapping[str, Any]) -> None:
    state = coloured("ready", "green") if not stats["not_ready"] else coloured(str(stats["not_ready"]), "red")
    print(
        f"{coloured(str(stats['name']), 'bold')}  {time.strftime('%H:%M:%S')}  {state}  "
        f"{counted(stats['sessions'], 'queue manager')}, {counted(stats['app_connections'], 'program')}, "
        f"{short_size(stats['bytes'])} of messages, {short_size(stats['store_available_bytes'])} free"
    )


COMMAND = Command(
    name="top",
    help="show queues and their message rates, refreshed like top",
    description="""Shows the queues with the most traffic, and redraws the screen until Ctrl+C ends it.
        Into a pipe or a file it writes one table after another, or with --json one object for each queue
        and sample. The first sample has no rates.""",
    run=connected(_top),
    add_arguments=_add_arguments,
    examples=(
        Example("", "a screen that is redrawn every two seconds"),
        Example("--all --sort messages --interval 10s", "every queue, the fullest first"),
        Example("--count 2 --interval 1m --json", "rates over one minute, for a script"),
    ),
)
