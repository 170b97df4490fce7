"""The verb `send`."""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import BinaryIO

from msmq_fast.cli.keyarguments import HASHES, LEVELS
from msmq_fast.cli.session import converse, show
from msmq_fast.client.connection import Connection
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.message import EXPRESS, RECOVERABLE, Message
from msmq_fast.client.sender import Sender
from msmq_fast.client.transaction import SINGLE_MESSAGE
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import INFINITE, Access

__all__ = ["run_send"]

_ACKNOWLEDGMENTS = {"reach": 1, "receive": 2, "nack-reach": 4, "nack-receive": 8}
_DEAD_LETTER, _JOURNAL = 1, 2
_NO_CORRELATION = bytes(20)
_READ_LIMIT = 0x0040_0000  # of one message packet; no larger body can be sent


def run_send(arguments: argparse.Namespace) -> int:
    """`msmq-fast send`."""
    if arguments.ack and not arguments.admin_queue:
        raise CommandError(Exit.USAGE, "--ack needs --admin-queue, to which the acknowledgments go")
    message = _message(arguments, _body(arguments))

    async def send(connection: Connection, _: argparse.Namespace) -> int:
        limit = connection.hello["max_message"]
        if len(message.body) + len(message.extension) > limit:
            raise CommandError(Exit.REFUSED, f"the message is larger than the {limit} bytes of a packet")
        return await _send(connection, arguments, message)

    return converse(send, arguments)


async def _send(connection: Connection, arguments: argparse.Namespace, message: Message) -> int:
    queue = await connection.open(arguments.name, Access.SEND)
    if arguments.count == 1:
        message_id = await queue.send(message, transaction=SINGLE_MESSAGE if arguments.xact else None)
        if arguments.json:
            show({"count": 1, "message_id": message_id}, as_json=True)
        else:
            print(message_id)
        return Exit.OK
    started = time.monotonic()
    if arguments.xact:
        async with connection.transaction() as transaction, queue.sender(transaction=transaction) as sender:
            await _repeat(sender, message, arguments.count)
    else:
        sender = queue.sender()
        try:
            async with sender:
                await _repeat(sender, message, arguments.count)
        except ConnectionLost as lost:
            raise CommandError(
                Exit.UNREACHABLE,
                f"{lost.detail}: {sender.acknowledged} of {arguments.count} messages had been acknowledged",
            ) from None
    elapsed = time.monotonic() - started
    rate = round(arguments.count / elapsed) if elapsed else 0
    if arguments.json:
        show({"count": arguments.count, "seconds": round(elapsed, 6), "rate": rate}, as_json=True)
    else:
        print(f"{arguments.count} messages in {elapsed:.3f} s, {rate}/s")
    return Exit.OK


async def _repeat(sender: Sender, message: Message, count: int) -> None:
    for _ in range(count):
        await sender.send(message)


def _body(arguments: argparse.Namespace) -> bytes:
    if arguments.file is not None:
        try:
            with Path(arguments.file).open("rb") as file:
                return _read(file, arguments.file)
        except OSError as error:
            raise CommandError(Exit.FAILURE, f"{arguments.file}: {error.strerror}") from None
    if arguments.stdin == "-":
        return _read(sys.stdin.buffer, "stdin")
    return (arguments.body or "").encode("utf-8", "surrogateescape")


def _read(file: BinaryIO, name: str) -> bytes:
    body = file.read(_READ_LIMIT + 1)
    if len(body) > _READ_LIMIT:
        raise CommandError(
            Exit.REFUSED, f"{name}: the body is larger than the {_READ_LIMIT} bytes of a packet"
        )
    return body


def _message(arguments: argparse.Namespace, body: bytes) -> Message:
    return Message(
        body=body,
        label=arguments.label,
        delivery=RECOVERABLE if arguments.recoverable else EXPRESS,
        priority=3 if arguments.priority is None else arguments.priority,
        body_type=arguments.body_type,
        app_specific=arguments.app_specific,
        correlation_id=arguments.correlation_id or _NO_CORRELATION,
        extension=arguments.extension,
        response_queue=arguments.response_queue,
        admin_queue=arguments.admin_queue,
        dead_letter_queue=arguments.dead_letter_queue,
        acknowledge=sum(_ACKNOWLEDGMENTS[word] for word in arguments.ack),
        journal=(_DEAD_LETTER if arguments.deadletter else 0) | (_JOURNAL if arguments.journal else 0),
        authentication=int(arguments.sign_version) if arguments.sign else 0,
        privacy_level=LEVELS.get(arguments.encrypt, 0),
        hash_algorithm=HASHES.get(arguments.hash, 0),
        certificate=arguments.certificate or b"",
        attach_sender=arguments.sender_id,
        time_to_reach_queue=_seconds(arguments.ttrq),
        time_to_be_received=_seconds(arguments.ttbr),
    )


def _seconds(value: float | None) -> int:
    return INFINITE if value is None else math.ceil(value)
