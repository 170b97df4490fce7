"""`msmq-fast queue copy`: copies messages to another queue."""

from __future__ import annotations

import argparse
import hashlib
import time
from contextlib import suppress

from msmq_fast.cli.session import add_client, connected
from msmq_fast.cli.transfer import Run, add_dry_run, add_filter, message_filter
from msmq_fast.client.connection import Connection
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.exchange import Done
from msmq_fast.protocol.frames import Access
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source", metavar="SOURCE", type=queue_name, help="queue from which messages are copied"
    )
    parser.add_argument(
        "target", metavar="TARGET", type=queue_name, help="queue to which the messages are copied"
    )
    restart = parser.add_argument(
        "--restart",
        action="store_true",
        help="copy from the beginning, even if an interrupted copy could be resumed",
    )
    parser.add_former(restart, "--anew")
    add_filter(parser)
    add_dry_run(parser, "tell what would be copied and what the target would refuse, and change nothing")
    add_client(parser)


async def _copy(connection: Connection, arguments: argparse.Namespace) -> int:
    total = (await connection.admin.queues.get(arguments.source)).messages
    source = await connection.open(arguments.source, Access.PEEK)
    target = await connection.open(arguments.target, Access.SEND)
    wanted = message_filter(arguments, time.time())
    # A copy that is interrupted and repeated must not copy twice.
    job = _job(arguments, connection) if arguments.limit is None and not arguments.dry_run else None

    async def batch(after: int | None, upto: int, limit: int) -> Done:
        first = None if job is not None and not upto and not arguments.restart else after
        return await connection.admin.messages.copy(
            source, target, wanted, first, upto, limit, job=job, plan=run.plan
        )

    run = Run("copy", arguments, total)
    with run.progress:
        await run.repeat(batch)
    if job is not None and run.complete:
        # Everything is copied and kept, whatever becomes of this request.
        with suppress(ConnectionLost):
            await connection.admin.messages.end_job(job)
    return run.show()


def _job(arguments: argparse.Namespace, connection: Connection) -> bytes:
    """Return the identifier by which a copy is resumed. It is the same for equal arguments, so that repeating
    an interrupted command resumes its copy.
    """
    words: tuple[object, ...] = (
        str(connection.guid),
        arguments.source.casefold(),
        arguments.target.casefold(),
        arguments.label,
        arguments.message_class,
        arguments.older,
        arguments.newer,
    )
    for chosen in (
        (arguments.id, arguments.correlation_id, arguments.priority, arguments.lookup_ids),
        (arguments.since, arguments.until),
    ):
        if any(one is not None for one in chosen):  # others keep the identifier of earlier versions
            words += chosen
    return hashlib.sha256(repr(words).encode()).digest()[:16]


COMMAND = Command(
    name="copy",
    help="copy messages to another queue",
    description="""The server copies the messages, batch by batch. If the command is interrupted, the same
        command continues where it stopped: each message is copied once.""",
    run=connected(_copy),
    add_arguments=_add_arguments,
    examples=(Example("orders orders-test --label 'test *' --limit 100", "some messages for a test"),),
)
