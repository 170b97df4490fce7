"""The verbs `queue move`, `queue copy` and `dlq`: messages to other queues, batch by batch inside the server."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from msmq_fast.app.wire import Access
from msmq_fast.cli.classes import class_name
from msmq_fast.cli.exits import CommandError, Exit
from msmq_fast.cli.progress import Progress
from msmq_fast.cli.session import converse, exit_of, show, show_table
from msmq_fast.client.connection import Connection
from msmq_fast.client.exchange import Done, Filter, Stored, browse, copy, move, resubmit
from msmq_fast.packet.errors import MSMQError
from msmq_fast.packet.message import Message

__all__ = ["message_filter", "run_dlq", "run_transfer"]

_BATCH = 1000
_DEAD_LETTERS = (".\\system$;deadletter", ".\\system$;deadxact")
_COLUMNS = ("lookup_id", "reason", "destination", "label", "arrived", "bytes")


def message_filter(arguments: argparse.Namespace, now: float) -> Filter:
    """What --label, --class, --older and --newer mean at a time (Unix seconds)."""
    return Filter(
        arguments.label,
        arguments.message_class,
        None if arguments.newer is None else max(0, int((now - arguments.newer) * 1e6)),
        None if arguments.older is None else max(0, int((now - arguments.older) * 1e6)),
    )


def run_transfer(arguments: argparse.Namespace) -> int:
    """`msmq-fast queue move|copy SOURCE TARGET`."""
    return converse(_transfer, arguments)


async def _transfer(connection: Connection, arguments: argparse.Namespace) -> int:
    keep = arguments.action == "copy"
    source_map = await connection.queue(arguments.source)
    source = await connection.open(arguments.source, Access.PEEK if keep else Access.RECEIVE)
    target = await connection.open(arguments.target, Access.SEND)
    wanted = message_filter(arguments, time.time())
    # A copy that is interrupted and repeated must not copy twice; a move cannot: what was moved is gone.
    job = _job(arguments, connection) if keep and arguments.limit is None else None

    async def batch(after: int | None, upto: int, limit: int) -> Done:
        if keep:
            first = None if job is not None and not upto and not arguments.anew else after
            return await copy(source, target, wanted, first, upto, limit, job=job)
        return await move(source, target, wanted, after or 0, upto, limit)

    title = "copy" if keep else "move"
    return await _repeat(title, int(source_map["messages"]), arguments, batch)


def _job(arguments: argparse.Namespace, connection: Connection) -> bytes:
    """The name of a copy: the same words are the same work."""
    words = (
        str(connection.guid),
        arguments.source.casefold(),
        arguments.target.casefold(),
        arguments.label,
        arguments.message_class,
        arguments.older,
        arguments.newer,
    )
    return hashlib.sha256(repr(words).encode()).digest()[:16]


async def _repeat(
    title: str,
    total: int,
    arguments: argparse.Namespace,
    batch: Callable[[int, int, int], Awaitable[Done]],
) -> int:
    """Batches until nothing is left, or --limit is reached; a summary, also of what stays."""
    left = arguments.limit
    after = upto = size = 0
    refusals: Counter[str] = Counter()
    problem: MSMQError | None = None
    with Progress(title, total if left is None else min(total, left)) as progress:
        while left is None or left:
            try:
                done = await batch(after, upto, _BATCH if left is None else min(left, _BATCH))
            except MSMQError as error:
                if not progress.count:
                    raise
                problem = error
                break
            after, upto = done.next, done.upto
            size += done.size
            refusals.update(done.refusals)
            progress.add(done.count)
            if left is not None:
                left -= done.count
            if done.finished:
                break
    word = {"move": "moved", "copy": "copied", "resubmit": "resubmitted"}[title]
    summary: dict[str, Any] = {word: progress.count, "bytes": size, "refused": refusals.total()}
    summary["seconds"] = round(progress.seconds, 3)
    show(summary, as_json=arguments.json)
    for reason, count in refusals.most_common(10):
        print(f"msmq-fast {arguments.verb}: {count} stay: {reason}", file=sys.stderr)
    if problem is not None:
        raise CommandError(exit_of(problem), f"not complete, the same command goes on: {problem}")
    return Exit.REFUSED if refusals else Exit.OK


# ------------------------------------------------------------------------------------------ dead letters


def run_dlq(arguments: argparse.Namespace) -> int:
    """`msmq-fast dlq list|resubmit`."""
    return converse(_list if arguments.action == "list" else _resubmit, arguments)


def _queues(arguments: argparse.Namespace) -> tuple[str, ...]:
    return (arguments.queue,) if arguments.queue else _DEAD_LETTERS


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    wanted = message_filter(arguments, time.time())
    left = arguments.limit
    for name in _queues(arguments):
        queue = await connection.open(name, Access.PEEK)
        after = upto = 0
        finished = False
        while not finished and (left is None or left):
            page = await browse(queue, wanted, after, upto, _BATCH if left is None else min(left, _BATCH))
            after, upto, finished = page.next, page.upto, page.finished
            if page.messages:
                rows = [_row(name, message) for message in page.messages]
                show_table(rows, _COLUMNS, as_json=arguments.json)
            if left is not None:
                left -= len(page.messages)
        await queue.close()
    return Exit.OK


def _row(queue: str, stored: Stored) -> dict[str, Any]:
    row: dict[str, Any] = {
        "queue": queue,
        "lookup_id": stored.lookup_id,
        "arrived": stored.arrived_us // 1_000_000,
        "bytes": len(stored.packet),
    }
    try:
        message = Message.from_packet(stored.packet)
    except ValueError as error:
        return row | {"reason": f"damaged: {error}"}
    kind = stored.reason or int(message.message_class)
    return row | {
        "reason": class_name(kind),
        "class": kind,
        "message_id": message.identifier,
        "destination": str(message.destination) if message.destination else None,
        "label": message.label,
        "priority": message.priority,
        "transactional": message.transactional,
        "sent": message.sent_time,
    }


async def _resubmit(connection: Connection, arguments: argparse.Namespace) -> int:
    wanted = message_filter(arguments, time.time())
    total = 0
    code = int(Exit.OK)
    for name in _queues(arguments):
        total += int((await connection.queue(name))["messages"])
    for name in _queues(arguments):
        queue = await connection.open(name, Access.RECEIVE)

        async def batch(after: int, upto: int, limit: int, queue: Any = queue) -> Done:
            return await resubmit(queue, wanted, after, upto, limit)

        code = max(code, await _repeat("resubmit", total, arguments, batch))
    return code
