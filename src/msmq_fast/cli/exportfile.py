"""Files of exported messages: a header, for each queue its definition and its messages, and a trailer, which
reveals that a file was truncated or changed. docs/how-to/messages.md describes both forms.

msgpack: the magic, then records of a length (u32, big-endian) and a msgpack map. jsonl: one JSON object a
line; binary values are in base64, and their names end in `_b64`. The reader does not trust the file: it
bounds and checks every record.
"""

from __future__ import annotations

import hashlib
import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO, Final, TypeVar

import msgpack

from msmq_fast.client.exchange import Stored
from msmq_fast.packet.message import Message
from msmq_fast.protocol.text import counted

__all__ = ["BadFile", "End", "ExportWriter", "Header", "Reader", "Record", "Section", "read_export"]

T = TypeVar("T")

VERSION: Final = 1
MAGIC: Final = b"\x89MQX\r\n\x1a\n"  # text transfers would change it
MAX_RECORD: Final = 0x0040_0000 + 0x1_0000  # bytes: a packet of 4 MiB, and what stands beside it
MAX_LINE: Final = 16 << 20  # bytes: the same with packet and body in base64
_LENGTH: Final = struct.Struct(">I")
_BINARY: Final = "_b64"


class BadFile(ValueError):
    """The file is not an export, or was truncated or changed; the text says which."""


@dataclass(frozen=True, slots=True)
class Header:
    """The origin and the time of the export. `export` is an identifier that is different in each file."""

    manager: str
    computer: str
    software: str
    created: int
    export: bytes


@dataclass(frozen=True, slots=True)
class Section:
    """The record of a queue, with the properties that are in the reply to GET_QUEUE. The records of the
    queue's messages follow it.
    """

    name: str
    definition: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """The last record, with the number of queues, messages and packet bytes in the file."""

    queues: int
    messages: int
    size: int


Record = Header | Section | Stored | End

# The fields of each kind of record: name, type, and the greatest value of a number.
_U32, _U64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
_FIELDS: Final[dict[str, tuple[tuple[str, type, int], ...]]] = {
    "header": (
        ("version", int, _U32),
        ("manager", str, 0),
        ("computer", str, 0),
        ("software", str, 0),
        ("created", int, _U64),
        ("export", bytes, 0),
    ),
    "queue": (("name", str, 0), ("definition", dict, 0)),
    "message": (
        ("lookup_id", int, _U64),
        ("arrived_us", int, 1 << 63),
        ("abort_count", int, _U32),
        ("move_count", int, _U32),
        ("packet", bytes, 0),
        ("reason", int, 0xFFFF),
    ),
    "end": (("queues", int, _U64), ("messages", int, _U64), ("bytes", int, _U64), ("sha256", bytes, 0)),
}


# ------------------------------------------------------------------------------------------------ writing


class ExportWriter:
    """Writes one file. Call the methods in order: header, section, messages, section, …, end."""

    def __init__(self, file: BinaryIO, form: str) -> None:
        """`form` is "msgpack" or "jsonl"."""
        self._file = file
        self._lines = form == "jsonl"
        self._digest = hashlib.sha256()
        self._queues = self._messages = self._size = 0

    def header(self, header: Header) -> None:
        """Write the header, the first record."""
        if not self._lines:
            self._write(MAGIC)
        self._put(
            {
                "kind": "header",
                "version": VERSION,
                "manager": header.manager,
                "computer": header.computer,
                "software": header.software,
                "created": header.created,
                "export": header.export,
            }
        )

    def section(self, section: Section) -> None:
        """Begin a queue: the messages that are written next belong to it."""
        self._queues += 1
        self._put({"kind": "queue", "name": section.name, "definition": section.definition})

    def message(self, message: Stored) -> None:
        """Write a message; a line of JSON contains its properties in addition to the packet."""
        self._messages += 1
        self._size += len(message.packet)
        record = {
            "kind": "message",
            "lookup_id": message.lookup_id,
            "arrived_us": message.arrived_us,
            "abort_count": message.abort_count,
            "move_count": message.move_count,
            "packet": message.packet,
            "reason": message.reason,
        }
        self._put(record | _properties(message.packet) if self._lines else record)

    def end(self) -> End:
        """Write the last record; returns the totals."""
        self._put(
            {
                "kind": "end",
                "queues": self._queues,
                "messages": self._messages,
                "bytes": self._size,
                "sha256": self._digest.digest(),
            }
        )
        return End(self._queues, self._messages, self._size)

    def _put(self, record: dict[str, Any]) -> None:
        if self._lines:
            self._write(json.dumps(_to_text(record), ensure_ascii=True).encode() + b"\n")
        else:
            body: bytes = msgpack.packb(record)
            self._write(_LENGTH.pack(len(body)) + body)

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)


def _to_text(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name + _BINARY if isinstance(value, bytes) else name: (
            b64encode(value).decode() if isinstance(value, bytes) else value
        )
        for name, value in record.items()
    }


def _properties(packet: bytes) -> dict[str, Any]:
    """Return the properties of a packet for people and scripts; `read_export` ignores them."""
    try:
        message = Message.from_packet(packet)
    except ValueError:
        return {}
    return {
        "message_id": message.identifier,
        "label": message.label,
        "class": int(message.message_class),
        "priority": message.priority,
        "delivery": message.delivery.name.lower(),
        "transactional": message.transactional,
        "body_type": message.body_type,
        "body": message.body,
        "app_specific": message.app_specific,
        "correlation_id": message.correlation_id,
        "extension": message.extension,
        "destination_queue": str(message.destination) if message.destination else None,
        "response_queue": str(message.response_queue) if message.response_queue else None,
        "admin_queue": str(message.admin_queue) if message.admin_queue else None,
        "acknowledge": int(message.acknowledge),
        "journal": int(message.journal),
        "sent_time": message.sent_time,
        "time_to_reach_queue": message.time_to_reach_queue,
        "time_to_be_received": message.time_to_be_received,
    }


# ------------------------------------------------------------------------------------------------ reading


Reader = Callable[[dict[str, Any], Iterator[dict[str, Any]]], Iterator[T]]
"""Yields what is in a file of JSON lines, from its first record and the records behind it. May raise
BadFile.
"""


def read_export(file: BinaryIO, others: Mapping[str, Reader[T]] | None = None) -> Iterator[Record | T]:
    """Yield the records of a file in either form, from Header to End. Raises BadFile.

    A file of JSON lines whose first record has one of the kinds of `others` is read by that reader.

    It holds only one record in memory at a time, whatever sizes the file claims.
    """
    digest = hashlib.sha256()
    start = file.read(1)
    records: Iterator[tuple[dict[str, Any], bytes]]
    if start == b"{":
        lines = _lines(file, start, digest)
        first = next(lines)
        other = (others or {}).get(str(first[0].get("kind")))
        if other is not None:
            yield from other(first[0], (record for record, _ in lines))
            return
        records = ((_from_text(record), before) for record, before in chain([first], lines))
    else:
        if start + file.read(len(MAGIC) - 1) != MAGIC:
            raise BadFile("this is not a file of exported messages")
        digest.update(MAGIC)
        records = _frames(file, digest)
    queues = messages = size = number = 0
    for number, (record, before) in enumerate(records):
        kind = record.get("kind")
        if (kind == "header") != (number == 0):
            raise BadFile(
                "the file does not begin with a header" if number == 0 else "the file has a second header"
            )
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise BadFile(f"record {number}: unknown kind of record")
        values = _values(record, kind, number)
        if kind == "header":
            if values["version"] != VERSION:
                raise BadFile(f"a file of version {values['version']}; this program reads version {VERSION}")
            yield Header(
                values["manager"], values["computer"], values["software"], values["created"], values["export"]
            )
        elif kind == "queue":
            queues += 1
            yield Section(values["name"], values["definition"])
        elif kind == "message":
            if not queues:
                raise BadFile(f"record {number}: a message before the first queue")
            messages += 1
            size += len(values["packet"])
            yield Stored(**values)
        else:
            if values["sha256"] != before:
                raise BadFile("the file was changed: its checksum does not match")
            if (values["queues"], values["messages"], values["bytes"]) != (queues, messages, size):
                raise BadFile("the file was changed: its counts do not match")
            if file.read(1):
                raise BadFile("the file has data after the end of the export")
            yield End(queues, messages, size)
            return
    raise BadFile(f"the file was cut: it ends after {counted(messages, 'message')}, without its last record")


Digest = Any  # hashlib has no name for it


def _frames(file: BinaryIO, digest: Digest) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the records of the msgpack form, each with the checksum of all bytes before it."""
    while head := file.read(_LENGTH.size):
        if len(head) < _LENGTH.size:
            raise BadFile("the file was cut in the middle of a record")
        (length,) = _LENGTH.unpack(head)
        if length > MAX_RECORD:
            raise BadFile(f"a record of {length} bytes; the limit is {MAX_RECORD}")
        body = file.read(length)
        if len(body) < length:
            raise BadFile("the file was cut in the middle of a record")
        before = digest.digest()
        digest.update(head)
        digest.update(body)
        try:
            record = msgpack.unpackb(body)
        except (ValueError, msgpack.exceptions.UnpackException) as error:
            raise BadFile(f"a record is not a msgpack value: {error}") from None
        yield _map(record), before


def _lines(file: BinaryIO, start: bytes, digest: Digest) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the records of the JSON form, like `_frames`, with binary values in base64."""
    while line := start + file.readline(MAX_LINE):
        start = b""
        if not line.endswith(b"\n"):
            if len(line) >= MAX_LINE:
                raise BadFile(f"a line of more than {MAX_LINE} bytes")
            raise BadFile("the file was cut in the middle of a line")
        before = digest.digest()
        digest.update(line)
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadFile(f"a line is not JSON: {error}") from None
        yield _map(record), before


def _map(record: object) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise BadFile("a record is not a map")
    return record


def _from_text(record: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in record.items():
        if not name.endswith(_BINARY):
            result[name] = value
        elif name in _DECODED:
            try:
                result[name.removesuffix(_BINARY)] = b64decode(value, validate=True)
            except (ValueError, TypeError):
                raise BadFile(f"{name} is not base64") from None
    return result


_DECODED: Final = frozenset(
    name + _BINARY for fields in _FIELDS.values() for name, kind, _ in fields if kind is bytes
)


def _values(record: dict[str, Any], kind: str, number: int) -> dict[str, Any]:
    """Return the checked fields of a record; unknown fields are ignored."""
    values: dict[str, Any] = {}
    for name, wanted, greatest in _FIELDS[kind]:
        value: Any = record.get(name)
        in_range = not isinstance(value, int) or 0 <= value <= greatest
        # bool is a subclass of int, hence the exact comparison
        if type(value) is not wanted or not in_range:
            raise BadFile(f"record {number}: {name} is missing, of the wrong type or out of range")
        values[name] = value
    return values
