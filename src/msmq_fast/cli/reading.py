"""The parts that `receive` and `peek` share: the options that select messages, and the output of messages."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from msmq_fast.cli.classes import class_text
from msmq_fast.cli.deadline import Deadline
from msmq_fast.cli.selection import Selection, add_selection, walk
from msmq_fast.client.bodytext import body_text
from msmq_fast.client.message import ReceivedMessage, format_message_id
from msmq_fast.client.queue import Queue
from msmq_fast.client.transaction import Transaction
from msmq_fast.protocol.errors import MessageNotFound
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Lookup
from msmq_fast.terminal.output import Form, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import duration, number, queue_name

__all__ = [
    "ENDLESS",
    "Writer",
    "add_choice",
    "add_raw",
    "check_choice",
    "looked_up",
    "nothing_came",
    "peek",
]

ENDLESS = 1 << 62  # the count of --follow


def add_choice(parser: Parser) -> None:
    """Add the argument for the queue and the options that select messages."""
    parser.add_argument("name", metavar="NAME", type=queue_name, help="path or format name of the queue")
    parser.add_argument(
        "--count", type=number(1, 100_000_000), metavar="N", help="at most N messages; default: 1"
    )
    parser.add_argument(
        "--timeout",
        type=duration(),
        metavar="TIME",
        help="how long to wait for messages, such as 30s; default: 0s. With --follow, how long to wait for "
        "the next message; default: no limit",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="keep waiting for messages until --count is reached, no message comes within --timeout, or "
        "Ctrl+C is pressed",
    )
    parser.add_argument(
        "--lookup-id", type=number(0, 2**64 - 1), metavar="N", help="the message with this lookup id"
    )
    neighbour = parser.add_mutually_exclusive_group()
    neighbour.add_argument("--next", action="store_true", help="the messages after --lookup-id")
    neighbour.add_argument("--prev", action="store_true", help="the messages before --lookup-id")
    add_selection(parser)


def add_raw(parser: Parser) -> None:
    """Add the options of raw output."""
    group = parser.add_argument_group("bodies")
    group.add_argument(
        "--raw",
        dest="form",
        action="store_const",
        const=Form.RAW,
        help="print only the bodies; short for -o raw",
    )
    group.add_argument(
        "--null", action="store_true", help="end each body with a NUL byte; for raw output of binary bodies"
    )


def check_choice(arguments: argparse.Namespace) -> None:
    """Set `count`, whose default depends on `--follow`, and `single`, which means that at most one message
    was asked for. Raises CommandError if options exclude each other.
    """
    if (arguments.next or arguments.prev) and arguments.lookup_id is None:
        raise CommandError(Exit.USAGE, "--next and --prev need --lookup-id")
    if arguments.follow and arguments.lookup_id is not None:
        raise CommandError(Exit.USAGE, "--follow cannot be combined with --lookup-id")
    selection = Selection.of(arguments)
    if arguments.lookup_id is not None and not selection.everything:
        raise CommandError(
            Exit.USAGE,
            "--lookup-id cannot be combined with --label, --correlation-id, --id, --since or --until",
        )
    if arguments.null and arguments.form is not Form.RAW:
        raise CommandError(Exit.USAGE, "--null needs --raw")
    arguments.single = arguments.count in (None, 1) and not arguments.follow
    if arguments.count is None:
        arguments.count = ENDLESS if arguments.follow else 1


def nothing_came() -> Exit:
    """Return the exit code for "no message". On a terminal, also print a line."""
    if sys.stderr.isatty():
        print("no message", file=sys.stderr)
    return Exit.EMPTY


class Writer:
    """Writes messages to standard output in the chosen form."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._form: Form = arguments.form
        # One message that was asked for is its bytes and nothing else; several need an end each.
        self._end = b"\0" if arguments.null else b"" if arguments.single else b"\n"

    def write(self, messages: Sequence[ReceivedMessage]) -> None:
        """Write messages. Raises OSError if writing to standard output fails."""
        for message in messages:
            if self._form is Form.JSON:
                sys.stdout.write(json.dumps(message.to_json()) + "\n")
            elif self._form is Form.RAW:
                sys.stdout.buffer.write(bytes(message.body) + self._end)
            else:
                show(_readable(message), self._form)
                sys.stdout.write("\n")
        sys.stdout.flush()


async def peek(queue: Queue, arguments: argparse.Namespace, writer: Writer) -> int:
    """Write up to `count` selected messages without removing them, waiting until the deadline. Returns their
    number.
    """
    deadline = Deadline(arguments)
    shown = 0
    async with aclosing(walk(queue, Selection.of(arguments), deadline, once=True)) as messages:
        async for message in messages:
            writer.write([message])
            deadline.message_came()
            shown += 1
            if shown == arguments.count:
                break
    return shown


async def looked_up(
    queue: Queue, arguments: argparse.Namespace, transaction: Transaction | None = None
) -> AsyncIterator[ReceivedMessage]:
    """Yield at most `count` messages, starting at `--lookup-id`. They are received in `transaction`, or
    peeked if it is None.
    """
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


def _readable(message: ReceivedMessage) -> dict[str, Any]:
    """Return the properties of a message that people see: the main ones always, the others only if they are
    set.
    """
    shown: dict[str, Any] = {
        "lookup_id": message.lookup_id,
        "message_id": message.message_id,
        "label": message.label,
        "class": class_text(message.message_class),
        "priority": message.priority,
        "delivery": "transactional" if message.transactional else _delivery(message),
        "sent_time": message.sent_time,
        "arrived_time": message.arrived_time,
    }
    optional = {
        "source_machine": message.source_machine,
        "correlation_id": format_message_id(message.correlation_id) if any(message.correlation_id) else "",
        "response_queue": message.response_queue,
        "admin_queue": message.admin_queue,
        "destination_queue": message.destination_queue,
        "app_specific": message.app_specific,
        "signature_state": message.signature_state if message.signature_state != "none" else "",
        "abort_count": message.abort_count,
        "reason": class_text(message.reason) if message.reason else "",
    }
    shown |= {key: value for key, value in optional.items() if value}
    return shown | {"body_size": len(message.body), "body": body_text(message)}


def _delivery(message: ReceivedMessage) -> str:
    return "recoverable" if message.recoverable else "express"
