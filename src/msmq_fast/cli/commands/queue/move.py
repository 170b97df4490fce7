"""`msmq-fast queue move`: moves messages to another queue."""

from __future__ import annotations

import argparse
import time

from msmq_fast.cli.session import add_client, connected
from msmq_fast.cli.transfer import Run, add_dry_run, add_filter, message_filter
from msmq_fast.client.connection import Connection
from msmq_fast.client.exchange import Done
from msmq_fast.protocol.frames import Access
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source", metavar="SOURCE", type=queue_name, help="queue from which messages are moved"
    )
    parser.add_argument(
        "target", metavar="TARGET", type=queue_name, help="queue to which the messages are moved"
    )
    add_filter(parser)
    add_dry_run(parser, "tell what would be moved and what the target would refuse, and change nothing")
    add_client(parser)


async def _move(connection: Connection, arguments: argparse.Namespace) -> int:
    total = (await connection.admin.queues.get(arguments.source)).messages
    source = await connection.open(arguments.source, Access.RECEIVE)
    target = await connection.open(arguments.target, Access.SEND)
    wanted = message_filter(arguments, time.time())

    async def batch(after: int | None, upto: int, limit: int) -> Done:
        return await connection.admin.messages.move(
            source, target, wanted, after or 0, upto, limit, plan=run.plan
        )

    run = Run("move", arguments, total)
    with run.progress:
        await run.repeat(batch)
    return run.show()


COMMAND = Command(
    name="move",
    help="move messages to another queue",
    description="""The server moves the messages, batch by batch. If the command is interrupted, the same
        command continues with the rest.""",
    run=connected(_move),
    add_arguments=_add_arguments,
    examples=(
        Example("orders orders-old --older-than 2d", "messages that arrived at least two days ago"),
        Example("'orders;poison' orders", "poison messages back into their queue"),
    ),
)
