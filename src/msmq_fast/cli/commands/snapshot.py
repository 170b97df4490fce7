"""`msmq-fast snapshot`, the former name of `backup create`: makes a running server copy its store."""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from pathlib import Path

from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.store.objects.urls import is_url
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import rate

__all__ = ["COMMAND", "add_snapshot", "snapshot"]

_LOOK = 0.2  # seconds between two looks how far it is


def add_snapshot(parser: Parser) -> None:
    """Add the target and the options of a copy that the server makes."""
    parser.add_argument(
        "target",
        metavar="DIR",
        nargs="?",
        help="directory for the copy, on the server's machine; must not exist; without it, the copy goes to "
        "the server's object storage (`backup.url`)",
    )
    parser.add_argument(
        "--rate", type=rate, metavar="RATE", help="read at most this much per second, such as 50MiB/s"
    )
    add_client(parser)


def snapshot(arguments: argparse.Namespace, key: str = "snapshot") -> int:
    """Let the server copy its store, and print the result. In the result, the entry `key` is the path of the
    copy.
    """
    if arguments.target is not None and is_url(arguments.target):
        raise CommandError(
            Exit.USAGE,
            "the server uploads to the URL of its own configuration (backup.url): leave the URL out, or copy "
            "into a directory and use `msmq-fast backup push`",
        )
    target = None if arguments.target is None else str(Path(arguments.target).absolute())
    return converse(partial(_snapshot, target, key), arguments)


async def _snapshot(
    target: str | None, key: str, connection: Connection, arguments: argparse.Namespace
) -> int:
    making = asyncio.ensure_future(connection.admin.snapshot(target, arguments.rate))
    try:
        with Progress("snapshot", 0) as progress:
            while not (await asyncio.wait({making}, timeout=_LOOK))[0]:
                far = await connection.admin.snapshot_progress()
                if far is not None:
                    progress.total = far[1]
                    progress.add(far[0] - progress.count)
            manifest = making.result()
            progress.add(manifest.size - progress.count)
    finally:
        making.cancel()
    shown = {
        key: target or manifest.url,
        "bytes": manifest.size,
        "incarnation": manifest.incarnation,
        "feed_next": manifest.feed_next,
        "seconds": round(progress.seconds, 3),
    }
    show(shown, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="snapshot",
    help="make the server copy its store while it runs",
    description="""The server writes a consistent copy of its store into a new directory on its own
        machine. Messages keep flowing. `msmq-fast backup restore` makes a data directory from the copy.""",
    run=snapshot,
    add_arguments=add_snapshot,
    hidden=True,
    examples=(
        Example("/backup/msmq-monday", "a copy as fast as the disk allows"),
        Example(
            "/backup/msmq-monday --rate 50MiB/s", "a slower copy that leaves disk bandwidth for messages"
        ),
    ),
)
