"""`msmq-fast backup`: copies the store, through its server or from its directory, and restores a copy."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from msmq_fast.cli.commands.backup_objects import LIST, PRUNE, PULL, PUSH
from msmq_fast.cli.commands.restore import COMMAND as RESTORE
from msmq_fast.cli.commands.snapshot import add_snapshot, snapshot
from msmq_fast.cli.endpoint import add_data, configured
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.store.objects.urls import is_url
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import add_output, show
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("target", metavar="DIR", help="directory for the copy; must not exist")
    add_data(parser)
    add_output(parser)


def _add_create(parser: Parser) -> None:
    parser.add_argument(
        "--offline",
        action="store_true",
        help="copy from the data directory, without a server; it may run or not",
    )
    add_snapshot(parser)


def _create(arguments: argparse.Namespace) -> int:
    if not arguments.offline:
        return snapshot(arguments, "backup")
    if arguments.rate is not None or arguments.endpoint is not None:
        raise CommandError(Exit.USAGE, "--offline cannot be combined with --rate or --endpoint")
    if arguments.target is None or is_url(arguments.target):
        raise CommandError(Exit.USAGE, "--offline needs a directory; `msmq-fast backup push` uploads it")
    return _offline(arguments)


def _offline(arguments: argparse.Namespace) -> int:
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


_FORMER = Command(
    name="backup",
    help="copy the store of a data directory (backup create --offline)",
    run=_offline,
    add_arguments=_add_arguments,
)

COMMAND = Group(
    name="backup",
    help="copy the store, keep copies in object storage, and make a data directory from a copy",
    commands=members(
        Command(
            name="create",
            help="copy the store into a new directory, or into object storage",
            description="""The server writes a consistent copy of its store into a directory of its own
                computer, while messages keep flowing. Without a directory, it uploads the copy to the object
                storage that `backup.url` in its configuration names. With --offline the command copies from
                the data directory itself, with and without a running server; it needs the right to read
                that.""",
            run=_create,
            add_arguments=_add_create,
            examples=(
                Example("/backup/msmq-monday", "a copy as fast as the disk allows"),
                Example("/backup/msmq-monday --rate 50MiB/s", "leaves disk bandwidth for messages"),
                Example("", "into the object storage of the server, if it has one"),
                Example("/backup/msmq-monday --offline --data /var/lib/msmq-fast", "without a server"),
            ),
        ),
        replace(RESTORE, hidden=False),
        PUSH,
        PULL,
        LIST,
        PRUNE,
    ),
    former=_FORMER,
)
