"""`msmq-fast peek`: prints messages of a queue and leaves them there."""

from __future__ import annotations

import argparse

from msmq_fast.cli.reading import Writer, add_choice, add_raw, check_choice, looked_up, nothing_came, peek
from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    add_choice(parser)
    add_raw(parser)
    add_client(parser)


def _run(arguments: argparse.Namespace) -> int:
    check_choice(arguments)
    return converse(_peek, arguments)


async def _peek(connection: Connection, arguments: argparse.Namespace) -> int:
    queue = await connection.open(arguments.name, Access.PEEK)
    writer = Writer(arguments)
    if arguments.lookup_id is None:
        return Exit.OK if await peek(queue, arguments, writer) else nothing_came()
    shown = 0
    async for message in looked_up(queue, arguments):
        writer.write([message])
        shown += 1
    if not shown:
        raise CommandError(Exit.NOT_FOUND, "no message with this lookup id")
    return Exit.OK


COMMAND = Command(
    name="peek",
    help="print messages of a queue and leave them there",
    description="""Messages stay in the queue, and other readers may receive them meanwhile. The exit code
        is 0 if there was a message, 4 if there was none within --timeout. With --label, --correlation-id or
        --id, only messages that match are printed, and counted by --count.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("orders", "the first message"),
        Example("orders --count 10 --json | jq .label", "the labels of the first ten"),
        Example("orders --label 'order 1*' --count 100", "messages with such labels"),
        Example(r"'.\system$;deadxact' --count 100", "transactional dead letters"),
        Example("orders --lookup-id 216172782113783809 --next", "the message after another one"),
    ),
)
