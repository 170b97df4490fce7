"""The verbs `queue move`, `queue copy` and `dlq`: messages to other queues, batch by batch in the server."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from msmq_fast.cli.classes import class_name
from msmq_fast.cli.session import converse, exit_of, show, show_table
from msmq_fast.client.connection import Connection
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.exchange import Done, Filter, Stored, browse, copy, end_job, move, resubmit
from msmq_fast.packet.message import Message
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access
from msmq_fast.terminal.progress import Progress

__all__ = ["message_filter", "run_dlq", "run_transfer"]

_BATCH = 1000
_DEAD_LETTERS = (".\\system$;deadletter", ".\\system$;deadxact")
_DONE = {"move": "moved", "copy": "copied", "resubmit": "resubmitted"}
_REASONS = 10  # lines about what stays
_COLUMNS = ("lookup_id", "reason", "destination", "label", "arrived", "bytes", "queue")


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
    run = _Run(title, arguments, int(source_map["messages"]))
    with run.progress:
        await run.repeat(batch)
    if job is not None and run.complete:
        # Everything is copied and kept, whatever becomes of this request.
        with suppress(ConnectionLost):
            await end_job(connection, job)
    return run.show()


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


class _Run:
    """Batches until nothing is left, or --limit is reached; a summary, also of what stays."""

    def __init__(self, title: str, arguments: argparse.Namespace, total: int) -> None:
        self._title = title
        self._arguments = arguments
        self._left: int | None = arguments.limit
        self._size = 0
        self._refusals: Counter[str] = Counter()
        self._problem: MSMQError | None = None
        self.progress = Progress(title, total if self._left is None else min(total, self._left))

    @property
    def complete(self) -> bool:
        """Whether nothing ended it early."""
        return self._problem is None

    async def repeat(self, batch: Callable[[int, int, int], Awaitable[Done]]) -> None:
        """All batches of one queue. Raises what the first of all is refused with."""
        after = upto = 0
        while self._problem is None and (self._left is None or self._left):
            try:
                done = await batch(after, upto, _BATCH if self._left is None else min(self._left, _BATCH))
            except MSMQError as error:
                if not self.progress.count:
                    raise
                self._problem = error
                break
            after, upto = done.next, done.upto
            self._size += done.size
            self._refusals.update(done.refusals)
            self.progress.add(done.count)
            if self._left is not None:
                self._left -= done.count
            if done.finished:
                break

    def show(self) -> int:
        """One line of what was done; the exit code. Raises CommandError if something ended it early."""
        summary: dict[str, Any] = {
            _DONE[self._title]: self.progress.count,
            "bytes": self._size,
            "refused": self._refusals.total(),
            "seconds": round(self.progress.seconds, 3),
        }
        show(summary, as_json=self._arguments.json)
        for reason, count in self._refusals.most_common(_REASONS):
            print(f"msmq-fast {self._arguments.verb}: {count} stay: {reason}", file=sys.stderr)
        if self._problem is not None:
            text = f"not complete, the same command goes on: {self._problem}"
            raise CommandError(exit_of(self._problem), text)
        return Exit.REFUSED if self._refusals else Exit.OK


# ------------------------------------------------------------------------------------------ dead letters


def run_dlq(arguments: argparse.Namespace) -> int:
    """`msmq-fast dlq list|resubmit`."""
    return converse(_list if arguments.action == "list" else _resubmit, arguments)


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
            page = await browse(queue, wanted, after, upto, _BATCH if left is None else min(left, _BATCH))
            after, upto, finished = page.next, page.upto, page.finished
            rows = [_row(name, message) for message in page.messages]
            if arguments.json:
                show_table(rows, _COLUMNS, as_json=True)
            else:
                table += rows
            if left is not None:
                left -= len(rows)
        await queue.close()
    if not arguments.json:
        show_table(table, _COLUMNS, as_json=False)
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
    names = _queues(arguments)
    total = sum([int((await connection.queue(name))["messages"]) for name in names])
    run = _Run("resubmit", arguments, total)
    with run.progress:
        for name in names:
            queue = await connection.open(name, Access.RECEIVE)
            await run.repeat(partial(resubmit, queue, wanted))
            await queue.close()
    return run.show()
