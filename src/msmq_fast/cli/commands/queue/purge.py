"""`msmq-fast queue purge`: deletes the messages of a queue."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress

from msmq_fast.cli.confirm import add_yes, asks, confirm
from msmq_fast.cli.removal import remove_selected, selects
from msmq_fast.cli.session import add_client, connected
from msmq_fast.cli.transfer import add_dry_run, add_filter, message_filter
from msmq_fast.client.connection import Connection
from msmq_fast.client.exchange import Done
from msmq_fast.client.queue import Queue
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
    add_filter(parser)
    add_dry_run(parser, "tell what would be deleted, and delete nothing")
    add_yes(parser)
    add_client(parser)


async def _purge(connection: Connection, arguments: argparse.Namespace) -> int:
    if asks(arguments) and not selects(arguments):
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
    if selects(arguments):
        return await _purge_selected(connection, arguments, queue)
    show({"purged": await queue.purge(), "name": arguments.name}, arguments.form)
    return Exit.OK


async def _purge_selected(connection: Connection, arguments: argparse.Namespace, queue: Queue) -> int:
    wanted = message_filter(arguments, time.time())
    total = (await connection.admin.queues.get(arguments.name)).messages

    async def remove(after: int, upto: int, limit: int, dry_run: bool) -> Done:
        return await connection.admin.messages.remove(queue, wanted, after, upto, limit, dry_run=dry_run)

    return await remove_selected(arguments, arguments.name, total, remove)


COMMAND = Command(
    name="purge",
    help="delete the messages of a queue",
    description="""Deletes all messages of the queue, or those that the options select; on a terminal it asks
        first. Senders that asked for it get a negative acknowledgment. Selected messages that a reader holds
        stay.""",
    run=connected(_purge),
    add_arguments=_add_arguments,
    examples=(
        Example("orders", "the number of deleted messages"),
        Example("'orders;journal'", "the journal of a queue"),
        Example("orders --label 'test *' --dry-run", "how many messages have such a label"),
        Example("orders --older-than 2d --limit 100", "the hundred oldest of at least two days"),
    ),
)
