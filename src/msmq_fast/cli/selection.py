"""The options of `receive` and `peek` that select messages by their properties, and the walk through a queue
that applies them.

Without a time to wait, the server applies them: BROWSE finds the messages, one priority after the other.
Otherwise, and for a queue of another computer, a cursor reads the queue, and the client applies them:

A cursor reads the queue to its end and waits there for more. A new message of a higher priority is inserted
in front of the cursor. There are two cases:

1. The message arrives while the cursor waits. The cursor moves to the message, and then reads the messages
   behind it a second time; a walk that leaves messages in the queue skips those that it has yielded.
2. The message arrives before the cursor has reached the end. The cursor does not see it, so the walk looks
   for such messages once a second while the cursor waits. A lookup id begins with the priority of its
   message: the lookup id of the last message of each priority is enough to find the next one.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

from msmq_fast.cli.deadline import Deadline
from msmq_fast.cli.messageid import correlation_id, message_id
from msmq_fast.cli.transfer import BATCH, add_arrival, arrival_range
from msmq_fast.client.exchange import Filter
from msmq_fast.client.message import ReceivedMessage
from msmq_fast.client.queue import Queue
from msmq_fast.protocol.errors import IOTimeout, MessageNotFound, UnsupportedOperation
from msmq_fast.protocol.frames import Frame, Lookup
from msmq_fast.terminal.parser import Parser

__all__ = ["Selection", "add_selection", "walk"]

_SLICE = 1.0  # seconds after which a waiting walk looks for messages of a higher priority
_PRIORITIES = 8
_FIRST_PAGE = 16  # messages: most commands ask for one; later pages are larger
_PRIORITY_SHIFT = 56  # a lookup id has 7 - priority in its highest byte


def add_selection(parser: Parser) -> None:
    """Add the options that select messages by their properties."""
    group = parser.add_argument_group("filters; messages that do not match stay in the queue")
    group.add_argument(
        "--label",
        metavar="TEXT",
        help="only messages with this label; *, ? and [a-z] match as in the file names of a shell",
    )
    group.add_argument(
        "--correlation-id",
        type=correlation_id,
        metavar="ID",
        help="only answers to, and acknowledgments of, the message with this identifier",
    )
    group.add_argument(
        "--id",
        type=message_id,
        metavar="ID",
        help="only the message with this identifier, as `send` prints it",
    )
    add_arrival(group)


class Selection(NamedTuple):
    """The values that a message must have to be selected; None means any value. `since` and `until` are the
    first and the last second of its arrival.
    """

    label: str | None
    correlation_id: bytes | None
    id: bytes | None
    since: int | None
    until: int | None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Selection:
        """Return the selection that the options of a command line define. Raises CommandError for an empty
        range of times.
        """
        arrival_range(arguments.since, arguments.until)
        return cls(arguments.label, arguments.correlation_id, arguments.id, arguments.since, arguments.until)

    @property
    def everything(self) -> bool:
        """Whether all values are None, so that every message matches."""
        return all(value is None for value in self)

    def matches(self, message: ReceivedMessage) -> bool:
        """Return whether a message is selected. The comparison of labels is case-sensitive."""
        return (
            (self.label is None or fnmatchcase(message.label, self.label))
            and self.correlation_id in (None, message.correlation_id)
            and self.id in (None, message.id)
            and (self.since is None or message.arrived_time >= self.since)
            and (self.until is None or message.arrived_time <= self.until)
        )


async def walk(
    queue: Queue, selection: Selection, deadline: Deadline, *, once: bool
) -> AsyncGenerator[ReceivedMessage, None]:
    """Yield the selected messages of a queue without removing them, waiting for more until `deadline`.

    With `once`, each message is yielded once. Without it, the caller removes each message that it gets, and a
    message that returns to the queue, as after another reader's aborted transaction, is yielded again.
    """
    if deadline.left() == 0 and not selection.everything:
        with suppress(UnsupportedOperation):  # a queue of another computer: only its own cursor reads it
            async for message in _search(queue, selection):
                yield message
            return
    last: dict[int, int] = {}  # the lookup id of the last message, by priority level (0 is read first)
    async with await queue.cursor() as cursor:
        read = cursor.peek
        while True:
            left = deadline.left()
            try:
                found = [await read(_SLICE if left is None else min(left, _SLICE))]
                read = cursor.peek_next
            except IOTimeout:
                read = cursor.peek  # a wait that has ended leaves the cursor without a current message
                found = [message async for message in _in_front(queue, last)] if left != 0 else []
                if not found and deadline.left() == 0:
                    return
            for message in found:
                level = message.lookup_id >> _PRIORITY_SHIFT
                seen = last.get(level, -1)
                last[level] = max(seen, message.lookup_id)
                if selection.matches(message) and (message.lookup_id > seen or not once):
                    yield message


async def _search(queue: Queue, selection: Selection) -> AsyncIterator[ReceivedMessage]:
    """Yield the selected messages that are in the queue now, in its order; the server applies the selection.

    Raises UnsupportedOperation, before it yields anything, for a queue of another computer.
    """
    since, until = arrival_range(selection.since, selection.until)
    for priority in range(_PRIORITIES - 1, -1, -1):  # BROWSE follows arrival, as the queue does in a priority
        wanted = Filter(selection.label, None, since, until, selection.id, selection.correlation_id, priority)
        after = upto = 0
        limit = _FIRST_PAGE
        finished = False
        while not finished:
            fields = wanted.to_wire(), after, upto, limit
            page = await queue.request(Frame.BROWSE, *fields)
            for lookup_id, *_ in page["messages"]:
                try:
                    message = await queue.lookup(lookup_id)
                except MessageNotFound:
                    continue  # another reader received it
                yield message
            after, upto, finished = page["next"], page["upto"], page["finished"]
            limit = min(limit * 4, BATCH)


async def _in_front(queue: Queue, last: dict[int, int]) -> AsyncIterator[ReceivedMessage]:
    """Yield the messages that arrived in front of the waiting cursor: those of a higher priority than the
    last message that it read. `last` holds the lookup id of the last message read, by priority level; this
    function does not change it.
    """
    end = max(last, default=0)
    level = 0
    while level < end:
        after = last.get(level, level << _PRIORITY_SHIFT)
        try:
            while True:
                message = await queue.lookup(after, Lookup.NEXT)
                after = message.lookup_id
                if after >> _PRIORITY_SHIFT != level:
                    break
                yield message
        except MessageNotFound:
            return
        # Between the two levels the queue has no message.
        level = max(level + 1, after >> _PRIORITY_SHIFT)
