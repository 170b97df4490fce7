"""`msmq-fast help`: shows the help page of a command, or writes man pages of all commands."""

from __future__ import annotations

import argparse
from pathlib import Path

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example, Group, parse
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--man",
        metavar="DIR",
        help="write the man pages of all commands into this directory instead of showing help",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="COMMAND",
        help="name of the command, such as `queue create`; default: the list of all commands",
    )


def _run(arguments: argparse.Namespace) -> int:
    # Imported late: the tree names this module.
    from msmq_fast.cli.tree import ROOT

    if arguments.man is not None:
        return _write_man_pages(ROOT, Path(arguments.man))
    parse(ROOT, [*arguments.words, "--help"])
    raise AssertionError("parse() returned although --help was given")


def _write_man_pages(root: Group, directory: Path) -> int:
    from msmq_fast.release import release
    from msmq_fast.terminal.manpages import man_pages

    count = 0
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in man_pages(root, release()):
            (directory / name).write_text(text, encoding="utf-8")
            count += 1
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{error.filename or directory}: {error.strerror}") from None
    print(f"{count} pages in {directory}")
    return Exit.OK


COMMAND = Command(
    name="help",
    help="show the help page of a command",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("", "the list of commands"),
        Example("queue create", "the help page of `queue create`"),
        Example("--man /usr/local/share/man/man1", "man pages: `man msmq-fast-queue-create`"),
    ),
)
