"""`msmq-fast config`: checks and shows the configuration; no server has to run."""

from __future__ import annotations

import argparse
import sys

from msmq_fast.cli.endpoint import configuration
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import add_output, show
from msmq_fast.terminal.parser import Parser

__all__ = ["CHECK", "COMMAND"]


def _add_check(parser: Parser) -> None:
    parser.add_argument("config", nargs="?", metavar="FILE", help="configuration file (TOML)")
    parser.add_argument("--config", dest="config_flag", metavar="FILE", help="the same as FILE")
    add_output(parser)


def _check(arguments: argparse.Namespace) -> int:
    config = configuration(arguments.config_flag or arguments.config, {})
    for warning in config.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    show(
        {
            "config": config.source,
            "profile": config.security.profile,
            "name": config.name,
            "data": str(config.data),
            "port": config.listen.mqqb.port,
            "queues": [queue.name for queue in config.queues],
            "users": [user.name for user in config.users],
        },
        arguments.form,
    )
    return Exit.OK


CHECK = Command(
    name="check",
    help="read a configuration and explain its mistakes",
    description="""Reads the file and the environment variables as `serve` would. Prints every mistake
        with its line and exits with 2, or prints what would be in force.""",
    run=_check,
    add_arguments=_add_check,
    examples=(Example("/etc/msmq-fast.toml", "before a restart"),),
)

COMMAND = Group(
    name="config",
    help="check the configuration",
    commands=members(CHECK),
)
