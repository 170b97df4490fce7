"""`msmq-fast queue delete`: deletes a queue and its messages."""

from __future__ import annotations

import argparse

from msmq_fast.cli.confirm import add_yes, asks, confirm
from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=queue_name, help="path or format name of the queue")
    add_yes(parser)
    add_client(parser)


async def _delete(connection: Connection, arguments: argparse.Namespace) -> int:
    if asks(arguments):
        queue = (await connection.admin.queues.get(arguments.name)).as_map()
        confirm(f"delete {queue['name']}", queue["messages"] + queue.get("journal_messages", 0))
    await connection.admin.queues.delete(arguments.name)
    show({"deleted": arguments.name}, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="delete",
    help="delete a queue and its messages",
    description="""Deletes the queue, its journal and all their messages. On a terminal it asks first if
        there are messages.""",
    run=connected(_delete),
    add_arguments=_add_arguments,
    examples=(Example("orders --yes", "without asking for confirmation"),),
)
