"""`msmq-lake settle`: removes the messages of the last batch of a stopped query with onSourceCommit=remove.
Such a query confirms a batch only when it plans the next one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from msmq_fast.client.bulk.client import BulkClient, Endpoint
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.output import print_result
from msmq_fast.spark.offsets import Offset, OffsetError
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="checkpointLocation of the query")
    parser.add_argument(
        "--url",
        required=True,
        action="append",
        metavar="msmq+bulk://HOST:PORT",
        help="address of the admin port of a queue manager that the query reads; may be repeated",
    )
    parser.add_argument("--subscription", required=True, help="subscription of the query")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token; default: the token in the environment variable MSMQ_FAST_TOKEN",
    )
    parser.add_argument("--ca-file", metavar="FILE", help="certificates to trust for https:// (PEM)")
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Acknowledges all messages up to the last batch in the `commits` of the checkpoint; this removes the
    messages from their queues. Repeating the command has no effect. Raises BulkError.
    """
    offset = committed(Path(arguments.checkpoint))
    if offset.subscription not in ("", arguments.subscription):
        raise CommandError(Exit.USAGE, f"--subscription must be {offset.subscription}, as in the checkpoint")
    removed = 0
    queues = []
    clients = _clients(arguments, offset)
    for guid, manager in offset.managers.items():
        for spot in manager.queues.values():
            queues.append({"queue": spot.path, "upto": spot.end})
            if not arguments.dry_run:
                client = clients[guid].with_incarnation(manager.incarnation)
                with client:
                    removed += client.ack(arguments.subscription, spot.path, spot.end).removed
    result = {"subscription": arguments.subscription, "queues": queues, "removed": removed}
    print_result(result, arguments.form, text=_line)
    return Exit.OK


def committed(checkpoint: Path) -> Offset:
    """Returns the offset at the end of the last batch that the query committed. Raises CommandError if no
    batch was committed, or the offset belongs to a query without onSourceCommit=remove.
    """
    try:
        numbers = [int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
        lines = (checkpoint / "offsets" / str(max(numbers))).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        raise CommandError(
            Exit.NOT_FOUND, f"{checkpoint} has no committed batch of a streaming query"
        ) from None
    try:
        return Offset.from_json(json.loads(lines[-1]), "remove")
    except (OffsetError, ValueError, IndexError) as error:
        raise CommandError(Exit.USAGE, f"{checkpoint}: {error}") from None


def _clients(arguments: argparse.Namespace, offset: Offset) -> dict[str, BulkClient]:
    clients = {}
    for url in (part.strip() for text in arguments.url for part in text.split(",")):
        try:
            endpoint = Endpoint(url, token_file=arguments.token_file, ca_file=arguments.ca_file)
        except ValueError as error:
            raise CommandError(Exit.USAGE, f"--url: {error}") from None
        client = BulkClient(endpoint)
        clients[client.bounds().qm] = client
    missing = [manager.name for guid, manager in offset.managers.items() if guid not in clients]
    if missing:
        raise CommandError(
            Exit.USAGE,
            f"--url: the address of the queue manager {missing[0]}, from which the query reads, is missing",
        )
    return clients


def _line(result: dict[str, Any]) -> str:
    return (
        f"{result['subscription']}: {result['removed']} messages removed from {len(result['queues'])} queues"
    )


COMMAND = Command(
    name="settle",
    help="remove from the queues what a stopped consuming query has committed",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(
        Example(
            "--checkpoint checkpoint --url msmq+bulk://orders01:1802 --subscription reports --dry-run",
            "what would be removed",
        ),
    ),
)
