"""`msmq-fast acl`: shows and changes the rights on a queue or on the queue manager."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, show, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import queue_name

__all__ = ["COMMAND"]

_COLUMNS = ("entry", "type", "who", "rights")
_UNIX_USER = "S-1-22-1-"  # and the number of a user of the server's computer
_ALL = (0x000F_003F, 0x000F_00F7)  # every right on a queue, and on the queue manager


def _add_object(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="QUEUE", type=queue_name, nargs="?", help="path or format name of the queue"
    )
    parser.add_argument(
        "--machine", action="store_true", help="apply to the queue manager itself instead of a queue"
    )


def _add_show(parser: Parser) -> None:
    _add_object(parser)
    add_client(parser)


def _add_user(parser: Parser, *, right: bool) -> None:
    _add_object(parser)
    parser.add_argument(
        "--user",
        required=True,
        metavar="NAME",
        help="user or group of the users file, everyone, anonymous, administrators, a user of the server's "
        "computer as unix:NAME or uid:N, a user or group of the domain as DOMAIN\\NAME, or a SID",
    )
    parser.add_argument(
        "--right",
        action="append",
        required=right,
        metavar="RIGHT",
        help="right: send, receive, peek, journal, get-properties, …, all, or an MQSEC_ name; "
        "may be repeated",
    )
    add_client(parser)


def _add_right(parser: Parser) -> None:
    _add_user(parser, right=True)


def _add_revoke(parser: Parser) -> None:
    _add_user(parser, right=False)


def _add_own(parser: Parser) -> None:
    _add_object(parser)
    parser.add_argument("--user", required=True, metavar="NAME", help="the new owner")
    add_client(parser)


def _add_set(parser: Parser) -> None:
    _add_object(parser)
    parser.add_argument(
        "--sddl", required=True, metavar="TEXT", help="the security descriptor as a string (SDDL)"
    )
    add_client(parser)


def _run(
    verb: Callable[[Connection, argparse.Namespace], Awaitable[int]], arguments: argparse.Namespace
) -> int:
    if arguments.machine == (arguments.name is not None):
        raise CommandError(Exit.USAGE, "give a QUEUE, or --machine for the queue manager itself")
    return converse(verb, arguments)


async def _show(connection: Connection, arguments: argparse.Namespace) -> int:
    _show_list((await connection.admin.access.get(arguments.name)).as_map(), arguments.form)
    return Exit.OK


async def _explain(connection: Connection, arguments: argparse.Namespace) -> int:
    explained = (
        await connection.admin.access.explain(arguments.name, arguments.user, ",".join(arguments.right))
    ).as_map()
    _show_explanation(explained, arguments.form)
    return Exit.OK if explained["granted"] else Exit.FAILURE


async def _set(connection: Connection, arguments: argparse.Namespace) -> int:
    changed = await connection.admin.access.set(arguments.name, arguments.sddl)
    _show_list(changed.as_map(), arguments.form)
    return Exit.OK


def _edit(action: str) -> Callable[[argparse.Namespace], int]:
    async def edit(connection: Connection, arguments: argparse.Namespace) -> int:
        access, name, user = connection.admin.access, arguments.name, arguments.user
        rights = ",".join(getattr(arguments, "right", None) or ())
        match action:
            case "grant":
                changed = await access.grant(name, user, rights)
            case "deny":
                changed = await access.deny(name, user, rights)
            case "revoke":
                changed = await access.revoke(name, user, rights)
            case _:
                changed = await access.set_owner(name, user)
        _show_list(changed.as_map(), arguments.form)
        return Exit.OK

    return lambda arguments: _run(edit, arguments)


def _json(content: dict[str, Any]) -> None:
    plain = {key: value.hex() if isinstance(value, bytes) else value for key, value in content.items()}
    sys.stdout.write(json.dumps(plain) + "\n")


def _account(account: dict[str, str]) -> str:
    """Return an account as text: its name and SID, or only its SID if it has no name, written as --user
    accepts it.
    """
    if not account["name"] and account["sid"].startswith(_UNIX_USER):
        return f"uid:{account['sid'].removeprefix(_UNIX_USER)}"
    return f"{account['name']} ({account['sid']})" if account["name"] else account["sid"] or "(none)"


def _show_list(content: dict[str, Any], form: Form) -> None:
    if form is Form.JSON:
        _json(content)
        return
    if form is Form.TABLE:
        show({"owner": _account(content["owner"])}, form)
    if content.get("entries") is None:
        print("no list: every caller has every right")
        return
    rows = [
        {
            "entry": entry["index"],
            "type": entry["type"],
            "who": _account(entry),
            "rights": _rights(entry),
        }
        for entry in content["entries"]
    ]
    show_table(rows, _COLUMNS, form, fold=True)


def _rights(entry: dict[str, Any]) -> str:
    """Return the rights of an entry, in words that --right accepts."""
    if entry["mask"] in _ALL:
        return "all"
    return ", ".join(right.removeprefix("MQSEC_").lower().replace("_", "-") for right in entry["rights"])


def _show_explanation(content: dict[str, Any], form: Form) -> None:
    if form is Form.JSON:
        _json(content)
        return
    entry = content.get("entry")
    what = {"caller": content["caller"], "rights": ", ".join(content["rights"])}
    what["decision"] = "granted" if content["granted"] else "denied"
    what["because"] = content["reason"]
    if entry is not None:
        what["entry"] = f"{entry['index']}: {entry['type']} {_account(entry)} {entry['text']}"
    if content["missing"]:
        what["missing"] = ", ".join(content["missing"])
    what["member of"] = ", ".join(sid["name"] or sid["sid"] for sid in content["sids"])
    show(what, form)


_CHOWN = Command(
    name="chown",
    help="change the owner",
    run=_edit("own"),
    add_arguments=_add_own,
    examples=(Example("orders --user alice", "the owner can always change the rights"),),
)

COMMAND = Group(
    name="acl",
    help="show and change the rights on a queue or on the queue manager",
    commands=members(
        Command(
            name="show",
            help="show the owner and the entries",
            description="""Shows the owner and the entries, which are checked in this order. With --json, the
                output also has the descriptor string (SDDL) that `acl set` accepts.""",
            run=lambda arguments: _run(_show, arguments),
            add_arguments=_add_show,
            examples=(
                Example("orders", "the rights on a queue"),
                Example("--machine", "on the queue manager"),
            ),
        ),
        Command(
            name="grant",
            help="grant rights to a user",
            run=_edit("grant"),
            add_arguments=_add_right,
            examples=(Example("orders --user alice --right send --right peek", "two rights at once"),),
        ),
        Command(
            name="deny",
            help="deny rights to a user, even if other entries grant them",
            run=_edit("deny"),
            add_arguments=_add_right,
            examples=(
                Example(
                    "orders --user everyone --right receive", "a denial takes precedence over every grant"
                ),
            ),
        ),
        Command(
            name="revoke",
            help="remove the entries that grant or deny rights to a user",
            description="""Removes the rights from the entries of a user, both those that grant and those
                that deny. Without --right it removes all entries of the user.""",
            run=_edit("revoke"),
            add_arguments=_add_revoke,
            examples=(Example("orders --user alice", "afterwards, no entry names the user"),),
        ),
        Command(
            name="explain",
            help="show whether a user has rights, and which entry decides",
            description="""Shows whether a request of the user would be granted, and which entry decides it.
                The exit code is 0 if the rights are granted, 1 if one of them is denied.""",
            run=lambda arguments: _run(_explain, arguments),
            add_arguments=_add_right,
            examples=(
                Example("orders --user uid:1000 --right receive", "granted or denied, and why"),
                Example(
                    "orders --user unix:billing --right send > /dev/null && echo yes",
                    "in a script, by exit code",
                ),
            ),
        ),
        _CHOWN,
        replace(_CHOWN, name="own", hidden=True),  # the former name
        Command(
            name="set",
            help="replace the owner and all entries with those of a descriptor string",
            run=lambda arguments: _run(_set, arguments),
            add_arguments=_add_set,
            examples=(Example("orders --sddl 'O:WDG:WDD:(A;;GA;;;WD)'", "every caller has all rights"),),
        ),
    ),
)
