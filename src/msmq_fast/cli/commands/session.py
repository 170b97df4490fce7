"""`msmq-fast session`: lists and closes the connections of the server, and lists its remote readers."""

from __future__ import annotations

import argparse
from typing import Any, Final

from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.resources import SESSION_KINDS
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import show, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import number

__all__ = ["COMMAND"]

_COLUMNS: Final = (
    "number", "kind", "direction", "address", "manager", "user", "state", "queues", "transactions", "since",
)  # fmt: skip
_READER_COLUMNS: Final = (
    "queue", "access", "caller", "address", "authentication", "level", "waiting", "unacknowledged", "cursors",
)  # fmt: skip
_PAGE: Final = 1000  # the most that the server sends at a time


def _add_list(parser: Parser) -> None:
    parser.add_argument("--kind", choices=SESSION_KINDS, default="", help="only sessions of this kind")
    parser.add_argument(
        "--limit", type=number(1, 2**32 - 1), metavar="N", help="print at most N sessions; default: all"
    )
    parser.add_argument(
        "--after",
        type=number(0, 2**63 - 1),
        default=0,
        metavar="NUMBER",
        help="only sessions with higher numbers than this",
    )
    add_client(parser)


def _add_close(parser: Parser) -> None:
    parser.add_argument(
        "number",
        type=number(1, 2**63 - 1),
        metavar="ID",
        help="number of the session, as `session list` shows it",
    )
    add_client(parser)


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    after, left = arguments.after, arguments.limit
    while True:
        limit = _PAGE if left is None else min(_PAGE, left - len(rows))
        page = await connection.admin.sessions.page(arguments.kind, after=after, limit=limit)
        rows += [session.as_map() for session in page.sessions]
        after = page.next
        if not after or len(rows) == left:
            break
    show_table(rows, _COLUMNS, arguments.form)
    return Exit.OK


async def _close(connection: Connection, arguments: argparse.Namespace) -> int:
    closed = await connection.admin.sessions.close(arguments.number)
    show(
        {"closed": closed.number, "kind": closed.kind, "address": closed.address, "user": closed.user},
        arguments.form,
    )
    return Exit.OK


async def _readers(connection: Connection, arguments: argparse.Namespace) -> int:
    rows = [reader.as_map() for reader in await connection.admin.sessions.readers()]
    show_table(rows, _READER_COLUMNS, arguments.form)
    return Exit.OK


COMMAND = Group(
    name="session",
    help="list and close the connections of the server",
    description="""Lists and closes the connections of the server: sessions with other queue managers,
        programs, RPC, HTTP and admin connections, in both directions. Administrators and readers may list
        them, administrators may close them.""",
    commands=members(
        Command(
            name="list",
            help="list open connections",
            run=connected(_list),
            add_arguments=_add_list,
            examples=(
                Example("", "every connection, the oldest first"),
                Example("--kind program --json", "the programs: user, open queues, open transactions"),
            ),
        ),
        Command(
            name="close",
            help="close a connection at once",
            description="""Closes a connection at once. No accepted message is lost: a peer sends again what
                was not acknowledged, and messages that a program did not acknowledge return to their queues.
                Open transactions of the program are aborted. The other end may connect again.""",
            run=connected(_close),
            add_arguments=_add_close,
            examples=(Example("17", "closes the connection that `session list` shows as 17"),),
        ),
        Command(
            name="readers",
            help="list the queues that programs on other computers have open",
            description="""Lists the queues of this server that programs on other computers have open over
                RPC: the caller, its authentication, the reads that wait, and the messages that the caller has
                received and not acknowledged. Administrators and readers may list them.""",
            run=connected(_readers),
            add_arguments=add_client,
            examples=(Example("--json", "one JSON object for each open queue"),),
        ),
    ),
)
