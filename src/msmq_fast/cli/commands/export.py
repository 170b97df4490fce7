"""`msmq-fast export`: writes the messages of queues into a file and leaves them in their queues."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from msmq_fast.cli.exportfile import ExportWriter, Header, Section
from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.errors import AccessDenied, UnsupportedAccessMode
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access
from msmq_fast.protocol.text import counted
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]

_OUTGOING = "outgoing"


@dataclass(slots=True)
class _Counts:
    queues: int = 0
    messages: int = 0
    size: int = 0
    locked: int = 0


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="QUEUE", type=queue_name, help="queues to export")
    parser.add_argument("--all", action="store_true", help="export all user and system queues")
    parser.add_argument(
        "--format",
        choices=("msgpack", "jsonl"),
        default="msgpack",
        help="format of the file; default: msgpack",
    )
    parser.add_argument("--output", default="-", metavar="FILE", help="file to write; - for stdout (default)")
    add_client(parser)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.all == bool(arguments.names):
        raise CommandError(Exit.USAGE, "no queue given: name the queues to export, or give --all")
    if arguments.output == "-":
        if arguments.format == "msgpack" and sys.stdout.isatty():
            raise CommandError(Exit.USAGE, "a terminal cannot show msgpack: give --output FILE")
        if arguments.form is not Form.TABLE:
            raise CommandError(
                Exit.USAGE, "-o and --json need --output FILE: without it, the messages go to stdout"
            )
        return converse(lambda connection, _: _export(connection, arguments, sys.stdout.buffer), arguments)
    path = Path(arguments.output)
    # Under its own name only when it is whole: what is left of an interrupted export is no export.
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            code = converse(lambda connection, _: _export(connection, arguments, file), arguments)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{error.filename or path}: {error.strerror}") from None
    except CommandError:
        with suppress(OSError):
            part.unlink()
        raise
    return code


async def _export(connection: Connection, arguments: argparse.Namespace, file: BinaryIO) -> int:
    queues = await _queues(connection, arguments)
    writer = ExportWriter(file, arguments.format)
    writer.header(
        Header(
            str(connection.guid),
            connection.computer_name,
            str(connection.hello["server"]),
            int(time.time()),
            secrets.token_bytes(16),
        )
    )
    counts = _Counts()
    with Progress("export", sum(int(queue["messages"]) for queue in queues)) as progress:
        for queue in queues:
            await _export_queue(connection, queue, writer, counts, progress, everything=arguments.all)
    end = writer.end()
    if arguments.output != "-":
        summary = {
            "exported": end.messages,
            "queues": end.queues,
            "bytes": end.size,
            "locked": counts.locked,
            "file": arguments.output,
            "seconds": round(progress.seconds, 3),
        }
        show(summary, arguments.form)
    if counts.locked:
        print(
            f"msmq-fast export: {counted(counts.locked, 'message is', 'messages are')} held by readers or "
            "transactions: not exported",
            file=sys.stderr,
        )
    return Exit.OK


async def _queues(connection: Connection, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    if arguments.all:
        every = [
            queue.as_map() for queue in await connection.admin.queues.all("all") if queue.kind != _OUTGOING
        ]
        return sorted(every, key=lambda queue: str(queue["name"]).casefold())
    queues = [(await connection.admin.queues.get(name)).as_map() for name in arguments.names]
    for queue in queues:
        if queue["kind"] == _OUTGOING:
            raise CommandError(Exit.REFUSED, f"{queue['name']}: outgoing queues are not exported")
    return queues


async def _export_queue(
    connection: Connection,
    definition: dict[str, Any],
    writer: ExportWriter,
    counts: _Counts,
    progress: Progress,
    *,
    everything: bool,
) -> None:
    try:
        queue = await connection.open(definition["name"], Access.PEEK)
    except UnsupportedAccessMode:
        if everything:
            return  # an internal queue of the queue manager
        raise
    except AccessDenied as error:
        raise CommandError(Exit.REFUSED, f"{definition['name']}: {error}") from None
    writer.section(Section(str(definition["name"]), definition))
    after = upto = 0
    locked = 0
    finished = False
    while not finished:
        page = await connection.admin.messages.browse(queue, after=after, upto=upto)
        for message in page.messages:
            writer.message(message)
        after, upto, finished, locked = page.next, page.upto, page.finished, page.locked
        progress.add(len(page.messages))
    counts.locked += locked
    await queue.close()


COMMAND = Command(
    name="export",
    help="write the messages of queues into a file",
    description="""The messages stay in their queues. Messages that a reader or a transaction has locked
        are not exported; their number is reported. A file appears under its name only when it is
        complete.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("orders --output orders.msgs", "the messages of one queue"),
        Example("--all --format jsonl | gzip > queues.jsonl.gz", "all queues, as JSON lines"),
    ),
)
