"""Repeats a command and shows its output: on a redrawn screen, or one output after another in a pipe."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from io import StringIO

from msmq_fast.cli.reading import ENDLESS
from msmq_fast.cli.session import converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.output import Form
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import duration

__all__ = ["Look", "add_interval", "add_watch", "repeat", "watchable"]

Look = Callable[[Connection, argparse.Namespace], Awaitable[int]]

_SHORTEST = 0.1  # seconds between two looks
_INTERVAL = 2.0  # seconds
_ENTER, _LEAVE = "\x1b[?1049h", "\x1b[?1049l"  # the second screen of a terminal
_HOME = "\x1b[H\x1b[J"


class _Page(StringIO):
    """Collects the output of one call of `look`. It claims to be a terminal, so that `look` formats its
    output for one.
    """

    def isatty(self) -> bool:
        return True


def add_interval(parser: Parser) -> None:
    """Add `--interval`."""
    parser.add_argument(
        "--interval", type=duration(86_400), metavar="TIME", help="time between two samples; default: 2s"
    )


def add_watch(parser: Parser) -> None:
    """Add `--watch` and `--interval`."""
    parser.add_argument(
        "--watch", action="store_true", help="repeat the output until Ctrl+C is pressed, like top"
    )
    add_interval(parser)


def watchable(look: Look) -> Callable[[argparse.Namespace], int]:
    """Return a `run` function for a command with the options of `add_watch`; `look` prints the command's
    output once.
    """

    async def watch(connection: Connection, arguments: argparse.Namespace) -> int:
        if arguments.watch:
            return await repeat(look, connection, arguments, ENDLESS)
        return await look(connection, arguments)

    def run(arguments: argparse.Namespace) -> int:
        if arguments.interval is not None and not arguments.watch:
            raise CommandError(Exit.USAGE, "--interval needs --watch")
        return converse(watch, arguments)

    return run


async def repeat(look: Look, connection: Connection, arguments: argparse.Namespace, count: int) -> int:
    """Call `look`, which prints its output, `count` times at intervals of `--interval`."""
    screen = arguments.form is Form.TABLE and sys.stdout.isatty()
    interval = max(_SHORTEST, _INTERVAL if arguments.interval is None else arguments.interval)
    sys.stdout.write(_ENTER if screen else "")
    try:
        for number in range(count):
            if number:
                await asyncio.sleep(interval)
            if screen:
                page = _Page()
                with redirect_stdout(page):
                    await look(connection, arguments)
                lines = page.getvalue().splitlines()[: os.get_terminal_size(sys.stdout.fileno()).lines - 1]
                sys.stdout.write(_HOME + "\n".join(lines) + "\n")
            else:
                await look(connection, arguments)
            sys.stdout.flush()
    finally:
        sys.stdout.write(_LEAVE if screen else "")
    return Exit.OK
