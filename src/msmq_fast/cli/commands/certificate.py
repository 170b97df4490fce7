"""`msmq-fast certificate`: manages the certificates that sign messages."""

from __future__ import annotations

import argparse
from base64 import b64encode
from typing import Any

from msmq_fast.cli.inputs import read_input
from msmq_fast.cli.session import add_client, connected
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, show, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_COLUMNS = ("name", "identifier", "digest", "internal", "signs", "registered", "not_after")
_LARGEST = 1 << 20  # bytes of a file with a certificate or a key


def _add_user(parser: Parser) -> None:
    parser.add_argument("--user", default="", metavar="NAME", help="user or SID; default: the caller")
    add_client(parser)


def _add_list(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="list the certificates of all users")
    _add_user(parser)


def _add_register(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="X.509 certificate in PEM or DER; - for stdin")
    parser.add_argument(
        "--key", metavar="FILE", help="the certificate's private key in PEM, with which the server signs"
    )
    _add_user(parser)


def _add_remove(parser: Parser) -> None:
    parser.add_argument(
        "identifier", metavar="ID", help="identifier of the certificate, as `certificate list` shows it"
    )
    _add_user(parser)


async def _create(connection: Connection, arguments: argparse.Namespace) -> int:
    _show_certificate((await connection.admin.certificates.create(arguments.user)).as_map(), arguments.form)
    return Exit.OK


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    found = [
        one.as_map()
        for one in await connection.admin.certificates.all(None if arguments.all else arguments.user)
    ]
    show_table([_plain(each) for each in found], _COLUMNS, arguments.form)
    return Exit.OK


async def _register(connection: Connection, arguments: argparse.Namespace) -> int:
    key = read_input(arguments.key, _LARGEST) if arguments.key else None
    added = (
        await connection.admin.certificates.add(read_input(arguments.file, _LARGEST), key, arguments.user)
    ).as_map()
    _show_certificate(added, arguments.form)
    return Exit.OK


async def _remove(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.certificates.remove(arguments.identifier, arguments.user)
    show({"removed": arguments.identifier}, arguments.form)
    return Exit.OK


def _plain(certificate: dict[str, Any]) -> dict[str, Any]:
    content = dict(certificate)
    content["certificate_b64"] = b64encode(content.pop("certificate")).decode()
    content["name"] = content["name"] or content["user"]
    return content


def _show_certificate(certificate: dict[str, Any], form: Form) -> None:
    content = _plain(certificate)
    if form is Form.TABLE:
        del content["certificate_b64"]
    show(content, form)


COMMAND = Group(
    name="certificate",
    help="manage the certificates that sign messages",
    commands=members(
        Command(
            name="create",
            help="make an internal certificate, which replaces the previous one",
            run=connected(_create),
            add_arguments=_add_user,
            examples=(Example("", "for the caller; `send --sign` uses it from now on"),),
        ),
        Command(
            name="list",
            help="list the certificates of a user",
            run=connected(_list),
            add_arguments=_add_list,
            examples=(Example("--all", "the certificates of all users"),),
        ),
        Command(
            name="register",
            help="register an external certificate",
            run=connected(_register),
            add_arguments=_add_register,
            examples=(Example("alice.pem --key alice.key", "the server signs with its key"),),
        ),
        Command(
            name="remove",
            help="remove a certificate",
            run=connected(_remove),
            add_arguments=_add_remove,
            examples=(
                Example(
                    "0b52d3bb-9a29-4d0e-8d3c-53c7e5ff1a52", "an identifier that `certificate list` printed"
                ),
            ),
        ),
    ),
)
