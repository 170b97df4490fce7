"""`msmq-fast queue create`: creates a queue."""

from __future__ import annotations

import argparse

from msmq_fast.cli.commands.queue.properties import add_properties, given_properties
from msmq_fast.cli.queueinfo import brief
from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.text import printable
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help=r"path of the queue; orders is short for .\private$\orders"
    )
    parser.add_argument(
        "--transactional",
        action="store_true",
        default=None,
        help="accept only transactional messages",
    )
    add_properties(parser)
    add_client(parser)


async def _create(connection: Connection, arguments: argparse.Namespace) -> int:
    queue = (await connection.admin.queues.create(arguments.name, **given_properties(arguments))).as_map()
    if arguments.form is Form.TABLE:
        print(f"created {printable(brief(queue))}")
    else:
        show(queue, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="create",
    help="create a queue",
    run=connected(_create),
    add_arguments=_add_arguments,
    examples=(
        Example("orders", r"a private queue, .\private$\orders"),
        Example("payments --transactional --journal --quota 1GiB", "with properties"),
        Example(r"'.\prices'", "a public queue, which the directory lists"),
    ),
)
