"""The verb `directory`: objects of the directory, and the whole of it as a JSON document."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from msmq_fast.cli.session import converse, show, show_table
from msmq_fast.client.connection import Connection
from msmq_fast.directory.document import document_of, entry_of, object_of, read_document
from msmq_fast.directory.objects import ATTRIBUTES, IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.values import Kind
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.exits import CommandError, Exit

__all__ = ["run_directory"]

_MAX_FILE = 256 << 20  # bytes
_COLUMNS = ("object", "name", IDENTIFIER)
_OUTCOMES = ("object", "name", "outcome", "detail")


def run_directory(arguments: argparse.Namespace) -> int:
    """`msmq-fast directory …`."""
    if arguments.action == "import":
        return _import(arguments)
    return converse(_directory, arguments)


async def _directory(connection: Connection, arguments: argparse.Namespace) -> int:
    as_json = arguments.json
    match arguments.action:
        case "list":
            kinds = [arguments.type] if arguments.type else list(ObjectType)
            items = [item for kind in kinds for item in await _all(connection, kind)]
            _show_objects(items, as_json=as_json)
        case "show":
            _show_object(await _one(connection, arguments), as_json=as_json)
        case "create":
            entry = entry_of(_given(arguments.type, arguments.values))
            await connection.put_directory(entry, "create")
            unique = RULES[arguments.type].unique[0]
            show({"created": entry.get(unique) or arguments.type.title}, as_json=as_json)
        case "set":
            item = await _one(connection, arguments)
            given = _given(arguments.type, arguments.values)
            fixed = {*RULES[arguments.type].fixed, *RULES[arguments.type].computed, IDENTIFIER}
            for name in given.values:
                if name in fixed:
                    raise CommandError(Exit.USAGE, f"{name} of a {arguments.type.title} cannot be set")
            await connection.put_directory(entry_of(given.changed({IDENTIFIER: item[IDENTIFIER]})), "set")
            _show_object(await _one(connection, arguments), as_json=as_json)
        case "delete":
            await connection.delete_directory(arguments.type.title, arguments.name)
            show({"deleted": arguments.name}, as_json=as_json)
        case "export":
            await _export(connection, arguments)
    return Exit.OK


# ---- objects


async def _all(connection: Connection, kind: ObjectType) -> list[DirectoryObject]:
    entries: list[dict[str, Any]] = []
    while page := await connection.directory_objects(kind.title, entries[-1][IDENTIFIER] if entries else ""):
        entries += page
    return [object_of(entry) for entry in entries]


async def _one(connection: Connection, arguments: argparse.Namespace) -> DirectoryObject:
    return object_of(await connection.directory_object(arguments.type.title, arguments.name))


def _show_objects(items: list[DirectoryObject], *, as_json: bool) -> None:
    if as_json:
        for item in items:
            show(entry_of(item), as_json=True)
        return
    rows = [
        {"object": item.kind.title, "name": item.describe(), IDENTIFIER: item.identifier} for item in items
    ]
    show_table(rows, _COLUMNS, as_json=False)


def _show_object(item: DirectoryObject, *, as_json: bool) -> None:
    show(entry_of(item), as_json=as_json)


def _given(kind: ObjectType, texts: list[str]) -> DirectoryObject:
    """The object of ATTRIBUTE=VALUE words; names of attributes may be in any case."""
    known = {name.casefold(): name for name in ATTRIBUTES[kind]}
    values: dict[str, Any] = {}
    for text in texts:
        word, separator, value = text.partition("=")
        name = known.get(word.strip().casefold())
        if not separator or name is None:
            names = ", ".join(known.values())
            raise CommandError(Exit.USAGE, f"{text!r}: a {kind.title} has the attributes {names}")
        try:
            values[name] = _value(ATTRIBUTES[kind][name], value)
        except ValueError as error:
            raise CommandError(Exit.USAGE, f"{name}: {error}") from None
    return DirectoryObject(kind, values)


def _value(known: Kind, text: str) -> Any:
    """A value from the command line: lists by commas, flags as true and false."""
    if known.many:
        return known.from_json([word.strip() for word in text.split(",") if word.strip()])
    plain: list[Any] = [text]
    if text.casefold() in ("true", "false"):
        plain.insert(0, text.casefold() == "true")
    elif text.removeprefix("-").isdecimal():
        plain.insert(0, int(text))
    for value in plain[:-1]:
        try:
            return known.from_json(value)
        except ValueError:
            continue
    return known.from_json(text)


# ---- documents


async def _export(connection: Connection, arguments: argparse.Namespace) -> None:
    kinds = arguments.types or list(ObjectType)
    items = [item for kind in kinds for item in await _all(connection, kind)]
    text = json.dumps(document_of(items), indent=2, ensure_ascii=False) + "\n"
    if arguments.file == "-":
        sys.stdout.write(text)
        return
    _write(arguments.file, text)
    show({"exported": arguments.file, "objects": len(items)}, as_json=arguments.json)


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{name}: {error.strerror}") from None


def _read(name: str) -> object:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MAX_FILE + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{name}: {error.strerror}") from None
    if len(data) > _MAX_FILE:
        raise CommandError(Exit.USAGE, f"{name} has more than {_MAX_FILE >> 20} MiB")
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise CommandError(Exit.USAGE, f"{name}: line {error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise CommandError(Exit.USAGE, f"{name}: not UTF-8") from None


def _import(arguments: argparse.Namespace) -> int:
    items, mistakes = read_document(_read(arguments.file), arguments.types)
    for line in mistakes:
        print(f"{arguments.file}: {line}", file=sys.stderr)
    if mistakes:
        count = len(mistakes)
        raise CommandError(
            Exit.USAGE, f"{count} mistake{'s' * (count > 1)} in {arguments.file}: nothing was changed"
        )

    async def run(connection: Connection, arguments: argparse.Namespace) -> int:
        rows: list[dict[str, Any]] = []
        for item in items:
            row = {"object": item.kind.title, "name": item.describe(), "detail": ""}
            try:
                row["outcome"] = await connection.put_directory(
                    entry_of(item), "import", dry_run=arguments.dry_run
                )
            except MSMQError as error:
                row |= {"outcome": "failed", "detail": str(error)}
            rows.append(row)
        show_table(rows, _OUTCOMES, as_json=arguments.json)
        return Exit.REFUSED if any(row["outcome"] == "failed" for row in rows) else Exit.OK

    return converse(run, arguments)
