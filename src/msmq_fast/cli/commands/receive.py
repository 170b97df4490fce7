"""`msmq-fast receive`: removes messages from a queue and prints them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence

from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.client.message import ReceivedMessage as Message
from msmq_fast.client.queue import Queue
from msmq_fast.client.transaction import Transaction
from msmq_fast.protocol.errors import IOTimeout, MessageNotFound
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access, Lookup
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import duration, number

__all__ = ["COMMAND"]

_AHEAD = 64  # messages that are locked at once, at most
_TURN = 10.0  # seconds that a message seen in the queue may take to arrive here before it is looked for again
_PAUSE = 0.05  # seconds without a message after which the queue is asked whether it has more


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="path or format name of the queue")
    parser.add_argument("--peek", action="store_true", help="leave the messages in the queue")
    parser.add_argument(
        "--count", type=number(1, 100_000_000), default=1, metavar="N", help="at most N messages (1)"
    )
    parser.add_argument(
        "--timeout", type=duration(), default=0.0, metavar="TIME", help="how long to wait for them (0s)"
    )
    parser.add_argument(
        "--lookup-id", type=number(0, 2**64 - 1), metavar="N", help="the message with this lookup id"
    )
    neighbour = parser.add_mutually_exclusive_group()
    neighbour.add_argument("--next", action="store_true", help="the message after --lookup-id")
    neighbour.add_argument("--prev", action="store_true", help="the message before --lookup-id")
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
        help="reject the messages: senders get a negative acknowledgment and the message goes to their "
        "dead-letter queue",
    )
    add_client(parser)


def _run(arguments: argparse.Namespace) -> int:
    """A message leaves its queue after it was written to standard output."""
    if (arguments.xact or arguments.reject) and arguments.peek:
        raise CommandError(Exit.USAGE, "--peek cannot be combined with --xact or --reject")
    if (arguments.next or arguments.prev) and arguments.lookup_id is None:
        raise CommandError(Exit.USAGE, "--next and --prev need --lookup-id")
    return converse(_receive, arguments)


async def _receive(connection: Connection, arguments: argparse.Namespace) -> int:
    queue = await connection.open(arguments.name, Access.PEEK if arguments.peek else Access.RECEIVE)
    if arguments.xact or arguments.reject:
        async with connection.transaction() as transaction:
            shown = await _in_transaction(queue, arguments, transaction)
    elif arguments.lookup_id is not None:
        shown = await _by_lookup_id(queue, arguments)
    elif arguments.peek:
        shown = await _peek(queue, arguments)
    else:
        shown = await _take(queue, arguments)
    if shown:
        return Exit.OK
    if arguments.lookup_id is not None:
        raise CommandError(Exit.NOT_FOUND, "no message with this lookup id")
    return Exit.EMPTY


async def _take(queue: Queue, arguments: argparse.Namespace) -> int:
    """Remove up to `--count` messages, each when it was written; all of them come within `--timeout` seconds.

    A subscription locks messages until they are acknowledged. It does not say when a queue is empty, so each
    round begins with a peek, which does.
    """
    deadline = time.monotonic() + arguments.timeout
    left = arguments.count
    while left:
        try:
            await queue.peek(max(0.0, deadline - time.monotonic()))
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
                _write(messages, arguments.form)
                await subscription.acknowledge(messages[0], messages[-1])
                left -= len(messages)
                patience = _PAUSE
    return int(arguments.count - left)


async def _in_transaction(queue: Queue, arguments: argparse.Namespace, transaction: Transaction) -> int:
    """Receive in a transaction, which is committed when everything was written."""
    shown = 0
    if arguments.lookup_id is not None:
        messages = _looked_up(queue, arguments, transaction)
    else:
        messages = _received(queue, arguments.count, arguments.timeout, transaction)
    async for message in messages:
        _write([message], arguments.form)
        if arguments.reject:
            await queue.reject(message, transaction=transaction)
        shown += 1
    return shown


async def _received(
    queue: Queue, count: int, patience: float, transaction: Transaction
) -> AsyncIterator[Message]:
    """Up to `count` messages; all of them must come within `patience` seconds."""
    deadline = time.monotonic() + patience
    left = count
    while left:
        wait = max(0.0, deadline - time.monotonic())
        # Several at a time only when none has to wait: a waiting one would take a message out of turn.
        ahead = min(left, _AHEAD)
        results = await asyncio.gather(
            *(queue.receive(0, transaction=transaction) for _ in range(ahead))
            if ahead > 1
            else (queue.receive(wait, transaction=transaction),),
            return_exceptions=True,
        )
        arrived = [result for result in results if isinstance(result, Message)]
        for message in arrived:
            yield message
        left -= len(arrived)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, IOTimeout):
                raise result
        if len(arrived) == ahead:
            continue
        if time.monotonic() >= deadline:
            return
        try:
            yield await queue.receive(max(0.0, deadline - time.monotonic()), transaction=transaction)
        except IOTimeout:
            return
        left -= 1


async def _peek(queue: Queue, arguments: argparse.Namespace) -> int:
    """Show up to `--count` different messages; all of them must come within `--timeout` seconds."""
    deadline = time.monotonic() + arguments.timeout
    shown = 0
    async with await queue.cursor() as cursor:
        read = cursor.peek
        while shown < arguments.count:
            try:
                message = await read(max(0.0, deadline - time.monotonic()))
            except IOTimeout:
                break
            read = cursor.peek_next
            _write([message], arguments.form)
            shown += 1
    return shown


async def _by_lookup_id(queue: Queue, arguments: argparse.Namespace) -> int:
    """Show messages by their lookup ids; without `--peek` each is removed when it was written."""
    shown = 0
    async for message in _looked_up(queue, arguments, None):
        _write([message], arguments.form)
        shown += 1
        if arguments.peek:
            continue
        try:
            await queue.lookup(message.lookup_id, Lookup.CURRENT, receive=True)
        except MessageNotFound:
            raise CommandError(
                Exit.NOT_FOUND,
                f"message {message.lookup_id} was received by another reader after it was written here",
            ) from None
    return shown


async def _looked_up(
    queue: Queue, arguments: argparse.Namespace, transaction: Transaction | None
) -> AsyncIterator[Message]:
    """Messages from `--lookup-id` on, at most `--count`; a `transaction` receives them."""
    onward = Lookup.PREV if arguments.prev else Lookup.NEXT
    operation = onward if arguments.next or arguments.prev else Lookup.CURRENT
    lookup_id = arguments.lookup_id
    take = transaction is not None
    for _ in range(arguments.count):
        try:
            message = await queue.lookup(lookup_id, operation, receive=take, transaction=transaction)
        except MessageNotFound:
            return
        yield message
        lookup_id, operation = message.lookup_id, onward


def _write(messages: Sequence[Message], form: Form) -> None:
    """Write messages out. Raises OSError when standard output does not take them."""
    for message in messages:
        if form is Form.JSON:
            sys.stdout.write(json.dumps(message.to_json()) + "\n")
            continue
        shown = {
            "lookup_id": message.lookup_id,
            "message_id": message.message_id,
            "label": message.label,
            "priority": message.priority,
            "delivery": "recoverable" if message.recoverable else "express",
            "body_size": len(message.body),
            "body": _readable(message),
        }
        show(shown, form)
        print()
    sys.stdout.flush()


def _readable(message: Message) -> str:
    try:
        return message.text
    except UnicodeDecodeError:
        return f"0x{bytes(message.body[:64]).hex()}{'…' if len(message.body) > 64 else ''}"


COMMAND = Command(
    name="receive",
    help="remove messages from a queue and print them",
    description="""A message leaves its queue after it was written to standard output: if the output
        fails, the message stays. The exit code is 0 if there was a message, 4 if there was none within
        --timeout.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("orders", "the first message of the queue, if there is one"),
        Example("orders --count 1000 --json > orders.jsonl", "up to a thousand, one JSON object a line"),
        Example("orders --timeout 30s", "wait for a message"),
        Example("payments --transaction --count 10", "all or none of ten"),
    ),
)
