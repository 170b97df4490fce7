"""`msmq-fast stats`: shows the counters of the running server."""

from __future__ import annotations

import argparse

from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show

__all__ = ["COMMAND"]


async def _stats(connection: Connection, arguments: argparse.Namespace) -> int:
    show(await connection.admin.stats(), arguments.form)
    return Exit.OK


COMMAND = Command(
    name="stats",
    help="show the counters of the running server",
    run=connected(_stats),
    add_arguments=add_client,
    examples=(
        Example("", "all counters, one a line"),
        Example("{prog} --json | jq .messages", "one of them, for a script"),
    ),
)
