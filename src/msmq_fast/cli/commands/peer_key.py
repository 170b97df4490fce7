"""`msmq-fast peer-key`: manages the public keys that encrypt messages."""

from __future__ import annotations

import argparse
import json
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import Any

from msmq_fast.cli.inputs import read_input
from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, show, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND", "FORMER"]

_COLUMNS = ("queue manager", "own", "provider", "bits")
_LARGEST = 1 << 20  # bytes of a file with keys


def _add_show(parser: Parser) -> None:
    parser.add_argument("--own", action="store_true", help="only the keys of this queue manager")
    add_client(parser)


def _add_import(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="output of `peer-key list --json`; - for stdin")
    parser.add_argument(
        "--guid",
        metavar="GUID",
        help="GUID of the queue manager, if the file contains only its MQDSPUBLICKEYS structure",
    )
    add_client(parser)


def _add_forget(parser: Parser) -> None:
    parser.add_argument("guid", metavar="GUID", help="GUID of the other queue manager")
    add_client(parser)


async def _show(connection: Connection, arguments: argparse.Namespace) -> int:
    rows = [row.as_map() for row in await connection.admin.keys.all() if row.own or not arguments.own]
    _show_keys(rows, arguments.form)
    return Exit.OK


async def _import(connection: Connection, arguments: argparse.Namespace) -> int:
    for guid, blob in _imported(read_input(arguments.file, _LARGEST), arguments.guid):
        await connection.admin.keys.add(guid, blob)
        show({"imported": guid}, arguments.form)
    return Exit.OK


async def _forget(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.keys.remove(arguments.guid)
    show({"forgotten": arguments.guid}, arguments.form)
    return Exit.OK


def _show_keys(rows: list[dict[str, Any]], form: Form) -> None:
    if form is Form.JSON:
        for row in rows:
            blob = b64encode(row["blob"]).decode()
            content = {"guid": row["guid"], "own": row["own"], "keys": row["keys"], "blob_b64": blob}
            sys.stdout.write(json.dumps(content) + "\n")
        return
    table = [
        {"queue manager": row["guid"], "own": row["own"], "provider": key["provider"], "bits": key["bits"]}
        for row in rows
        for key in row["keys"]
    ]
    show_table(table, _COLUMNS, form)


def _imported(content: bytes, guid: str | None) -> list[tuple[str, bytes]]:
    """Return pairs (GUID of a queue manager, its keys as an MQDSPUBLICKEYS structure).

    `content` is the output of `peer-key list --json` on another queue manager, of which only that queue
    manager's own keys are returned; or, if `guid` is given, the structure itself.
    """
    if guid:
        return [(guid, content)]
    try:
        rows = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
        return [(row["guid"], b64decode(row["blob_b64"], validate=True)) for row in rows if row["own"]]
    except (ValueError, KeyError, TypeError):
        raise CommandError(
            Exit.USAGE,
            "the input is not the output of `peer-key list --json`; "
            "for an MQDSPUBLICKEYS structure give --guid",
        ) from None


_LIST = Command(
    name="list",
    help="list the public keys of this queue manager, and those that were added",
    run=connected(_show),
    add_arguments=_add_show,
    examples=(Example("--own --json > orders01.keys", "writes a file for `peer-key add` on another host"),),
)
_ADD = Command(
    name="add",
    help="add the public keys of another queue manager",
    run=connected(_import),
    add_arguments=_add_import,
    examples=(Example("orders01.keys", "afterwards, messages to that queue manager can be encrypted"),),
)
_REMOVE = Command(
    name="remove",
    help="remove keys that were added",
    run=connected(_forget),
    add_arguments=_add_forget,
    examples=(Example("43cd8907-394c-8f11-4445-9078909ea0fc", "removes the keys of that queue manager"),),
)

COMMAND = Group(
    name="peer-key",
    help="manage the public keys that encrypt messages",
    commands=members(_LIST, _ADD, _REMOVE),
)
FORMER = Group(
    name="key",
    help=COMMAND.help,
    commands=members(
        replace(_LIST, name="show"), replace(_ADD, name="import"), replace(_REMOVE, name="forget")
    ),
    hidden=True,
)
"""The former names of these commands."""
