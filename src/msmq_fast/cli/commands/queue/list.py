"""`msmq-fast queue list`: lists queues."""

from __future__ import annotations

import argparse
from typing import Any

from msmq_fast.cli.queueinfo import readable
from msmq_fast.cli.session import add_client
from msmq_fast.cli.watching import add_watch, watchable
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import number

__all__ = ["COMMAND"]

_COLUMNS = ("name", "messages", "bytes", "transactional", "journal", "quota", "label")
_ALL_COLUMNS = ("name", "kind", *_COLUMNS[1:])
_SORTS = ("name", "messages", "bytes", "oldest", "in-per-second", "out-per-second")
_PAGE = 1000  # queues of one request


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "glob", metavar="GLOB", nargs="?", help="only queues whose name matches a pattern with * ? and []"
    )
    parser.add_argument("--all", action="store_true", help="also system queues, journals and subqueues")
    parser.add_argument(
        "--sort",
        choices=_SORTS,
        default="name",
        help="order: by name (default), by the number of messages or bytes, the age of the oldest message, "
        "or the messages that arrive or leave per second, the largest first",
    )
    parser.add_argument("--filter", metavar="TEXT", help="only queues whose name contains this text")
    parser.add_argument("--limit", type=number(1, 2**32 - 1), metavar="N", help="at most N queues")
    parser.add_argument(
        "--offset", type=number(0, 2**32 - 1), default=0, metavar="N", help="leave out the first N queues"
    )
    add_watch(parser)
    add_client(parser)


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    found: list[dict[str, Any]] = []
    left, offset = arguments.limit, arguments.offset
    finished = False
    while not finished:
        page = await connection.admin.queues.page(
            "local" if arguments.all else "user",
            text=arguments.filter or "",
            glob=arguments.glob or "",
            sort=arguments.sort.replace("-", "_"),
            descending=arguments.sort != "name",
            limit=_PAGE if left is None else min(left, _PAGE),
            offset=offset,
        )
        found += [one.as_map() for one in page.queues]
        offset += len(page.queues)
        left = None if left is None else left - len(page.queues)
        finished = not page.queues or offset >= page.total or left == 0
    if arguments.form is not Form.JSON:
        found = [readable(queue) for queue in found]
    show_table(found, _ALL_COLUMNS if arguments.all else _COLUMNS, arguments.form)
    return Exit.OK


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
        Example("--sort oldest --limit 10", "the ten queues whose messages have waited longest"),
        Example("--watch --sort messages", "a screen that is redrawn every two seconds"),
        Example("'order*' -o raw | cut -f1", "the names of some"),
    ),
)
