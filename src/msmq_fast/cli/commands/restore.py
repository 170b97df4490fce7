"""`msmq-fast backup restore`, formerly `restore`: makes a data directory from a backup or a snapshot."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from msmq_fast.cli.endpoint import configured
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output, show
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("source", metavar="DIR", help="directory that `backup create` wrote")
    parser.add_argument("--data", metavar="DIR", help="data directory to create; default: the configured one")
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    from msmq_fast.store.errors import StoreError, StoreLockedError
    from msmq_fast.store.restore import restore

    directory = configured(arguments).data
    try:
        manifest = restore(Path(arguments.source), directory, now_s=int(time.time()))
    except StoreLockedError as error:
        raise CommandError(Exit.IN_USE, str(error)) from None
    except (StoreError, OSError) as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    show({"restored": str(directory), "bytes": manifest.size}, arguments.form)
    return Exit.OK


COMMAND = Command(
    name="restore",
    help="make a data directory from a backup",
    description="""The target must not hold a store. Copy secrets.key of the old data directory into the
        new one: the backup holds private keys only in sealed form.""",
    run=_run,
    add_arguments=_add_arguments,
    hidden=True,
    examples=(Example("/backup/msmq-monday --data /var/lib/msmq-fast", "a data directory for `serve`"),),
)
