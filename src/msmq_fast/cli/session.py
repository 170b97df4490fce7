"""One connection for one verb; what the queue manager refuses becomes an exit code and a line."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msmq_fast.cli.endpoint import endpoint
from msmq_fast.client.connection import Connection, connect
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.protocol.errors import IOTimeout, MessageNotFound, MSMQError, QueueNotFound
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.text import printable

__all__ = ["TOKEN_VARIABLE", "converse", "exit_of", "show", "show_table"]

TOKEN_VARIABLE = "MSMQ_FAST_TOKEN"  # noqa: S105 - a name
TOKEN_FILE_VARIABLE = "MSMQ_FAST_TOKEN_FILE"  # noqa: S105 - a name

_TIMES = frozenset(  # values in Unix seconds, 0 for none: people see the time of day, programs the number
    ("arrived", "began", "created", "last_ack_time", "modified", "next_attempt", "resend_time", "time")
)

Verb = Callable[[Connection, argparse.Namespace], Awaitable[int]]


def exit_of(error: MSMQError) -> Exit:
    """The exit code for a refusal."""
    if isinstance(error, ConnectionLost):
        return Exit.UNREACHABLE
    if isinstance(error, QueueNotFound | MessageNotFound):
        return Exit.NOT_FOUND
    if isinstance(error, IOTimeout):
        return Exit.EMPTY
    return Exit.REFUSED


def converse(verb: Verb, arguments: argparse.Namespace) -> int:
    """Connect, run `verb`, close. Raises CommandError for every expected failure."""
    address = endpoint(arguments)
    token, tls = _token(arguments.token_file), _trust(arguments.ca_file)

    async def run() -> int:
        try:
            connection = await connect(address, token=token, tls=tls, client=f"msmq-fast {arguments.verb}")
        except ConnectionLost:  # an OSError, too, whose text is complete
            raise
        except OSError as error:
            raise CommandError(Exit.UNREACHABLE, f"{address}: {error.strerror or error}") from None
        async with connection:
            return await verb(connection, arguments)

    try:
        return asyncio.run(run())
    except ConnectionLost as error:
        raise CommandError(Exit.UNREACHABLE, error.detail or str(error)) from None
    except MSMQError as error:
        raise CommandError(exit_of(error), str(error)) from None
    except ValueError as error:
        raise CommandError(Exit.USAGE, str(error)) from None


def _token(chosen: str | None) -> str | None:
    """The token in the file `chosen`; else MSMQ_FAST_TOKEN, else that in the file of MSMQ_FAST_TOKEN_FILE."""
    token = os.environ.get(TOKEN_VARIABLE)
    file = chosen or os.environ.get(TOKEN_FILE_VARIABLE)
    if chosen is None and token:
        return token
    if not file:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{file}: {error.strerror}") from None


def _trust(file: str | None) -> ssl.SSLContext | None:
    """What verifies the server: the certificates in `file`, None for those of the system."""
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # ssl.SSLError is one
        raise CommandError(
            Exit.USAGE, f"{file}: no certificates in PEM form: {error.strerror or error}"
        ) from None


def show(content: Mapping[str, Any], *, as_json: bool) -> None:
    """One object: a JSON line, or one `key: value` a line."""
    if as_json:
        sys.stdout.write(json.dumps(content, default=str) + "\n")
        return
    width = max((len(key) for key in content), default=0)
    for key, value in content.items():
        print(f"{key + ':':{width + 1}} {_printable(key, value)}")


def show_table(rows: list[dict[str, Any]], columns: tuple[str, ...], *, as_json: bool) -> None:
    """Objects: a JSON line each, or a table of `columns`."""
    if as_json:
        for row in rows:
            sys.stdout.write(json.dumps(row, default=str) + "\n")
        return
    cells = [[column.upper() for column in columns]]
    cells += [[_printable(column, row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _printable(key: str, value: object) -> str:
    """Text for a terminal: what another host wrote into a name or label must not move the cursor."""
    if key in _TIMES and isinstance(value, int):
        return datetime.fromtimestamp(value, UTC).isoformat() if value else ""
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return printable(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))
