"""`msmq-fast backup push`, `pull`, `list` and `prune`: snapshots in object storage, without a server."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output, show, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import number, rate

if TYPE_CHECKING:
    from msmq_fast.store.objects.bucket import Bucket

__all__ = ["LIST", "PRUNE", "PULL", "PUSH"]

_URL: Final = "s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH or file:///DIRECTORY"
_ENVIRONMENT: Final = """Credentials come from the environment, as for other programs of the service:
    AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, …"""
_COLUMNS: Final = ("name", "created", "bytes", "incarnation", "problem")

_Result = TypeVar("_Result")


def _done(url: str, work: Callable[[Bucket], Awaitable[_Result]]) -> _Result:
    """Return the result of `work` with the object storage at `url`. Raises CommandError."""
    from msmq_fast.store.errors import BackupError
    from msmq_fast.store.objects.bucket import Bucket

    async def run() -> _Result:
        return await work(Bucket(url))

    try:
        return asyncio.run(run())
    except BackupError as error:
        raise CommandError(Exit.FAILURE, str(error)) from None


def _named(url: str) -> tuple[str, str | None]:
    """Return the place and the name of a snapshot, if the URL names one. Raises CommandError."""
    from msmq_fast.store.objects.urls import split_name

    try:
        return split_name(url)
    except ValueError as error:
        raise CommandError(Exit.USAGE, str(error)) from None


def _add_push(parser: Parser) -> None:
    parser.add_argument("source", metavar="DIR", help="directory that `backup create` wrote")
    parser.add_argument("url", metavar="URL", help=_URL)
    parser.add_argument(
        "--rate", type=rate, metavar="RATE", help="send at most this much per second, such as 50MiB/s"
    )
    add_output(parser)


def _push(arguments: argparse.Namespace) -> int:
    from msmq_fast.store.backup import Manifest
    from msmq_fast.store.errors import BackupError
    from msmq_fast.store.objects.upload import push

    source = Path(arguments.source)
    try:
        size = Manifest.read(source).size
    except BackupError as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    with Progress("upload", size) as progress:
        name = _done(arguments.url, lambda bucket: push(source, bucket, progress.add, arguments.rate))
    shown = {"snapshot": f"{arguments.url.rstrip('/')}/{name}", "bytes": size}
    show(shown | {"seconds": round(progress.seconds, 3)}, arguments.form)
    return Exit.OK


def _add_pull(parser: Parser) -> None:
    parser.add_argument(
        "url", metavar="URL", help=f"{_URL}; with /NAME at its end for one that is not the newest"
    )
    parser.add_argument("target", metavar="DIR", help="directory for the copy; must not exist")
    add_output(parser)


def _pull(arguments: argparse.Namespace) -> int:
    from msmq_fast.store.objects.download import pull

    place, name = _named(arguments.url)
    with Progress("download", 0) as progress:

        def add(count: int, total: int) -> None:
            progress.total = total
            progress.add(count)

        found, manifest = _done(place, lambda bucket: pull(bucket, name, Path(arguments.target), add))
    shown = {"backup": arguments.target, "snapshot": f"{place}/{found}", "bytes": manifest.size}
    show(shown | {"seconds": round(progress.seconds, 3)}, arguments.form)
    return Exit.OK


def _add_list(parser: Parser) -> None:
    parser.add_argument("url", metavar="URL", help=_URL)
    add_output(parser)


def _list(arguments: argparse.Namespace) -> int:
    from msmq_fast.store.objects.catalogue import owner_in
    from msmq_fast.store.objects.download import Stored, stored

    def row(entry: Stored) -> dict[str, Any]:
        manifest = entry.manifest
        return {
            "name": entry.name,
            "created": 0 if manifest is None else manifest.created_s,
            "bytes": 0 if manifest is None else manifest.size,
            "qm_guid": str(UUID(owner_in(entry.name))),
            "incarnation": 0 if manifest is None else manifest.incarnation,
            "complete": manifest is not None,
            "problem": entry.problem,
        }

    show_table(map(row, _done(arguments.url, stored)), _COLUMNS, arguments.form)
    return Exit.OK


def _add_prune(parser: Parser) -> None:
    parser.add_argument("url", metavar="URL", help=_URL)
    parser.add_argument(
        "--keep",
        type=number(1, 10_000),
        required=True,
        metavar="N",
        help="number of snapshots that are kept of each queue manager, the newest ones",
    )
    add_output(parser)


def _prune(arguments: argparse.Namespace) -> int:
    from msmq_fast.store.objects.upload import prune

    deleted = _done(arguments.url, lambda bucket: prune(bucket, arguments.keep, time.time()))
    show_table(({"deleted": name} for name in deleted), ("deleted",), arguments.form)
    return Exit.OK


PUSH: Final = Command(
    name="push",
    help="upload a copy to object storage",
    description=f"""Uploads a directory that `backup create` wrote. An upload that was interrupted is
        continued by the same command; until it is complete, the other commands ignore it. {_ENVIRONMENT}""",
    run=_push,
    add_arguments=_add_push,
    examples=(
        Example("/backup/msmq-monday s3://backups/mq1", "a bucket of S3, or of a service that speaks S3"),
        Example("/backup/msmq-monday file:///mnt/nas/mq1 --rate 20MiB/s", "a directory, at a limited rate"),
    ),
)
PULL: Final = Command(
    name="pull",
    help="download a copy from object storage",
    description=f"""Downloads the newest snapshot, or the one whose name is at the end of the URL, and
        verifies each part. A download that was interrupted is continued by the same command.
        {_ENVIRONMENT}""",
    run=_pull,
    add_arguments=_add_pull,
    examples=(Example("s3://backups/mq1 /backup/newest", "the newest snapshot"),),
)
LIST: Final = Command(
    name="list",
    help="list the copies in object storage",
    description=f"""Lists the snapshots below the URL, the oldest first. A snapshot that is not complete is
        being uploaded, or its upload was interrupted. {_ENVIRONMENT}""",
    run=_list,
    add_arguments=_add_list,
    examples=(Example("s3://backups/mq1", "all snapshots, with their names"),),
)
PRUNE: Final = Command(
    name="prune",
    help="delete old copies from object storage",
    description=f"""Deletes all but the newest snapshots of each queue manager, and snapshots whose upload was
        interrupted more than a day ago. A server with `backup.url` does that itself. {_ENVIRONMENT}""",
    run=_prune,
    add_arguments=_add_prune,
    examples=(Example("s3://backups/mq1 --keep 7", "keeps the seven newest"),),
)
