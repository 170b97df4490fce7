"""`msmq-fast status`: shows on one screen whether the server is healthy."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from msmq_fast.cli.session import add_client
from msmq_fast.cli.watching import add_watch, watchable
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.resources import OutgoingQueueInfo, QueueInfo
from msmq_fast.protocol.text import counted, printable
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, coloured, short_size, show
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_PROGRAMS = ("queue", "subqueue")
_DEAD = ("deadletter", "xact_deadletter")
_SHOWN = 10  # problems that are listed for people


def _add_arguments(parser: Parser) -> None:
    add_watch(parser)
    add_client(parser)


async def _status(connection: Connection, arguments: argparse.Namespace) -> int:
    admin = connection.admin
    stats = await admin.stats()
    queues = await admin.queues.all("all")
    outgoing = await admin.outgoing.all()
    try:
        transactions: int | None = len(await admin.transactions.all())
    except AccessDenied:  # for administrators only
        transactions = None
    local = [queue for queue in queues if queue.kind != "outgoing"]
    summary: dict[str, Any] = {
        "name": str(stats["name"]),
        "guid": str(stats["guid"]),
        "version": str(connection.hello["server"]),
        "ready": not stats["not_ready"],
        "queues": sum(queue.kind == "queue" for queue in local),
        "messages": sum(queue.messages for queue in local if queue.kind in _PROGRAMS),
        "bytes": sum(queue.bytes for queue in local if queue.kind in _PROGRAMS),
        "journal_messages": sum(queue.messages for queue in local if queue.kind == "journal"),
        "dead_letters": sum(queue.messages for queue in local if queue.kind in _DEAD),
        "outgoing_queues": len(outgoing),
        "outgoing_messages": sum(queue.messages for queue in outgoing),
        "transactions": transactions,
        "sessions": int(stats["sessions"]),
        "programs": int(stats["app_connections"]),
        "store_file_bytes": int(stats["store_file_bytes"]),
        "store_available_bytes": int(stats["store_available_bytes"]),
        "problems": _problems(stats, local, outgoing),
    }
    if arguments.form is Form.TABLE:
        _show(summary)
    else:
        show(summary, arguments.form)
    return Exit.OK


def _problems(
    stats: Mapping[str, Any], queues: Sequence[QueueInfo], outgoing: Sequence[OutgoingQueueInfo]
) -> list[str]:
    """Return the problems that need an operator's attention, the worst first."""
    found = [f"not ready: {stats['not_ready']}"] if stats["not_ready"] else []
    if stats["faults"]:
        found.append(f"faults: {stats['faults']}; the log has the cause of each")
    if stats["shortage"]:
        found.append(str(stats["shortage"]))
    if stats.get("directory"):
        found.append(str(stats["directory"]))
    found += [
        f"{counted(queue.messages, 'message')} in {queue.name}"
        for queue in queues
        if queue.kind in _DEAD and queue.messages
    ]
    found += [
        f"{counted(queue.messages, 'message')} for {queue.name}: "
        f"{queue.reason or queue.state.replace('_', ' ')}"
        for queue in sorted(outgoing, key=lambda queue: -queue.messages)
        if queue.messages and (queue.stalled or queue.state != "connected")
    ]
    return found


def _show(summary: Mapping[str, Any]) -> None:
    ready = coloured("ready", "green") if summary["ready"] else coloured("not ready", "red")
    print(f"{coloured(printable(summary['name']), 'bold')}  {ready}  {summary['version']}")
    transactions = summary["transactions"]
    held, file, free = (
        short_size(summary[name]) for name in ("bytes", "store_file_bytes", "store_available_bytes")
    )
    show(
        {
            "queues": f"{summary['queues']}, with {counted(summary['messages'], 'message')} ({held})",
            "outgoing": f"{summary['outgoing_queues']}, "
            f"with {counted(summary['outgoing_messages'], 'message')}",
            "journals": counted(summary["journal_messages"], "message"),
            "dead letters": summary["dead_letters"],
            "transactions": "not shown to you" if transactions is None else transactions,
            "connections": f"{counted(summary['sessions'], 'queue manager')}, "
            f"{counted(summary['programs'], 'program')}",
            "store": f"{file}, {free} free on the disk",
        },
        Form.TABLE,
    )
    problems = summary["problems"]
    for problem in problems[:_SHOWN]:
        print(f"{coloured('!', 'yellow')} {printable(problem)}")
    if len(problems) > _SHOWN:
        print(f"  and {len(problems) - _SHOWN} more: see `msmq-fast outgoing list`")


COMMAND = Command(
    name="status",
    help="show on one screen whether the server is healthy",
    description="""Shows whether the server is ready, how many messages it holds, and what needs
        attention: dead letters, outgoing queues that do not move, faults, a lack of disk space. The exit
        code is 0 whenever the server answers; `msmq-fast health` is for scripts.""",
    run=watchable(_status),
    add_arguments=_add_arguments,
    examples=(
        Example("", "the server of this machine"),
        Example("--watch", "a screen that is redrawn every two seconds"),
        Example("--json | jq -r '.problems[]'", "what needs attention, one a line"),
    ),
)
