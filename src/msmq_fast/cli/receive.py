"""The verb `receive`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator

from msmq_fast.app.wire import Access, Lookup
from msmq_fast.cli.exits import CommandError, Exit
from msmq_fast.cli.session import converse, show
from msmq_fast.client.connection import Connection
from msmq_fast.client.message import Message
from msmq_fast.client.queue import Queue
from msmq_fast.client.transaction import Transaction
from msmq_fast.packet.errors import IOTimeout, MessageNotFound

__all__ = ["run_receive"]

_AHEAD = 64  # receives on their way at once


def run_receive(arguments: argparse.Namespace) -> int:
    """`msmq-fast receive`."""
    if (arguments.xact or arguments.reject) and arguments.peek:
        raise CommandError(
            Exit.USAGE, "nothing is peeked in a transaction: --peek excludes --xact and --reject"
        )
    if (arguments.next or arguments.prev) and arguments.lookup_id is None:
        raise CommandError(Exit.USAGE, "--next and --prev need --lookup-id")
    return converse(_receive, arguments)


async def _receive(connection: Connection, arguments: argparse.Namespace) -> int:
    if not arguments.xact and not arguments.reject:
        return await _show(connection, arguments, None)
    async with connection.transaction() as transaction:
        return await _show(connection, arguments, transaction)


async def _show(
    connection: Connection, arguments: argparse.Namespace, transaction: Transaction | None
) -> int:
    queue = await connection.open(arguments.name, Access.PEEK if arguments.peek else Access.RECEIVE)
    if arguments.lookup_id is not None:
        messages = _by_lookup_id(queue, arguments, transaction)
    elif arguments.peek:
        messages = _peeked(queue, arguments)
    else:
        messages = _taken(queue, arguments.count, arguments.timeout, transaction)
    shown = 0
    async for message in messages:
        _print(message, as_json=arguments.json)
        if arguments.reject and transaction is not None:
            await queue.reject(message, transaction=transaction)
        shown += 1
    if shown == arguments.count:
        return Exit.OK
    if arguments.lookup_id is not None and shown == 0:
        raise CommandError(Exit.NOT_FOUND, "no message with this lookup id")
    return Exit.EMPTY


async def _taken(
    queue: Queue, count: int, patience: float, transaction: Transaction | None
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


async def _peeked(queue: Queue, arguments: argparse.Namespace) -> AsyncIterator[Message]:
    """Up to `--count` different messages; all of them must come within `--timeout` seconds."""
    deadline = time.monotonic() + arguments.timeout
    async with await queue.cursor() as cursor:
        read = cursor.peek
        for _ in range(arguments.count):
            try:
                message = await read(max(0.0, deadline - time.monotonic()))
            except IOTimeout:
                return
            read = cursor.peek_next
            yield message


async def _by_lookup_id(
    queue: Queue, arguments: argparse.Namespace, transaction: Transaction | None
) -> AsyncIterator[Message]:
    onward = Lookup.PREV if arguments.prev else Lookup.NEXT
    first = onward if arguments.next or arguments.prev else Lookup.CURRENT
    take = not arguments.peek
    async for message in _walk(queue, arguments.lookup_id, first, 1, receive=take, transaction=transaction):
        yield message
        async for following in _walk(
            queue, message.lookup_id, onward, arguments.count - 1, receive=take, transaction=transaction
        ):
            yield following


async def _walk(
    queue: Queue,
    lookup_id: int,
    operation: Lookup,
    count: int,
    *,
    receive: bool,
    transaction: Transaction | None = None,
) -> AsyncIterator[Message]:
    for _ in range(count):
        try:
            message = await queue.lookup(lookup_id, operation, receive=receive, transaction=transaction)
        except MessageNotFound:
            return
        lookup_id = message.lookup_id
        yield message


def _print(message: Message, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(message.to_json()) + "\n")
        return
    shown = {
        "lookup_id": message.lookup_id,
        "message_id": message.message_id,
        "label": message.label,
        "priority": message.priority,
        "delivery": "recoverable" if message.recoverable else "express",
        "body_size": len(message.body),
        "body": _readable(message),
    }
    show(shown, as_json=False)
    print()


def _readable(message: Message) -> str:
    try:
        return message.text
    except UnicodeDecodeError:
        return f"0x{bytes(message.body[:64]).hex()}{'…' if len(message.body) > 64 else ''}"
