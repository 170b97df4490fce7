"""`msmq-fast send`: sends a message once or many times."""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import BinaryIO

from msmq_fast.cli.messageid import correlation_id
from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.message import EXPRESS, RECOVERABLE, Message
from msmq_fast.client.sender import Sender
from msmq_fast.client.transaction import SINGLE_MESSAGE
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import INFINITE, Access
from msmq_fast.protocol.text import counted
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import duration, hexadecimal, number, queue_name

__all__ = ["COMMAND"]

_ACKNOWLEDGMENTS = {"reach": 1, "receive": 2, "nack-reach": 4, "nack-receive": 8}
_DEAD_LETTER, _JOURNAL = 1, 2
_LEVELS = {"base": 1, "enhanced": 3, "advanced": 5}
_HASHES = {
    "md2": 0x8001,
    "md4": 0x8002,
    "md5": 0x8003,
    "sha1": 0x8004,
    "sha256": 0x800C,
    "sha512": 0x800E,
}
_NO_CORRELATION = bytes(20)
_READ_LIMIT = 0x0040_0000  # of one message packet; no larger body can be sent


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "name",
        metavar="FORMATNAME",
        type=queue_name,
        help="queue to which the message is sent, or several separated by commas",
    )
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", metavar="TEXT", help="the body, as UTF-8")
    body.add_argument("--file", metavar="PATH", help="file that holds the body")
    body.add_argument("stdin", nargs="?", choices=["-"], help="read the body from stdin")
    _add_message(parser)
    _add_delivery(parser)
    _add_protection(parser)
    add_client(parser)


def _add_message(parser: Parser) -> None:
    group = parser.add_argument_group("message")
    group.add_argument("--label", default="", metavar="TEXT", help="label of the message")
    group.add_argument(
        "--priority", type=number(0, 7), metavar="0-7", help="priority, 7 is read first; default: 3"
    )
    group.add_argument(
        "--correlation-id",
        type=correlation_id,
        metavar="ID",
        help="identifier of the message that this one answers, or 40 hexadecimal digits",
    )
    group.add_argument(
        "--app-specific",
        type=number(0, 2**32 - 1),
        default=0,
        metavar="N",
        help="number whose meaning the applications define",
    )
    group.add_argument(
        "--body-type",
        type=number(0, 2**32 - 1),
        default=0,
        metavar="N",
        help="VARTYPE of the body; default: 0",
    )
    group.add_argument(
        "--extension",
        type=hexadecimal,
        default=b"",
        metavar="HEX",
        help="extension: bytes in addition to the body",
    )
    group.add_argument(
        "--response-queue", metavar="F", help="queue for answers, or several separated by commas"
    )


def _add_delivery(parser: Parser) -> None:
    group = parser.add_argument_group("delivery")
    group.add_argument(
        "--recoverable", action="store_true", help="keep the message on disk, so that it survives a restart"
    )
    group.add_argument(
        "--transaction",
        "--xact",
        dest="xact",
        action="store_true",
        help="send all messages in one transaction",
    )
    group.add_argument(
        "--count", type=number(1, 100_000_000), default=1, metavar="N", help="send the message N times"
    )
    group.add_argument(
        "--ttrq",
        type=duration(),
        metavar="TIME",
        help="maximum time until the message reaches the queue, such as 1h",
    )
    group.add_argument(
        "--ttbr", type=duration(), metavar="TIME", help="maximum time until a program receives the message"
    )
    group.add_argument("--journal", action="store_true", help="keep a copy in the journal of this computer")
    group.add_argument(
        "--dead-letter",
        "--deadletter",
        dest="deadletter",
        action="store_true",
        help="put the message into the dead-letter queue if it is not delivered",
    )
    group.add_argument(
        "--dead-letter-queue", metavar="NAME", help="local queue to use as the dead-letter queue"
    )
    group.add_argument("--admin-queue", metavar="F", help="queue for acknowledgments")
    group.add_argument(
        "--ack",
        type=_acknowledgments,
        default=frozenset(),
        metavar="A,…",
        help=f"acknowledgments to ask for: {', '.join(_ACKNOWLEDGMENTS)}",
    )


def _add_protection(parser: Parser) -> None:
    group = parser.add_argument_group("protection")
    group.add_argument(
        "--sign", action="store_true", help="sign the message with a certificate of the caller"
    )
    group.add_argument(
        "--sign-version",
        choices=["1", "2"],
        default="2",
        help="signature in the format of MSMQ 1.0 or 2.0; default: 2",
    )
    group.add_argument(
        "--certificate",
        type=_digest,
        metavar="DIGEST",
        help="MD5 digest of the certificate; default: the internal certificate",
    )
    group.add_argument("--hash", choices=list(_HASHES), help="hash algorithm of the signature")
    group.add_argument(
        "--encrypt",
        nargs="?",
        const="advanced",
        choices=list(_LEVELS),
        help="encrypt the body at least at this level, given as --encrypt=LEVEL; --encrypt alone: advanced",
    )
    group.add_argument(
        "--sender-id", action="store_true", help="attach the SID of the caller, also to an unsigned message"
    )


def _acknowledgments(text: str) -> frozenset[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in _ACKNOWLEDGMENTS:
            raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(_ACKNOWLEDGMENTS)}")
    return frozenset(words)


def _digest(text: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != 16:
        raise argparse.ArgumentTypeError("expected the MD5 digest of a certificate: 32 hexadecimal digits")
    return value


def _run(arguments: argparse.Namespace) -> int:
    if arguments.ack and not arguments.admin_queue:
        raise CommandError(Exit.USAGE, "--ack needs --admin-queue, to which the acknowledgments go")
    if arguments.admin_queue and not arguments.ack:
        print("msmq-fast send: --admin-queue has no effect without --ack", file=sys.stderr)
    message = _message(arguments, _body(arguments))

    async def send(connection: Connection, _: argparse.Namespace) -> int:
        limit = connection.hello["max_message"]
        if len(message.body) + len(message.extension) > limit:
            raise CommandError(
                Exit.REFUSED, f"the message is too large: body and extension may have at most {limit} bytes"
            )
        return await _send(connection, arguments, message)

    return converse(send, arguments)


async def _send(connection: Connection, arguments: argparse.Namespace, message: Message) -> int:
    queue = await connection.open(arguments.name, Access.SEND)
    if arguments.count == 1:
        message_id = await queue.send(message, transaction=SINGLE_MESSAGE if arguments.xact else None)
        if arguments.form is Form.JSON:
            show({"count": 1, "message_id": message_id}, arguments.form)
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
                f"{lost.detail}: {sender.acknowledged} of {counted(arguments.count, 'message')} had been "
                "acknowledged",
            ) from None
    elapsed = time.monotonic() - started
    rate = round(arguments.count / elapsed) if elapsed else 0
    if arguments.form is Form.TABLE:
        print(f"{counted(arguments.count, 'message')} in {elapsed:.3f} s, {rate}/s")
    else:
        show({"count": arguments.count, "seconds": round(elapsed, 6), "rate": rate}, arguments.form)
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
        privacy_level=_LEVELS.get(arguments.encrypt, 0),
        hash_algorithm=_HASHES.get(arguments.hash, 0),
        certificate=arguments.certificate or b"",
        attach_sender=arguments.sender_id,
        time_to_reach_queue=_seconds(arguments.ttrq),
        time_to_be_received=_seconds(arguments.ttbr),
    )


def _seconds(value: float | None) -> int:
    return INFINITE if value is None else math.ceil(value)


COMMAND = Command(
    name="send",
    help="send a message once or many times",
    description="""Prints the identifier of the message. Without --recoverable the message is kept in
        memory only and does not survive a restart. Without a body option the body is empty.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("orders --body '<order/>' --label 'order 1' --recoverable", "to a queue of this computer"),
        Example(
            r"'DIRECT=OS:orders01\private$\orders' --file order.xml --dead-letter", "to another computer"
        ),
        Example("cat order.xml | {prog} orders -", "the body from stdin"),
        Example("payments --body x --transaction --count 1000", "all in one transaction"),
        Example(
            "orders --body x --ttrq 10m --ack reach,nack-reach --admin-queue acks", "with acknowledgments"
        ),
    ),
)
