"""Asks for confirmation at a terminal before messages are deleted."""

from __future__ import annotations

import argparse
import sys

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.text import counted, printable
from msmq_fast.terminal.parser import Parser

__all__ = ["add_yes", "asks", "confirm"]


def add_yes(parser: Parser) -> None:
    """Add `--yes`."""
    parser.add_argument(
        "--yes",
        "-y",
        action="store_true",
        help="do not ask for confirmation; without a terminal the command never asks",
    )


def asks(arguments: argparse.Namespace) -> bool:
    """Return whether the command asks: only on a terminal and without `--yes`, since a question would block a
    script.
    """
    return not arguments.yes and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(what: str, messages: int) -> None:
    """Ask whether to do `what`, which deletes `messages` messages. Asks nothing if `messages` is 0.

    Raises CommandError if the answer is not yes.
    """
    if not messages:
        return
    sys.stderr.write(f"{printable(what)} with {counted(messages, 'message')}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(Exit.FAILURE, "not confirmed: nothing was changed")
