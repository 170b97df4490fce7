"""`msmq-fast backup restore`, formerly `restore`: makes a data directory from a backup, in a directory or in
object storage.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from msmq_fast.cli.endpoint import configured
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source",
        metavar="DIR",
        help="directory that `backup create` wrote, or URL of object storage: the newest snapshot there, or "
        "the one whose /NAME is at the end of the URL",
    )
    parser.add_argument("--data", metavar="DIR", help="data directory to create; default: the configured one")
    parser.add_argument(
        "--if-missing", action="store_true", help="do nothing if the data directory already holds a store"
    )
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    from msmq_fast.store.errors import StoreError, StoreLockedError
    from msmq_fast.store.identity import DATA_NAME
    from msmq_fast.store.objects.storage import BucketSource
    from msmq_fast.store.objects.urls import is_url
    from msmq_fast.store.restore import Source, restore

    directory = configured(arguments).data
    if arguments.if_missing and (directory / DATA_NAME).exists():
        show({"kept": str(directory)}, arguments.form)
        return Exit.OK
    try:
        with Progress("restore", 0) as progress:

            def add(count: int, total: int) -> None:
                progress.total = total
                progress.add(count)

            chosen = arguments.source
            source: Path | Source = BucketSource(chosen, add) if is_url(chosen) else Path(chosen)
            manifest = restore(source, directory, now_s=int(time.time()))
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
        new one: the backup holds private keys only in sealed form. The credentials for a URL come from the
        environment, as for `backup pull`.""",
    run=_run,
    add_arguments=_add_arguments,
    hidden=True,
    examples=(
        Example("/backup/msmq-monday --data /var/lib/msmq-fast", "a data directory for `serve`"),
        Example("s3://backups/mq1 --data /var/lib/msmq-fast", "from the newest snapshot in a bucket"),
    ),
)
