"""`msmq-fast outgoing`: manages the queues of messages on their way to other computers."""

from __future__ import annotations

import argparse
import time
from typing import Any

from msmq_fast.cli.confirm import add_yes, asks, confirm
from msmq_fast.cli.removal import remove_selected, selects
from msmq_fast.cli.session import add_client, connected
from msmq_fast.cli.transfer import add_dry_run, add_filter, message_filter
from msmq_fast.cli.watching import add_watch, watchable
from msmq_fast.client.connection import Connection
from msmq_fast.client.exchange import Done
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, show, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import outgoing_name

__all__ = ["COMMAND"]

_COLUMNS = ("name", "state", "messages", "bytes", "next_hops", "reason", "next_attempt")
_HISTORY_COLUMNS = ("time", "status", "error", "address", "detail")


def _add_name(parser: Parser) -> None:
    parser.add_argument(
        "name",
        metavar="FORMATNAME",
        type=outgoing_name,
        help="name of the outgoing queue, as `outgoing list` shows it",
    )
    add_client(parser)


def _add_list(parser: Parser) -> None:
    add_watch(parser)
    add_client(parser)


def _add_purge(parser: Parser) -> None:
    add_filter(parser)
    add_dry_run(parser, "tell what would be deleted, and delete nothing")
    add_yes(parser)
    _add_name(parser)


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    queues = [
        queue.as_map()
        for queue in sorted(await connection.admin.outgoing.all(), key=lambda queue: queue.name.lower())
    ]
    show_table(queues, _COLUMNS, arguments.form)
    return Exit.OK


async def _show(connection: Connection, arguments: argparse.Namespace) -> int:
    _show_outgoing((await connection.admin.outgoing.get(arguments.name)).as_map(), arguments.form)
    return Exit.OK


async def _pause(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.outgoing.pause(arguments.name)
    show({"paused": arguments.name}, arguments.form)
    return Exit.OK


async def _resume(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.outgoing.resume(arguments.name)
    show({"resumed": arguments.name}, arguments.form)
    return Exit.OK


async def _kick(connection: Connection, arguments: argparse.Namespace) -> int:
    queue = await connection.admin.outgoing.kick(arguments.name)
    show({"kicked": arguments.name, "messages": queue.messages}, arguments.form)
    return Exit.OK


async def _purge(connection: Connection, arguments: argparse.Namespace) -> int:
    if selects(arguments):
        return await _purge_selected(connection, arguments)
    if asks(arguments):
        queue = (await connection.admin.outgoing.get(arguments.name)).as_map()
        confirm(f"purge {queue['name']}", queue["messages"])
    purged = await connection.admin.outgoing.purge(arguments.name)
    show({"purged": purged, "name": arguments.name}, arguments.form)
    return Exit.OK


async def _purge_selected(connection: Connection, arguments: argparse.Namespace) -> int:
    name, wanted = arguments.name, message_filter(arguments, time.time())
    total = (await connection.admin.outgoing.get(name)).messages

    async def remove(after: int, upto: int, limit: int, dry_run: bool) -> Done:
        messages = connection.admin.messages
        return await messages.remove_outgoing(name, wanted, after, upto, limit, dry_run=dry_run)

    return await remove_selected(arguments, name, total, remove)


async def _delete(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.queues.delete(arguments.name)
    show({"deleted": arguments.name}, arguments.form)
    return Exit.OK


def _show_outgoing(queue: dict[str, Any], form: Form) -> None:
    """Print one outgoing queue. The form for people has no empty values, but has the history of the queue's
    connections.
    """
    if form is not Form.TABLE:
        show(queue, form)
        return
    history = queue.pop("history", [])
    show({key: value for key, value in queue.items() if value or key in ("messages", "bytes")}, form)
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
    if rows:
        show_table(rows, _HISTORY_COLUMNS, form)


_NAME = r"'DIRECT=OS:orders01\private$\orders'"

COMMAND = Group(
    name="outgoing",
    help="show and control the queues of messages to other computers",
    commands=members(
        Command(
            name="list",
            help="list all outgoing queues",
            run=watchable(_list),
            add_arguments=_add_list,
            examples=(
                Example("", "every outgoing queue, its state and the messages that wait"),
                Example("--watch --interval 5s", "a screen that is redrawn every five seconds"),
            ),
        ),
        Command(
            name="show",
            help="show one outgoing queue and the history of its connections",
            run=connected(_show),
            add_arguments=_add_name,
            examples=(Example(_NAME, "shows its state and why it does not send"),),
        ),
        Command(
            name="pause",
            help="stop sending the messages of a queue",
            run=connected(_pause),
            add_arguments=_add_name,
            examples=(Example(_NAME, "its messages wait until `outgoing resume`, even after a restart"),),
        ),
        Command(
            name="resume",
            help="resume sending the messages of a paused queue",
            run=connected(_resume),
            add_arguments=_add_name,
            examples=(Example(_NAME, "connects at once if messages wait"),),
        ),
        Command(
            name="kick",
            help="connect and send now, without waiting for the next attempt",
            run=connected(_kick),
            add_arguments=_add_name,
            examples=(Example(_NAME, "tries at once; `outgoing show` has the result"),),
        ),
        Command(
            name="purge",
            help="delete the messages of an outgoing queue",
            description="""Deletes all messages that wait, or those that the options select. Selected messages
                that are being sent stay.""",
            run=connected(_purge),
            add_arguments=_add_purge,
            examples=(
                Example(_NAME, "the number of deleted messages"),
                Example(f"{_NAME} --older-than 2d --dry-run", "how many wait for two days"),
            ),
        ),
        Command(
            name="delete",
            help="delete an empty outgoing queue; the next message creates it again",
            run=connected(_delete),
            add_arguments=_add_name,
            examples=(Example(_NAME, "its connection history goes with it"),),
        ),
    ),
)
