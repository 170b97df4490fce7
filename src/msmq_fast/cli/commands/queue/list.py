"""`msmq-fast queue list`."""

from __future__ import annotations

import argparse

from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show_table

__all__ = ["COMMAND"]

_COLUMNS = ("name", "messages", "bytes", "transactional", "label")


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    queues = sorted(await connection.queues(), key=lambda queue: str(queue["name"]).lower())
    show_table(queues, _COLUMNS, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="list",
    help="list all queues",
    run=connected(_list),
    add_arguments=add_client,
    examples=(
        Example("", "a table"),
        Example("-o raw | cut -f1", "the names only"),
    ),
)
