"""One connection for one command. Errors of the queue manager become an exit code and one line."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msmq_fast.cli.endpoint import endpoint
from msmq_fast.client.connection import Connection, connect
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.protocol.errors import IOTimeout, MessageNotFound, MSMQError, QueueNotFound
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.output import add_output

if TYPE_CHECKING:
    import ssl

__all__ = ["TOKEN_VARIABLE", "add_client", "connect_to", "connected", "converse", "exit_of"]

TOKEN_VARIABLE = "MSMQ_FAST_TOKEN"  # noqa: S105 - a name
TOKEN_FILE_VARIABLE = "MSMQ_FAST_TOKEN_FILE"  # noqa: S105 - a name

Verb = Callable[[Connection, argparse.Namespace], Awaitable[int]]


def add_client(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that talks to a server, including those for its output."""
    add_output(parser)
    group = parser.add_argument_group("connection")
    group.add_argument(
        "--endpoint",
        metavar="ADDR",
        help="unix:PATH, tcp://HOST:PORT or tls://HOST:PORT; default: the socket in --data, else "
        "MSMQ_FAST_ENDPOINT, else the socket of the configured data directory",
    )
    group.add_argument("--data", metavar="DIR", help="connect to the server of this data directory")
    group.add_argument(
        "--ca-file", metavar="FILE", help="file with the certificates to trust for tls:// (PEM)"
    )
    group.add_argument(
        "--token-file",
        metavar="FILE",
        help="file that contains the token; default: the token in the environment variable MSMQ_FAST_TOKEN",
    )


def exit_of(error: MSMQError) -> Exit:
    """Return the exit code for an error of the queue manager."""
    if isinstance(error, ConnectionLost):
        return Exit.UNREACHABLE
    if isinstance(error, QueueNotFound | MessageNotFound):
        return Exit.NOT_FOUND
    if isinstance(error, IOTimeout):
        return Exit.EMPTY
    return Exit.REFUSED


def connected(verb: Verb) -> Callable[[argparse.Namespace], int]:
    """Return a `run` function for a command. It connects to the server, runs `verb` over this connection, and
    returns the exit code of `verb` (see `converse`).
    """
    return lambda arguments: converse(verb, arguments)


def converse(verb: Verb, arguments: argparse.Namespace, timeout: float | None = None) -> int:
    """Connect to the server, run `verb` and close the connection, all within `timeout` seconds (None: without
    limit). Returns the exit code of `verb`. Raises CommandError for every expected failure.
    """
    address = endpoint(arguments)

    async def run() -> int:
        async with await connect_to(address, arguments) as connection:
            return await verb(connection, arguments)

    async def run_in_time() -> int:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await run()
        except TimeoutError:
            if not limit.expired():
                raise
            raise CommandError(Exit.UNREACHABLE, f"{address}: no answer within {timeout:g} s") from None

    try:
        return asyncio.run(run_in_time())
    except ConnectionLost as error:
        raise CommandError(Exit.UNREACHABLE, error.detail or str(error)) from None
    except MSMQError as error:
        raise CommandError(exit_of(error), str(error)) from None
    except ValueError as error:
        raise CommandError(Exit.USAGE, str(error)) from None


async def connect_to(address: str | None, arguments: argparse.Namespace) -> Connection:
    """Connect to a server with the token and the certificates that the command line gives. Raises
    CommandError if nothing listens there or a file cannot be read, and what `connect` raises.
    """
    token, tls = _token(arguments.token_file), _trust(arguments.ca_file)
    try:
        return await connect(address, token=token, tls=tls, client=f"msmq-fast {arguments.command}")
    except ConnectionLost:  # an OSError, too, whose text is complete
        raise
    except OSError as error:
        raise CommandError(Exit.UNREACHABLE, f"{address}: {error.strerror or error}") from None


def _token(chosen: str | None) -> str | None:
    """Return the token: from the file `chosen`; else from the environment variable MSMQ_FAST_TOKEN; else from
    the file that MSMQ_FAST_TOKEN_FILE names; else None. Raises CommandError if the file cannot be read.
    """
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
    """Return a TLS context that trusts the certificates in `file`; None, which means the system's
    certificates, if `file` is None.
    """
    if file is None:
        return None
    import ssl  # most commands talk over a Unix socket

    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # ssl.SSLError is one
        raise CommandError(
            Exit.USAGE, f"{file}: not a file of PEM certificates: {error.strerror or error}"
        ) from None
