"""The verbs `queue`, `outgoing` and `stats`."""

from __future__ import annotations

import argparse
from typing import Any

from msmq_fast.cli.arguments import PRIVACY
from msmq_fast.cli.commands.dlq import run_transfer
from msmq_fast.cli.commands.queue_import import import_queues
from msmq_fast.cli.session import converse, show, show_table
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access

__all__ = ["run_outgoing", "run_queue", "run_stats"]

_QUEUE_COLUMNS = ("name", "messages", "bytes", "transactional", "label")
_OUTGOING_COLUMNS = ("name", "state", "messages", "bytes", "next_hops")
_HISTORY_COLUMNS = ("time", "status", "error", "address", "detail")


def run_queue(arguments: argparse.Namespace) -> int:
    """`msmq-fast queue …`."""
    if arguments.action == "import":
        return import_queues(arguments)
    if arguments.action in ("move", "copy"):
        return run_transfer(arguments)
    return converse(_queue, arguments)


async def _queue(connection: Connection, arguments: argparse.Namespace) -> int:
    as_json = arguments.json
    match arguments.action:
        case "create":
            show(await connection.create_queue(arguments.name, **_properties(arguments)), as_json=as_json)
        case "list":
            queues = sorted(await connection.queues(), key=lambda queue: str(queue["name"]).lower())
            show_table(queues, _QUEUE_COLUMNS, as_json=as_json)
        case "show":
            show(await connection.queue(arguments.name), as_json=as_json)
        case "set":
            properties = _properties(arguments)
            if not properties:
                raise CommandError(
                    Exit.USAGE,
                    "nothing to set: give --label, --quota, --journal, --authenticated, --privacy, "
                    "--multicast or --poison-after",
                )
            show(await connection.set_queue(arguments.name, **properties), as_json=as_json)
        case "delete":
            await connection.delete_queue(arguments.name)
            show({"deleted": arguments.name}, as_json=as_json)
        case "purge":
            queue = await connection.open(arguments.name, Access.RECEIVE)
            show({"purged": await queue.purge(), "name": arguments.name}, as_json=as_json)
    return Exit.OK


def _properties(arguments: argparse.Namespace) -> dict[str, Any]:
    """The properties that were given on the command line."""
    given = {
        "label": arguments.label,
        "quota_kb": arguments.quota,
        "journal": arguments.journal,
        "authenticated": arguments.authenticated,
        "poison_after": arguments.poison_after,
        "multicast_address": arguments.multicast,
        "privacy_level": None if arguments.privacy is None else PRIVACY.index(arguments.privacy),
        "transactional": getattr(arguments, "transactional", None),
    }
    if arguments.action == "create":  # plain flags: absent means the default
        return {name: value for name, value in given.items() if value is not None and value is not False}
    return {name: value for name, value in given.items() if value is not None}


def run_outgoing(arguments: argparse.Namespace) -> int:
    """`msmq-fast outgoing …`."""
    return converse(_outgoing, arguments)


async def _outgoing(connection: Connection, arguments: argparse.Namespace) -> int:
    as_json = arguments.json
    match arguments.action:
        case "list":
            queues = sorted(await connection.outgoing(), key=lambda queue: str(queue["name"]).lower())
            show_table(queues, _OUTGOING_COLUMNS, as_json=as_json)
        case "show":
            _show_outgoing(await connection.show_outgoing(arguments.name), as_json=as_json)
        case "pause":
            await connection.pause_outgoing(arguments.name)
            show({"paused": arguments.name}, as_json=as_json)
        case "resume":
            await connection.resume_outgoing(arguments.name)
            show({"resumed": arguments.name}, as_json=as_json)
        case "purge":
            show(
                {"purged": await connection.purge_outgoing(arguments.name), "name": arguments.name},
                as_json=as_json,
            )
        case "delete":
            await connection.delete_queue(arguments.name)
            show({"deleted": arguments.name}, as_json=as_json)
    return Exit.OK


def _show_outgoing(queue: dict[str, Any], *, as_json: bool) -> None:
    """One outgoing queue, and for people below it what its connections went through, the latest last."""
    if as_json:
        show(queue, as_json=True)
        return
    history = queue.pop("history", [])
    show(queue, as_json=False)
    rows = [
        {
            "time": event["time"],
            "status": event["status"],
            "error": f"0x{event['error']:08X}" if event["error"] else "",
            "address": ", ".join(event["addresses"]),
            "detail": event["detail"],
        }
        for event in history
    ]
    show_table(rows, _HISTORY_COLUMNS, as_json=False)


def run_stats(arguments: argparse.Namespace) -> int:
    """`msmq-fast stats`."""
    return converse(_stats, arguments)


async def _stats(connection: Connection, arguments: argparse.Namespace) -> int:
    show(await connection.stats(), as_json=arguments.json)
    return Exit.OK
