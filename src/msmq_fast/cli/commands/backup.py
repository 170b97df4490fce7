"""`msmq-fast backup`: copies the store in its directory without using a server."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from msmq_fast.cli.endpoint import add_data, configured
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output, show
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("target", metavar="DIR", help="directory for the copy; must not exist")
    add_data(parser)
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    from msmq_fast._native.lmdbstore import LmdbTables
    from msmq_fast.store.backup import Backup
    from msmq_fast.store.errors import StoreError
    from msmq_fast.store.identity import DATA_NAME
    from msmq_fast.store.redotail import LogNotApplied, wait_applied
    from msmq_fast.store.schema import Table

    directory = configured(arguments).data
    if not (directory / DATA_NAME).is_file():
        raise CommandError(Exit.NOT_FOUND, f"{directory} holds no store")
    try:
        # Read only, beside the process that serves it: the database coordinates readers of several processes.
        tables = LmdbTables(directory, read_only=True)
        try:
            wait_applied(directory, lambda name: tables.get(Table.META, name))
            manifest = Backup(tables, Path(arguments.target), now_s=int(time.time())).run()
        finally:
            tables.close()
    except (StoreError, LogNotApplied) as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    show(
        {"backup": arguments.target, "bytes": manifest.size, "incarnation": manifest.incarnation},
        arguments.form,
    )
    return Exit.OK


COMMAND = Command(
    name="backup",
    help="copy the store of a data directory, also while a server uses it",
    description="""Copies the store from its directory. It works with and without a running server, and
        needs the right to read the directory. `msmq-fast snapshot` makes the same copy through a server.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(Example("/backup/msmq-monday --data /var/lib/msmq-fast", "a consistent copy of the store"),),
)
