"""`msmq-fast queue list`: lists queues."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Mapping
from typing import Any

from msmq_fast.cli.queueinfo import readable
from msmq_fast.cli.session import add_client
from msmq_fast.cli.watching import add_watch, watchable
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_COLUMNS = ("name", "messages", "bytes", "transactional", "journal", "quota", "label")
_ALL_COLUMNS = ("name", "kind", *_COLUMNS[1:])
_OUTGOING = "outgoing"
_SORTS = ("name", "messages", "bytes")


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "glob", metavar="GLOB", nargs="?", help="only queues whose name matches a pattern with * ? and []"
    )
    parser.add_argument("--all", action="store_true", help="also system queues, journals and subqueues")
    parser.add_argument(
        "--sort",
        choices=_SORTS,
        default="name",
        help="order: by name (default), or by the number of messages or bytes, the largest first",
    )
    add_watch(parser)
    add_client(parser)


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    queues = [one.as_map() for one in await connection.admin.queues.all("all" if arguments.all else "user")]
    chosen = [queue for queue in queues if queue["kind"] != _OUTGOING and _wanted(queue, arguments.glob)]
    chosen.sort(key=lambda queue: str(queue["name"]).lower())
    if arguments.sort != "name":
        chosen.sort(key=lambda queue: int(queue[arguments.sort]), reverse=True)
    if arguments.form is not Form.JSON:
        chosen = [readable(queue) for queue in chosen]
    show_table(chosen, _ALL_COLUMNS if arguments.all else _COLUMNS, arguments.form)
    return Exit.OK


def _wanted(queue: Mapping[str, Any], glob: str | None) -> bool:
    """Return whether `glob` matches the whole name of a queue, its name without the computer, or its name
    without the computer and `private$`. None matches every queue.
    """
    if glob is None:
        return True
    name = str(queue["name"]).casefold()
    return any(
        fnmatch.fnmatchcase(text, glob.casefold())
        for text in (name, name.partition("\\")[2], name.rpartition("\\")[2])
    )


COMMAND = Command(
    name="list",
    help="list queues",
    description="""Lists the queues of this queue manager that programs use, by name. With --all the
        dead-letter queues, the journals and the subqueues are in the list too.""",
    run=watchable(_list),
    add_arguments=_add_arguments,
    examples=(
        Example("", "the queues of programs"),
        Example("--all --sort messages", "every queue, the fullest first"),
        Example("--watch --sort messages", "a screen that is redrawn every two seconds"),
        Example("'order*' -o raw | cut -f1", "the names of some"),
    ),
)
