"""The verb `snapshot`: the server copies its store while it runs."""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from pathlib import Path

from msmq_fast.cli.session import converse, show
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.progress import Progress

__all__ = ["run_snapshot"]

_LOOK = 0.2  # seconds between two looks how far it is


def run_snapshot(arguments: argparse.Namespace) -> int:
    """`msmq-fast snapshot DIR`."""
    target = str(Path(arguments.target).absolute())
    return converse(partial(_snapshot, target), arguments)


async def _snapshot(target: str, connection: Connection, arguments: argparse.Namespace) -> int:
    making = asyncio.ensure_future(connection.snapshot(target, arguments.rate))
    try:
        with Progress("snapshot", 0) as progress:
            while not (await asyncio.wait({making}, timeout=_LOOK))[0]:
                far = await connection.snapshot_progress()
                if far is not None:
                    progress.total = far[1]
                    progress.add(far[0] - progress.count)
            manifest = making.result()
            progress.add(manifest["size"] - progress.count)
    finally:
        making.cancel()
    shown = {
        "snapshot": target,
        "bytes": manifest["size"],
        "incarnation": manifest["incarnation"],
        "feed_next": manifest["feed_next"],
        "seconds": round(progress.seconds, 3),
    }
    show(shown, as_json=arguments.json)
    return Exit.OK
