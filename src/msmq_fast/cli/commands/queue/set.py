"""`msmq-fast queue set`: changes properties of a queue."""

from __future__ import annotations

import argparse

from msmq_fast.cli.commands.queue.properties import add_properties, given_properties
from msmq_fast.cli.queueinfo import readable
from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=queue_name, help="path or format name of the queue")
    add_properties(parser)
    add_client(parser)


async def _set(connection: Connection, arguments: argparse.Namespace) -> int:
    properties = given_properties(arguments)
    if not properties:
        raise CommandError(
            Exit.USAGE,
            "nothing to set: give --label, --quota, --journal, --authenticated, --privacy, "
            "--multicast or --poison-after",
        )
    queue = (await connection.admin.queues.set(arguments.name, **properties)).as_map()
    show(readable(queue) if arguments.form is Form.TABLE else queue, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="set",
    help="change properties of a queue",
    description="""Changes only the given properties. Whether a queue is transactional cannot be
        changed.""",
    run=connected(_set),
    add_arguments=_add_arguments,
    examples=(
        Example("orders --label 'Orders of the shop' --no-journal", "two properties"),
        Example("orders --poison-after 5", "move a message to ;poison after five aborted receives"),
    ),
)
