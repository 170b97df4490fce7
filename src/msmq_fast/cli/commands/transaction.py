"""`msmq-fast transaction`: lists, commits and aborts transactions that are open, prepared or in doubt."""

from __future__ import annotations

import argparse

from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import show, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_COLUMNS = ("identifier", "state", "user", "began", "sent", "received", "moved")


def _add_end(parser: Parser) -> None:
    parser.add_argument(
        "identifier", metavar="GUID", help="identifier of the transaction, as `transaction list` shows it"
    )
    add_client(parser)


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    show_table([one.as_map() for one in await connection.admin.transactions.all()], _COLUMNS, arguments.form)
    return Exit.OK


async def _commit(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.transactions.commit(arguments.identifier)
    show({"identifier": arguments.identifier, "state": "committed"}, arguments.form)
    return Exit.OK


async def _abort(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.transactions.abort(arguments.identifier)
    show({"identifier": arguments.identifier, "state": "aborted"}, arguments.form)
    return Exit.OK


_GUID = "9e3c1d0a-1f6e-4c39-9b5e-0a2f8a1c7d11"

COMMAND = Group(
    name="transaction",
    help="list and end transactions that are open or prepared",
    commands=members(
        Command(
            name="list",
            help="list transactions that are open or prepared",
            run=connected(_list),
            add_arguments=add_client,
            examples=(Example("", "every transaction that has not ended"),),
        ),
        Command(
            name="commit",
            help="commit a prepared transaction",
            description="""Commits a prepared transaction whose coordinator is lost. Ask the coordinator's
                log first: if it aborted the transaction, the queues and the other participants will
                disagree.""",
            run=connected(_commit),
            add_arguments=_add_end,
            examples=(Example(_GUID, "sent messages become visible, received ones are removed"),),
        ),
        Command(
            name="abort",
            help="abort an open or prepared transaction",
            run=connected(_abort),
            add_arguments=_add_end,
            examples=(Example(_GUID, "returns the messages that it received to their queues"),),
        ),
    ),
)
