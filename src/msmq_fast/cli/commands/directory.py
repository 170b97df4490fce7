"""`msmq-fast directory`: manages objects of the directory, and exports and imports all of it as a JSON
document.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from msmq_fast.cli.directoryentries import all_entries
from msmq_fast.cli.inputs import read_input, write_output
from msmq_fast.cli.session import add_client, connected, converse
from msmq_fast.client.connection import Connection
from msmq_fast.directory.document import document_of, entry_of, object_of, read_document
from msmq_fast.directory.objects import ATTRIBUTES, IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import BY_TITLE, ObjectType
from msmq_fast.directory.values import value_of_text
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.text import counted
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, show, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_MAX_FILE = 256 << 20  # bytes
_COLUMNS = ("object", "name", IDENTIFIER)
_OUTCOMES = ("object", "name", "outcome", "detail")


# ---- grammar


def _object_type(text: str) -> ObjectType:
    kind = BY_TITLE.get(text.casefold())
    if kind is None:
        names = ", ".join(kind.title for kind in ObjectType)
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {names}")
    return kind


def _add_type(parser: Parser) -> None:
    names = ", ".join(kind.title for kind in ObjectType)
    parser.add_argument("type", type=_object_type, metavar="TYPE", help=f"one of {names}")


def _add_list(parser: Parser) -> None:
    names = ", ".join(kind.title for kind in ObjectType)
    parser.add_argument(
        "type", nargs="?", type=_object_type, metavar="TYPE", help=f"one of {names}; default: all types"
    )
    add_client(parser)


def _add_name(parser: Parser) -> None:
    _add_type(parser)
    parser.add_argument("name", metavar="NAME|GUID", help="name, path, format name or GUID of the object")


def _add_one(parser: Parser) -> None:
    _add_name(parser)
    add_client(parser)


def _add_values(parser: Parser) -> None:
    parser.add_argument(
        "values",
        nargs="+",
        metavar="ATTRIBUTE=VALUE",
        help="name and value of an attribute; separate the items of a list with commas",
    )


def _add_create(parser: Parser) -> None:
    _add_type(parser)
    _add_values(parser)
    add_client(parser)


def _add_set(parser: Parser) -> None:
    _add_name(parser)
    _add_values(parser)
    add_client(parser)


def _add_types(parser: Parser) -> None:
    parser.add_argument(
        "--type",
        dest="types",
        action="append",
        type=_object_type,
        metavar="TYPE",
        help="only objects of this type; may be repeated",
    )
    add_client(parser)


def _add_export(parser: Parser) -> None:
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="file to write; - for stdout (default)"
    )
    _add_types(parser)


def _add_import(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="file that `directory export` wrote; - for stdin")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be changed")
    _add_types(parser)


# ---- commands


async def _list(connection: Connection, arguments: argparse.Namespace) -> int:
    kinds = [arguments.type] if arguments.type else list(ObjectType)
    items = [item for kind in kinds for item in await _all(connection, kind)]
    if arguments.form is Form.JSON:
        for item in items:
            show(entry_of(item), arguments.form)
        return Exit.OK
    rows = [
        {"object": item.kind.title, "name": item.describe(), IDENTIFIER: item.identifier} for item in items
    ]
    show_table(rows, _COLUMNS, arguments.form)
    return Exit.OK


async def _show(connection: Connection, arguments: argparse.Namespace) -> int:
    show(entry_of(await _one(connection, arguments)), arguments.form)
    return Exit.OK


async def _create(connection: Connection, arguments: argparse.Namespace) -> int:
    entry = entry_of(_given(arguments.type, arguments.values))
    await connection.admin.directory.put(entry, "create")
    unique = RULES[arguments.type].unique[0]
    show({"created": entry.get(unique) or arguments.type.title}, arguments.form)
    return Exit.OK


async def _set(connection: Connection, arguments: argparse.Namespace) -> int:
    item = await _one(connection, arguments)
    given = _given(arguments.type, arguments.values)
    fixed = {*RULES[arguments.type].fixed, *RULES[arguments.type].computed, IDENTIFIER}
    for name in given.values:
        if name in fixed:
            raise CommandError(Exit.USAGE, f"{name} of a {arguments.type.title} cannot be set")
    await connection.admin.directory.put(entry_of(given.changed({IDENTIFIER: item[IDENTIFIER]})), "set")
    return await _show(connection, arguments)


async def _delete(connection: Connection, arguments: argparse.Namespace) -> int:
    await connection.admin.directory.delete(arguments.type.title, arguments.name)
    show({"deleted": arguments.name}, arguments.form)
    return Exit.OK


# ---- objects


async def _all(connection: Connection, kind: ObjectType) -> list[DirectoryObject]:
    return [object_of(entry) for entry in await all_entries(connection, kind.title)]


async def _one(connection: Connection, arguments: argparse.Namespace) -> DirectoryObject:
    return object_of(await connection.admin.directory.get(arguments.type.title, arguments.name))


def _given(kind: ObjectType, texts: list[str]) -> DirectoryObject:
    """Return the object of type `kind` that the ATTRIBUTE=VALUE words `texts` describe; names of attributes
    are not case-sensitive.
    """
    known = {name.casefold(): name for name in ATTRIBUTES[kind]}
    values: dict[str, Any] = {}
    for text in texts:
        word, separator, value = text.partition("=")
        name = known.get(word.strip().casefold())
        if not separator or name is None:
            names = ", ".join(known.values())
            raise CommandError(Exit.USAGE, f"{text!r}: a {kind.title} has the attributes {names}")
        try:
            values[name] = value_of_text(ATTRIBUTES[kind][name], value)
        except ValueError as error:
            raise CommandError(Exit.USAGE, f"{name}: {error}") from None
    return DirectoryObject(kind, values)


# ---- documents


async def _export(connection: Connection, arguments: argparse.Namespace) -> int:
    kinds = arguments.types or list(ObjectType)
    items = [item for kind in kinds for item in await _all(connection, kind)]
    text = json.dumps(document_of(items), indent=2, ensure_ascii=False) + "\n"
    if arguments.file == "-":
        sys.stdout.write(text)
        return Exit.OK
    write_output(arguments.file, text)
    show({"exported": arguments.file, "objects": len(items)}, arguments.form)
    return Exit.OK


def _document(name: str) -> object:
    try:
        return json.loads(read_input(name, _MAX_FILE))
    except json.JSONDecodeError as error:
        raise CommandError(Exit.USAGE, f"{name}: line {error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise CommandError(Exit.USAGE, f"{name}: not UTF-8") from None


def _import(arguments: argparse.Namespace) -> int:
    items, mistakes = read_document(_document(arguments.file), arguments.types)
    for line in mistakes:
        print(f"{arguments.file}: {line}", file=sys.stderr)
    if mistakes:
        count = len(mistakes)
        raise CommandError(
            Exit.USAGE, f"{counted(count, 'mistake')} in {arguments.file}: nothing was changed"
        )

    async def run(connection: Connection, arguments: argparse.Namespace) -> int:
        entries = [entry_of(item) for item in items]
        changes = await connection.admin.definitions.put_objects(entries, dry_run=arguments.dry_run)
        rows = [change.as_map() for change in changes]
        show_table(rows, _OUTCOMES, arguments.form)
        return Exit.REFUSED if any(row["outcome"] == "failed" for row in rows) else Exit.OK

    return converse(run, arguments)


COMMAND = Group(
    name="directory",
    help="manage public queues, computers, sites, links and users of the directory",
    commands=members(
        Command(
            name="list",
            help="list objects, of one type or of all",
            run=connected(_list),
            add_arguments=_add_list,
            examples=(Example("Queue", "every public queue"),),
        ),
        Command(
            name="show",
            help="show the attributes of an object",
            run=connected(_show),
            add_arguments=_add_one,
            examples=(Example("Queue 'orders01\\prices'", "a public queue by its path"),),
        ),
        Command(
            name="create",
            help="create an object",
            run=connected(_create),
            add_arguments=_add_create,
            examples=(Example("Site Name=Berlin", "a site"),),
        ),
        Command(
            name="set",
            help="change attributes of an object",
            run=connected(_set),
            add_arguments=_add_set,
            examples=(Example("Queue 'orders01\\prices' Label=Prices", "the label of a public queue"),),
        ),
        Command(
            name="delete",
            help="delete an object",
            run=connected(_delete),
            add_arguments=_add_one,
            examples=(Example("Site Berlin", "a site by its name"),),
        ),
        Command(
            name="export",
            help="write objects as a JSON document",
            run=connected(_export),
            add_arguments=_add_export,
            examples=(Example("directory.json --type Site --type RoutingLink", "objects of two types"),),
        ),
        Command(
            name="import",
            help="create or change objects from a JSON document",
            run=_import,
            add_arguments=_add_import,
            examples=(Example("directory.json --dry-run", "what the command would do"),),
        ),
    ),
)
