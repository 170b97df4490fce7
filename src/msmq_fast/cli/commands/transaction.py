"""The verb `transaction`."""

from __future__ import annotations

import argparse

from msmq_fast.cli.session import converse, show, show_table
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit

__all__ = ["run_transaction"]

_COLUMNS = ("identifier", "state", "user", "began", "sent", "received", "moved")


def run_transaction(arguments: argparse.Namespace) -> int:
    """`msmq-fast transaction`."""
    return converse(_list if arguments.action == "list" else _end, arguments)


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    show_table(await connection.transactions(), _COLUMNS, as_json=arguments.json)
    return Exit.OK


async def _end(connection: Connection, arguments: argparse.Namespace) -> int:
    commit = arguments.action == "commit"
    await connection.end_transaction(arguments.identifier, commit=commit)
    done = {"identifier": arguments.identifier, "state": "committed" if commit else "aborted"}
    show(done, as_json=arguments.json)
    return Exit.OK
