"""`msmq-fast receive`: removes messages from a queue and prints them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from msmq_fast.cli.deadline import Deadline
from msmq_fast.cli.reading import (
    Writer,
    add_choice,
    add_raw,
    check_choice,
    looked_up,
    nothing_came,
    peek,
)
from msmq_fast.cli.selection import Selection, walk
from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.client.message import ReceivedMessage
from msmq_fast.client.queue import Queue
from msmq_fast.client.transaction import Transaction
from msmq_fast.protocol.errors import IOTimeout, MessageNotFound
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access, Lookup
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_AHEAD = 64  # messages that are locked at once, at most
_TURN = 10.0  # seconds that a message seen in the queue may take to arrive here before it is looked for again
_PAUSE = 0.05  # seconds without a message after which the queue is asked whether it has more


def _add_arguments(parser: Parser) -> None:
    add_choice(parser)
    parser.add_argument("--peek", action="store_true", help="leave the messages in the queue, as `peek` does")
    parser.add_argument(
        "--transaction",
        "--xact",
        dest="xact",
        action="store_true",
        help="receive all messages in one transaction, which commits when they are printed",
    )
    parser.add_argument(
        "--reject",
        action="store_true",
        help="reject the messages: each sender gets a negative acknowledgment, and the message goes to the "
        "sender's dead-letter queue",
    )
    add_raw(parser)
    add_client(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Receive messages. A message is removed from its queue only after it was written to standard output."""
    if (arguments.xact or arguments.reject) and arguments.peek:
        raise CommandError(Exit.USAGE, "--peek cannot be combined with --xact or --reject")
    if (arguments.xact or arguments.reject) and arguments.follow:
        raise CommandError(Exit.USAGE, "--follow cannot be combined with --transaction or --reject")
    check_choice(arguments)
    return converse(_receive, arguments)


async def _receive(connection: Connection, arguments: argparse.Namespace) -> int:
    queue = await connection.open(arguments.name, Access.PEEK if arguments.peek else Access.RECEIVE)
    writer = Writer(arguments)
    if arguments.xact or arguments.reject:
        async with connection.transaction() as transaction:
            shown = await _in_transaction(queue, arguments, writer, transaction)
    elif arguments.lookup_id is not None:
        shown = await _by_lookup_id(queue, arguments, writer)
    elif arguments.peek:
        shown = await peek(queue, arguments, writer)
    elif not Selection.of(arguments).everything:
        shown = await _take_selected(queue, arguments, writer)
    else:
        shown = await _take(queue, arguments, writer)
    if shown:
        return Exit.OK
    if arguments.lookup_id is not None:
        raise CommandError(Exit.NOT_FOUND, "no message with this lookup id")
    return nothing_came()


async def _take(queue: Queue, arguments: argparse.Namespace, writer: Writer) -> int:
    """Write up to `count` messages and remove each after it was written, waiting at most `--timeout` for all
    of them. Returns their number.

    A subscription locks messages until they are acknowledged. It does not report that a queue is empty, but a
    peek does; therefore each round begins with a peek.
    """
    deadline = Deadline(arguments)
    left = arguments.count
    while left:
        try:
            await queue.peek(deadline.left())
        except IOTimeout:
            break
        async with queue.subscribe(min(left, _AHEAD)) as subscription:
            patience = _TURN
            while left:
                try:
                    messages = await asyncio.wait_for(subscription.batch(left), patience)
                except TimeoutError:
                    break  # another reader took what was seen
                if not messages:
                    break
                writer.write(messages)
                await subscription.acknowledge(messages[0], messages[-1])
                left -= len(messages)
                patience = _PAUSE
                deadline.message_came()
    return int(arguments.count - left)


async def _take_selected(queue: Queue, arguments: argparse.Namespace, writer: Writer) -> int:
    """Write up to `count` selected messages and remove each after it was written, waiting until the deadline.
    Returns their number.
    """
    deadline = Deadline(arguments)
    shown = 0
    async with aclosing(walk(queue, Selection.of(arguments), deadline, once=False)) as messages:
        async for message in messages:
            writer.write([message])
            await _remove(queue, message)
            deadline.message_came()
            shown += 1
            if shown == arguments.count:
                break
    return shown


async def _in_transaction(
    queue: Queue, arguments: argparse.Namespace, writer: Writer, transaction: Transaction
) -> int:
    """Receive messages in `transaction`, which the caller commits after everything was written. Returns their
    number.
    """
    shown = 0
    if arguments.lookup_id is not None:
        messages = looked_up(queue, arguments, transaction)
    elif not Selection.of(arguments).everything:
        messages = _received_selected(queue, arguments, transaction)
    else:
        messages = _received(queue, arguments, transaction)
    async for message in messages:
        writer.write([message])
        if arguments.reject:
            await queue.reject(message, transaction=transaction)
        shown += 1
    return shown


async def _received(
    queue: Queue, arguments: argparse.Namespace, transaction: Transaction
) -> AsyncIterator[ReceivedMessage]:
    """Receive up to `count` messages in `transaction` and yield them, waiting at most `--timeout` for all of
    them.
    """
    deadline = Deadline(arguments)
    left = arguments.count
    while left:
        # Several at a time only when none has to wait: a waiting one would take a message out of turn.
        ahead = min(left, _AHEAD)
        results = await asyncio.gather(
            *(queue.receive(0, transaction=transaction) for _ in range(ahead))
            if ahead > 1
            else (queue.receive(deadline.left(), transaction=transaction),),
            return_exceptions=True,
        )
        arrived = [result for result in results if isinstance(result, ReceivedMessage)]
        for message in arrived:
            yield message
        left -= len(arrived)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, IOTimeout):
                raise result
        if len(arrived) == ahead:
            continue
        if not deadline.left():
            return
        try:
            yield await queue.receive(deadline.left(), transaction=transaction)
        except IOTimeout:
            return
        left -= 1


async def _received_selected(
    queue: Queue, arguments: argparse.Namespace, transaction: Transaction
) -> AsyncIterator[ReceivedMessage]:
    """Receive up to `count` selected messages in `transaction` and yield them, waiting at most `--timeout`
    for all of them.
    """
    left = arguments.count
    found = walk(queue, Selection.of(arguments), Deadline(arguments), once=False)
    async with aclosing(found) as messages:
        async for message in messages:
            try:
                yield await queue.lookup(
                    message.lookup_id, Lookup.CURRENT, receive=True, transaction=transaction
                )
            except MessageNotFound:
                continue  # another reader received it
            left -= 1
            if not left:
                return


async def _by_lookup_id(queue: Queue, arguments: argparse.Namespace, writer: Writer) -> int:
    """Write the messages that `--lookup-id` selects; without `--peek`, remove each after it was written."""
    shown = 0
    async for message in looked_up(queue, arguments):
        writer.write([message])
        shown += 1
        if not arguments.peek:
            await _remove(queue, message)
    return shown


async def _remove(queue: Queue, message: ReceivedMessage) -> None:
    """Remove a message that was written. Raises CommandError if another reader has received it."""
    try:
        await queue.lookup(message.lookup_id, Lookup.CURRENT, receive=True)
    except MessageNotFound:
        raise CommandError(
            Exit.NOT_FOUND,
            f"message {message.lookup_id} was already written to the output, "
            "but then another reader received it",
        ) from None


COMMAND = Command(
    name="receive",
    help="remove messages from a queue and print them",
    description="""A message leaves its queue after it was written to standard output: if the output
        fails, the message stays. The exit code is 0 if there was a message, 4 if there was none within
        --timeout.

        With --label, --correlation-id or --id, the command walks through the queue, takes the messages that
        match, and leaves all others where they are; --count counts the messages that match.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("orders", "the first message of the queue, if there is one"),
        Example(
            "orders --count 1000 --json > orders.jsonl", "up to a thousand messages, one JSON object a line"
        ),
        Example("orders --raw > order.xml", "the body of the first message, byte for byte"),
        Example("orders --timeout 30s", "wait for a message"),
        Example("orders --follow --raw | ./program", "every message that arrives, one body a line"),
        Example("orders --label 'order *' --count 10", "ten messages with such labels; the others stay"),
        Example(
            r"answers --timeout 30s --correlation-id '{ca67622c-7290-4658-b39b-f700fff64801}\627598800'",
            "the answer to a message",
        ),
        Example("payments --transaction --count 10", "ten messages, all or none"),
    ),
)
