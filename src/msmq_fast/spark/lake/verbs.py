"""What all commands of the lake have in common: --verbose, --quiet and --lineage, and progress in lines."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import session
from msmq_fast.spark.lake.lineage import Lineage, lineage_of, lineage_target
from msmq_fast.terminal.commands import Command, Modules, Node
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Heartbeat

__all__ = ["Verbs"]


class Verbs(Modules):
    """The commands of the lake, each with what all of them have in common."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        super().__init__(modules)
        self._made: dict[str, Node] = {}

    def __getitem__(self, name: str) -> Node:
        if name not in self._made:
            command = super().__getitem__(name)
            if not isinstance(command, Command):
                raise TypeError(f"{name} is a group")
            self._made[name] = replace(
                command, add_arguments=_with_options(command.add_arguments), run=_observed(command.run)
            )
        return self._made[name]


def _with_options(add_arguments: Callable[[Parser], None]) -> Callable[[Parser], None]:
    def add(parser: Parser) -> None:
        add_arguments(parser)
        group = parser.add_argument_group("reporting")
        group.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            help="show what Spark and Java write, and the traceback of an error",
        )
        group.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            help="no progress; default: a bar on a terminal, otherwise a line every 30 s",
        )
        group.add_argument(
            "--lineage",
            type=lineage_target,
            metavar="URL|FILE",
            help="post OpenLineage events about this run to an HTTP service, or append them to a file",
        )

    return add


def _observed(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Wrap the function of a command, so that it shows its progress in lines if stderr is not a terminal,
    with --verbose the causes of its failure, and with --lineage reports its begin and its end.
    """

    def observed(arguments: argparse.Namespace) -> int:
        token = session.VERBOSE.set(arguments.verbose)
        verb = arguments.command.split()[-1]
        try:
            with Heartbeat(f"msmq-lake {verb}", quiet=arguments.quiet):
                return _reported(lineage_of(verb, arguments), lambda: run(arguments))
        except CommandError as error:
            if arguments.verbose and error.__cause__ is not None:
                traceback.print_exception(error.__cause__, file=sys.stderr)
            raise
        finally:
            session.VERBOSE.reset(token)

    return observed


def _reported(lineage: Lineage | None, run: Callable[[], int]) -> int:
    """Run a command and report its begin and its end, if `lineage` is given."""
    if lineage is None:
        return run()
    lineage.start()
    try:
        code = run()
    except KeyboardInterrupt:
        lineage.abort()
        raise
    except Exception as error:
        lineage.end(f"{error}" if isinstance(error, CommandError) else f"{type(error).__name__}: {error}")
        raise
    lineage.end(None if code == Exit.OK else f"exit code {int(code)}")
    return code
