"""`msmq-fast queue purge`: deletes the messages of a queue."""

from __future__ import annotations

import argparse
from contextlib import suppress

from msmq_fast.cli.confirm import add_yes, asks, confirm
from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.errors import MSMQError, QueueNotFound
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access
from msmq_fast.protocol.text import printable
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=queue_name, help="path or format name of the queue")
    add_yes(parser)
    add_client(parser)


async def _purge(connection: Connection, arguments: argparse.Namespace) -> int:
    if asks(arguments):
        with suppress(QueueNotFound):  # a queue of another computer, which does not tell how many it holds
            held = (await connection.admin.queues.get(arguments.name)).messages
            confirm(f"purge {arguments.name}", held)
    try:
        queue = await connection.open(arguments.name, Access.RECEIVE)
    except MSMQError as error:
        with suppress(MSMQError):
            outgoing = (await connection.admin.outgoing.get(arguments.name)).name
            raise CommandError(
                Exit.REFUSED,
                f"{error}; to purge the messages that wait for that queue here: "
                f"msmq-fast outgoing purge '{printable(outgoing)}'",
            ) from None
        raise
    show({"purged": await queue.purge(), "name": arguments.name}, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="purge",
    help="delete the messages of a queue",
    description="""Deletes all messages of the queue; on a terminal it asks first. Senders that asked for
        it get a negative acknowledgment.""",
    run=connected(_purge),
    add_arguments=_add_arguments,
    examples=(
        Example("orders", "the number of deleted messages"),
        Example("'orders;journal'", "the journal of a queue"),
    ),
)
