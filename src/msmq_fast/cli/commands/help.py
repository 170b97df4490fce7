"""`msmq-fast help`: the help page of a command."""

from __future__ import annotations

import argparse

from msmq_fast.terminal.commands import Command, Example, parse
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="COMMAND", help="words of the command; none: all commands"
    )


def _run(arguments: argparse.Namespace) -> int:
    # Imported late: the tree names this module.
    from msmq_fast.cli.tree import ROOT

    parse(ROOT, [*arguments.words, "--help"])
    raise AssertionError("--help ends the command")


COMMAND = Command(
    name="help",
    help="show the help page of a command",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("", "the list of commands"),
        Example("queue create", "the help page of `queue create`"),
    ),
)
