"""`msmq-fast route`: explains where messages for a name go."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.resources import RouteInfo
from msmq_fast.protocol.text import printable
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, coloured, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import outgoing_name

__all__ = ["COMMAND"]


def _add_explain(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", type=outgoing_name, help="path or format name that a program would send to"
    )
    add_client(parser)


async def _explain(connection: Connection, arguments: argparse.Namespace) -> int:
    route = await connection.admin.outgoing.explain_route(arguments.name)
    if arguments.form is not Form.TABLE:
        show(route.as_map(), arguments.form)
        return Exit.OK
    show({key: value for key, value in _facts(route).items() if value}, arguments.form)
    if route.cause:
        print(coloured(printable(f"{route.cause}: {route.reason}"), "yellow"))
    else:
        where = "enters the queue" if route.protocol == "local" else "is sent to the next hop"
        print(coloured(f"nothing is known to stop a message: it {where}", "green"))
    return Exit.OK


def _facts(route: RouteInfo) -> dict[str, str]:
    accepts = {None: "", True: "transactional messages only", False: "messages without a transaction only"}
    created = "" if route.exists or not route.queue else " (is created with the first message)"
    attempt = datetime.fromtimestamp(route.next_attempt, UTC) if route.next_attempt else None
    return {
        "format name": route.format_name,
        "protocol": route.protocol,
        "queue": f"{route.queue}{created}",
        "accepts": accepts[route.transactional],
        "next hops": ", ".join(route.hops),
        "addresses": ", ".join(route.addresses),
        "state": route.state,
        "messages": str(route.messages) if route.exists else "",
        "next attempt": f"{attempt:%Y-%m-%dT%H:%M:%SZ}" if attempt is not None else "",
    }


COMMAND = Group(
    name="route",
    help="explain where messages for a name go",
    commands=members(
        Command(
            name="explain",
            help="show what would happen to a message for a name, without sending one",
            description="""Shows the queue that a message would enter, the protocol, the next hops, and what
                stops it: no route, a paused or stalled queue, a used-up quota, a transport that is off. Sends
                nothing and creates no queue. Needs the rights of an administrator or of a reader.""",
            run=connected(_explain),
            add_arguments=_add_explain,
            examples=(
                Example(r"'DIRECT=OS:orders01\private$\orders'", "a queue of another computer"),
                Example("orders", "a queue of this computer"),
            ),
        ),
    ),
)
