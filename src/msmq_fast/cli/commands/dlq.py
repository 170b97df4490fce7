"""`msmq-fast dlq`: lists dead letters with their reasons, and sends them again."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

from msmq_fast.cli.classes import class_text
from msmq_fast.cli.session import add_client, connected
from msmq_fast.cli.transfer import BATCH, Run, add_dry_run, add_filter, message_filter
from msmq_fast.client.connection import Connection
from msmq_fast.client.exchange import Done, Filter, Stored
from msmq_fast.client.queue import Queue
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import name_of
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.frames import Access
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]

_DEAD_LETTERS = (".\\system$;deadletter", ".\\system$;deadxact")
_COLUMNS = ("lookup_id", "reason", "destination_queue", "label", "arrived_time", "bytes", "queue")


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--queue",
        metavar="NAME",
        type=queue_name,
        help="queue with the dead letters; default: the two dead-letter queues",
    )
    add_filter(parser)
    add_client(parser)


def _queues(arguments: argparse.Namespace) -> tuple[str, ...]:
    return (arguments.queue,) if arguments.queue else _DEAD_LETTERS


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    wanted = message_filter(arguments, time.time())
    left = arguments.limit
    table: list[dict[str, Any]] = []  # for people: all rows, since the widest decides the width of a column
    for name in _queues(arguments):
        queue = await connection.open(name, Access.PEEK)
        after = upto = 0
        finished = False
        while not finished and (left is None or left):
            page = await connection.admin.messages.browse(
                queue, wanted, after, upto, BATCH if left is None else min(left, BATCH)
            )
            after, upto, finished = page.next, page.upto, page.finished
            rows = [_row(name, message, arguments.form) for message in page.messages]
            if arguments.form is Form.JSON:
                show_table(rows, _COLUMNS, arguments.form)
            else:
                table += rows
            if left is not None:
                left -= len(rows)
        await queue.close()
    if arguments.form is not Form.JSON:
        show_table(table, _COLUMNS, arguments.form)
    return Exit.OK


def _row(queue: str, stored: Stored, form: Form) -> dict[str, Any]:
    row: dict[str, Any] = {
        "queue": queue,
        "lookup_id": stored.lookup_id,
        "arrived_time": stored.arrived_us // 1_000_000,
        "bytes": len(stored.packet),
    }
    try:
        message = Message.from_packet(stored.packet)
    except ValueError as error:
        return row | {"reason": f"damaged: {error}"}
    kind = stored.reason or int(message.message_class)
    return row | {
        "reason": class_text(kind) if form is Form.TABLE else name_of(kind),
        "class": kind,
        "message_id": message.identifier,
        "destination_queue": str(message.destination) if message.destination else None,
        "label": message.label,
        "priority": message.priority,
        "transactional": message.transactional,
        "sent_time": message.sent_time,
    }


def _add_resubmit(parser: Parser) -> None:
    _add_arguments(parser)
    add_dry_run(parser, "tell what would be sent and what would be refused, and change nothing")


async def _resubmit(connection: Connection, arguments: argparse.Namespace) -> int:
    wanted = message_filter(arguments, time.time())
    names = _queues(arguments)
    total = sum([(await connection.admin.queues.get(name)).messages for name in names])
    run = Run("resubmit", arguments, total)
    with run.progress:
        for name in names:
            queue = await connection.open(name, Access.RECEIVE)
            await run.repeat(partial(_resubmit_batch, connection, queue, wanted, run))
            await queue.close()
    return run.show()


async def _resubmit_batch(
    connection: Connection, queue: Queue, wanted: Filter, run: Run, after: int, upto: int, limit: int
) -> Done:
    messages = connection.admin.messages
    return await messages.resubmit(queue, wanted, after, upto, limit, plan=run.plan)


COMMAND = Group(
    name="dlq",
    help="list dead letters, and send them to their queues again",
    commands=members(
        Command(
            name="list",
            help="list dead letters with the reason of each",
            run=connected(_list),
            add_arguments=_add_arguments,
            examples=(
                Example("", "both dead-letter queues"),
                Example(
                    "--class NACK_BAD_DST_Q --newer-than 1h",
                    "messages of the last hour whose queue does not exist",
                ),
            ),
        ),
        Command(
            name="resubmit",
            help="send dead letters to their queues again",
            description="""Each message goes to its destination as a new message, and leaves the
                dead-letter queue. If the command is interrupted, the same command continues with the
                rest.""",
            run=connected(_resubmit),
            add_arguments=_add_resubmit,
            examples=(Example("--label 'order *' --limit 100", "the first hundred with a matching label"),),
        ),
    ),
)
