"""The verbs `certificate` and `key`."""

from __future__ import annotations

import argparse
import json
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from msmq_fast.cli.session import converse, show, show_table
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit

__all__ = ["run_certificate", "run_key"]

_COLUMNS = ("name", "identifier", "digest", "internal", "signs", "registered", "not_after")
_LARGEST = 1 << 20  # bytes of a file with a certificate or with keys


def run_certificate(arguments: argparse.Namespace) -> int:
    """`msmq-fast certificate …`."""
    return converse(_certificate, arguments)


async def _certificate(connection: Connection, arguments: argparse.Namespace) -> int:
    user = arguments.user
    match arguments.action:
        case "create":
            _show_certificate(await connection.create_certificate(user), as_json=arguments.json)
        case "list":
            found = await connection.certificates(None if arguments.all else user)
            rows = [_plain(each) for each in found]
            show_table(rows, _COLUMNS, as_json=arguments.json)
        case "register":
            key = _read(arguments.key) if arguments.key else None
            added = await connection.add_certificate(_read(arguments.file), key, user)
            _show_certificate(added, as_json=arguments.json)
        case "remove":
            await connection.remove_certificate(arguments.identifier, user)
            show({"removed": arguments.identifier}, as_json=arguments.json)
    return Exit.OK


def _plain(certificate: dict[str, Any]) -> dict[str, Any]:
    content = dict(certificate)
    content["certificate_b64"] = b64encode(content.pop("certificate")).decode()
    content["name"] = content["name"] or content["user"]
    return content


def _show_certificate(certificate: dict[str, Any], *, as_json: bool) -> None:
    content = _plain(certificate)
    if not as_json:
        del content["certificate_b64"]
    show(content, as_json=as_json)


def run_key(arguments: argparse.Namespace) -> int:
    """`msmq-fast key …`."""
    return converse(_key, arguments)


async def _key(connection: Connection, arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "show":
            rows = [row for row in await connection.keys() if row["own"] or not arguments.own]
            _show_keys(rows, as_json=arguments.json)
        case "import":
            for guid, blob in _told(_read(arguments.file), arguments.guid):
                await connection.tell_keys(guid, blob)
                show({"imported": guid}, as_json=arguments.json)
        case "forget":
            await connection.tell_keys(arguments.guid, None)
            show({"forgotten": arguments.guid}, as_json=arguments.json)
    return Exit.OK


def _show_keys(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            blob = b64encode(row["blob"]).decode()
            content = {"guid": row["guid"], "own": row["own"], "keys": row["keys"], "blob_b64": blob}
            sys.stdout.write(json.dumps(content) + "\n")
        return
    table = [
        {"queue manager": row["guid"], "own": row["own"], "provider": key["provider"], "bits": key["bits"]}
        for row in rows
        for key in row["keys"]
    ]
    show_table(table, ("queue manager", "own", "provider", "bits"), as_json=False)


def _told(content: bytes, guid: str | None) -> list[tuple[str, bytes]]:
    """The own keys in what another queue manager showed, or a bare list of keys."""
    if guid:
        return [(guid, content)]
    try:
        rows = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
        return [(row["guid"], b64decode(row["blob_b64"], validate=True)) for row in rows if row["own"]]
    except (ValueError, KeyError, TypeError):
        raise CommandError(
            Exit.USAGE, "not what `key show --json` writes; for a bare list of keys give --guid"
        ) from None


def _read(name: str) -> bytes:
    try:
        if name == "-":
            content = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(_LARGEST + 1)
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{name}: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise CommandError(Exit.USAGE, f"{name}: larger than {_LARGEST} bytes")
    return content
