"""`msmq-fast queue show`: shows the properties of a queue."""

from __future__ import annotations

import argparse

from msmq_fast.cli.queueinfo import readable
from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=queue_name, help="path or format name of the queue")
    add_client(parser)


async def _show(connection: Connection, arguments: argparse.Namespace) -> int:
    queue = (await connection.admin.queues.get(arguments.name)).as_map()
    show(readable(queue) if arguments.form is Form.TABLE else queue, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="show",
    help="show the properties of a queue",
    run=connected(_show),
    add_arguments=_add_arguments,
    examples=(Example("orders", "all properties"), Example("orders --json | jq .messages", "one property")),
)
