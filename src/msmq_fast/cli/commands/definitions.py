"""`msmq-fast definitions`: exports and imports queues, access lists and directory objects as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

from msmq_fast.cli.confirm import add_yes, asks, confirm
from msmq_fast.cli.inputs import read_input, write_output
from msmq_fast.cli.session import add_client, connected, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.definitions import read_definitions
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.text import counted
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import show, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_MAX_FILE: Final = 64 << 20  # bytes
_COLUMNS: Final = ("object", "name", "outcome", "messages", "detail")


def _add_export(parser: Parser) -> None:
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="file to write; - for stdout (default)"
    )
    add_client(parser)


def _add_import(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="file that `definitions export` wrote; - for stdin")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be changed")
    parser.add_argument(
        "--delete",
        action="store_true",
        help="also delete queues, with their messages, and directory objects that the file does not have",
    )
    add_yes(parser)
    add_client(parser)


async def _export(connection: Connection, arguments: argparse.Namespace) -> int:
    document = await connection.admin.definitions.export()
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if arguments.file == "-":
        sys.stdout.write(text)
        return Exit.OK
    write_output(arguments.file, text)
    counts = {"queues": len(document["queues"]), "objects": len(document["directory"])}
    show({"exported": arguments.file} | counts, arguments.form)
    return Exit.OK


def _import(arguments: argparse.Namespace) -> int:
    name = arguments.file
    try:
        document = json.loads(read_input(name, _MAX_FILE))
        read_definitions(document)
    except json.JSONDecodeError as error:
        raise CommandError(Exit.USAGE, f"{name}: line {error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise CommandError(Exit.USAGE, f"{name}: not UTF-8") from None
    except RecursionError:
        raise CommandError(Exit.USAGE, f"{name}: not JSON: too deeply nested") from None
    except ValueError as error:
        raise CommandError(Exit.USAGE, f"{name}: {error}: nothing was changed") from None

    async def run(connection: Connection, arguments: argparse.Namespace) -> int:
        definitions, delete = connection.admin.definitions, arguments.delete
        if delete and not arguments.dry_run and asks(arguments):
            preview = await definitions.put(document, dry_run=True, delete=True)
            deleted = [change for change in preview if change.outcome == "deleted"]
            messages = sum(change.messages or 0 for change in deleted)
            confirm(f"delete {counted(len(deleted), 'object')}", messages)
        changes = await definitions.put(document, dry_run=arguments.dry_run, delete=delete)
        show_table([change.as_map() for change in changes], _COLUMNS, arguments.form)
        return Exit.REFUSED if any(change.outcome == "failed" for change in changes) else Exit.OK

    return converse(run, arguments)


COMMAND = Group(
    name="definitions",
    help="export and import queues, access lists and directory objects",
    description="""Exports and imports what people configure in a running server, as one JSON document: the
        public and private queues with their properties and access lists, the access list of the queue
        manager, and the objects of the directory. The document has no messages and no secrets. Administrators
        may export and import it.""",
    commands=members(
        Command(
            name="export",
            help="write the definitions as a JSON document",
            run=connected(_export),
            add_arguments=_add_export,
            examples=(Example("definitions.json", "the definitions of this server"),),
        ),
        Command(
            name="import",
            help="create and change objects as a JSON document defines them",
            description="""Creates what does not exist, and changes what differs. Nothing is deleted without
                --delete. An entry that fails does not stop the others; the exit code is then 6. The same
                import a second time changes nothing.""",
            run=_import,
            add_arguments=_add_import,
            examples=(
                Example("definitions.json --dry-run", "what the command would do, object by object"),
                Example("definitions.json", "create and change the objects"),
                Example("definitions.json --delete", "delete all others, too"),
            ),
        ),
    ),
)
