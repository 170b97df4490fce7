"""`msmq-fast completion`: prints the script that completes commands in a shell."""

from __future__ import annotations

import argparse
import sys

from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.completion import SHELLS, script
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def _run(arguments: argparse.Namespace) -> int:
    sys.stdout.write(script(arguments.shell, "msmq-fast"))
    return Exit.OK


COMMAND = Command(
    name="completion",
    help="print a script that completes commands in a shell",
    description="""Completes commands, options, their values, names of files and names of queues. Names of
        queues come from the server, if it answers within a second.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("bash > /etc/bash_completion.d/msmq-fast", "for all users of bash"),
        Example("zsh > /usr/local/share/zsh/site-functions/_msmq-fast", "for all users of zsh"),
        Example("fish > ~/.config/fish/completions/msmq-fast.fish", "for one user of fish"),
    ),
)
