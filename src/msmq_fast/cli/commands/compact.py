"""`msmq-fast store compact`, formerly `compact`: returns the free pages of a store to the disk."""

from __future__ import annotations

import argparse

from msmq_fast.cli.endpoint import add_data, configured
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output, show
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    add_data(parser)
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    from msmq_fast.store.compact import compact
    from msmq_fast.store.errors import StoreError, StoreLockedError
    from msmq_fast.store.identity import DATA_NAME

    directory = configured(arguments).data
    if not (directory / DATA_NAME).is_file():
        raise CommandError(Exit.NOT_FOUND, f"{directory} holds no store")
    try:
        done = compact(directory)
    except StoreLockedError as error:
        raise CommandError(Exit.IN_USE, f"{error}; stop the server first") from None
    except (StoreError, OSError) as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    show({"data": str(directory), "before": done.before, "after": done.after}, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="compact",
    help="return free pages of the store to the disk; the server must be stopped",
    description="""The store reuses the pages of deleted messages, but its file never shrinks by itself.
        This command rewrites the file without them. Stop the server first.""",
    run=_run,
    add_arguments=_add_arguments,
    hidden=True,
    examples=(Example("--data /var/lib/msmq-fast", "shows the size of the file before and after"),),
)
