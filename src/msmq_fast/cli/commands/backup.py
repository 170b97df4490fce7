"""The verbs `backup`, `restore` and `compact`: they work on the data directory, not through the server."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.cli.endpoint import configuration
from msmq_fast.cli.session import show
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.store.backup import Backup
from msmq_fast.store.compact import compact
from msmq_fast.store.errors import StoreError, StoreLockedError
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.redotail import LogNotApplied, wait_applied
from msmq_fast.store.restore import restore
from msmq_fast.store.schema import Table

__all__ = ["run_backup", "run_compact", "run_restore"]


def _data(arguments: argparse.Namespace) -> Path:
    return configuration(None, {"server.data": arguments.data} if arguments.data else {}).data


def run_backup(arguments: argparse.Namespace) -> int:
    """`msmq-fast backup DIR`: a consistent copy, also while the server runs."""
    directory = _data(arguments)
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
        as_json=arguments.json,
    )
    return Exit.OK


def run_restore(arguments: argparse.Namespace) -> int:
    """`msmq-fast restore DIR`: a data directory from a backup."""
    directory = _data(arguments)
    try:
        manifest = restore(Path(arguments.source), directory, now_s=int(time.time()))
    except StoreLockedError as error:
        raise CommandError(Exit.IN_USE, str(error)) from None
    except (StoreError, OSError) as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    show({"restored": str(directory), "bytes": manifest.size}, as_json=arguments.json)
    return Exit.OK


def run_compact(arguments: argparse.Namespace) -> int:
    """`msmq-fast compact`: give free pages back to the disk."""
    directory = _data(arguments)
    if not (directory / DATA_NAME).is_file():
        raise CommandError(Exit.NOT_FOUND, f"{directory} holds no store")
    try:
        done = compact(directory)
    except StoreLockedError as error:
        raise CommandError(Exit.IN_USE, f"{error}; stop the server first") from None
    except (StoreError, OSError) as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    show({"data": str(directory), "before": done.before, "after": done.after}, as_json=arguments.json)
    return Exit.OK
