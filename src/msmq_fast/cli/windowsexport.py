"""Reads what contrib/powershell/Export-Msmq.ps1 writes on a Windows host: queues with their access lists,
messages with their properties, triggers, and facts about the installation.

docs/reference/windows-export.md describes the form. Each record is a JSON object on a line. The reader gives
the records of an export of this program, and a `Finding` for each thing that cannot be taken over:

1. the header, and the findings that follow from the installation;
2. for each queue a WindowsQueue, its messages as packets, and findings about them;
3. a finding for each trigger and rule;
4. the totals.

To take another property of a message over, read it in `_message`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from msmq_fast.cli.exportfile import BadFile, End, Header, Record, Section
from msmq_fast.cli.windows import UNLIMITED_KB
from msmq_fast.client.exchange import Stored
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.packet.user import SecurityHeader, TransactionHeader
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.protocol.text import counted, printable

__all__ = ["KIND", "VERSION", "Finding", "WindowsQueue", "read_windows"]

KIND: Final = "windows"
"""The kind of the first record."""
VERSION: Final = 1

_MOST_ENTRIES: Final = 10_000  # of one list or map in a record
_SHOWN: Final = 200  # characters of a text of the file in a finding
_IDENTIFIER: Final = re.compile(
    r"\{?([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\}?\\([0-9]{1,10})"
)
_DEAD_LETTERS: Final = ("system$;deadletter", "system$;deadxact")
_QUEUE_KINDS: Final = ("private", "public", "system", "journal", "subqueue")
_PROPERTIES: Final[dict[str, type]] = {
    "label": str,
    "transactional": bool,
    "journal": bool,
    "quota_kb": int,
    "journal_quota_kb": int,
    "authenticated": bool,
    "base_priority": int,
    "privacy_level": int,
    "type": str,
    "multicast_address": str,
}
_QUOTAS: Final = ("quota_kb", "journal_quota_kb")
_INSTALLATION: Final = {
    "directory_integration": "the host is in an Active Directory: this server can join it "
    "(docs/how-to/directory.md); else its public queues become queues of the directory of this server, and "
    "routing by sites is not taken over",
    "routing_server": "the host is a routing server: set it up as docs/how-to/routing.md says",
    "http_support": "messages over HTTP run in IIS there: set listen.http.port (docs/how-to/srmp.md)",
    "multicast_support": "messages over multicast are off here until pgm.enabled is set (docs/how-to/pgm.md)",
    "triggers_service": "triggers do not run here: let a program receive from the queue and do the work",
    "dtc": "MS-DTC transactions over a queue and a database do not exist here: a transaction spans the "
    "queues of one server; `prepare` and `commit` let a program coordinate more (docs/how-to/python.md)",
    "cluster": "the host is in a failover cluster: see docs/how-to/fail-over.md for a second host here",
}
"""Facts that a host has or not, and what each means here."""
_REGISTRY: Final = {
    "allownonauthenticatedrpc": "set rpc.allow_unauthenticated",
    "newremotereadserverallownonesecurityclient": "set rpc.allow_unauthenticated",
    "storereliablepath": "the store is in the data directory of the server",
    "storepersistentpath": "the store is in the data directory of the server",
    "storejournalpath": "the store is in the data directory of the server",
    "storelogpath": "the store is in the data directory of the server",
}
"""Values in the registry that have a counterpart, by their names in small letters."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing of the Windows host that is not taken over, or not as it was, and why."""

    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}"


@dataclass(frozen=True, slots=True)
class WindowsQueue(Section):
    """A private or public queue. `definition` has properties of `resources.QueueProperties`; `security` is
    SDDL with SIDs of Windows accounts, empty if it could not be read; `accounts` has their names by SID.
    """

    security: str = ""
    accounts: dict[str, str] = field(default_factory=dict)


class _Unfit(ValueError):
    """Raised for a message that cannot be taken over; the text is the reason."""


def read_windows(header: dict[str, Any], records: Iterator[dict[str, Any]]) -> Iterator[Record | Finding]:
    """Yield the records of a file whose first record is `header`. Raises BadFile."""
    version = header.get("version")
    if version != VERSION:
        raise BadFile(f"a Windows export of version {version}; this program reads version {VERSION}")
    export = _text(header, "export", 0)
    try:
        identifier = UUID(export)
    except ValueError:
        raise BadFile("record 0: export is not a GUID") from None
    computer = _text(header, "computer", 0)
    created = _number(header, "created", 0, 1 << 40)
    yield Header("", computer, str(header.get("windows", "")), created, identifier.bytes)
    yield from _Reader().read(records)


class _Reader:
    def __init__(self) -> None:
        self._queue = ""
        self._dead_letters = False
        self._noted: Counter[str] = Counter()
        self._queues = self._messages = self._stored = self._size = 0

    def read(self, records: Iterator[dict[str, Any]]) -> Iterator[Record | Finding]:
        """Yield what follows from all records behind the header."""
        for number, record in enumerate(records, 1):
            kind = record.get("kind")
            if kind in ("queue", "trigger", "rule", "end"):
                yield from self._notes()
            match kind:
                case "installation":
                    yield from _installation(record, number)
                case "queue":
                    yield from self._section(record, number)
                case "message":
                    yield from self._take(record, number)
                case "trigger" | "rule":
                    yield Finding(
                        f"{kind} {_shown(record.get('name'))}",
                        "triggers do not run here: let a program receive from the queue and do the work",
                    )
                case "finding":
                    yield Finding(_shown(record.get("subject")), _shown(record.get("text")))
                case "end":
                    yield self._end(record, number)
                    if next(records, None) is not None:
                        raise BadFile("the file has data after the end of the export")
                    return
                case _:
                    raise BadFile(f"record {number}: unknown kind of record")
        raise BadFile(
            f"the file was cut: it ends after {counted(self._messages, 'message')}, without its end"
        )

    def _end(self, record: dict[str, Any], number: int) -> End:
        given = [_number(record, name, number, 1 << 63) for name in ("queues", "messages")]
        if given != [self._queues, self._messages]:
            raise BadFile("the file was changed: its counts do not match")
        return End(self._queues, self._stored, self._size)

    # ---- queues

    def _section(self, record: dict[str, Any], number: int) -> Iterator[Record | Finding]:
        self._queues += 1
        name = self._queue = _text(record, "name", number)
        kind = record.get("queue_kind")
        if not name.startswith(".\\") or kind not in _QUEUE_KINDS:
            raise BadFile(
                f"record {number}: a queue needs a name such as .\\private$\\orders, and a queue_kind"
            )
        self._dead_letters = name[2:].casefold() in _DEAD_LETTERS
        if kind not in ("private", "public"):
            yield Section(name, {"kind": kind})
            return
        definition = {}
        for key, wanted in _PROPERTIES.items():
            value = record.get(key)
            if value is None:
                continue
            if type(value) is not wanted:
                raise BadFile(f"record {number}: {key} has the wrong type")
            unlimited = key in _QUOTAS and value == -1
            definition[key] = UNLIMITED_KB if unlimited else value
        accounts = _map(record, "accounts", number)
        if not all(isinstance(each, str) for each in accounts.values()):
            raise BadFile(f"record {number}: accounts: expected names by SID")
        security = record.get("security") or ""
        if not isinstance(security, str):
            raise BadFile(f"record {number}: security is not text")
        yield WindowsQueue(name, definition, security, accounts)
        if not security:
            yield Finding(name, "its access list could not be read: the queue gets the default one")
        if definition.get("authenticated"):
            yield Finding(name, "it accepts signed messages only: register the certificates of its senders")
        if definition.get("multicast_address"):
            yield Finding(name, "its multicast address works only with pgm.enabled")

    # ---- messages

    def _take(self, record: dict[str, Any], number: int) -> Iterator[Record | Finding]:
        if not self._queue:
            raise BadFile(f"record {number}: a message before the first queue")
        self._messages += 1
        try:
            message = _message(record, number, dead_letter=self._dead_letters)
            packet = message.to_packet()
        except (_Unfit, MSMQError) as reason:
            text = reason.detail if isinstance(reason, MSMQError) else str(reason)
            yield Finding(f"{self._queue}, message {_shown(record.get('message_id'))}", f"left out: {text}")
            return
        if record.get("authenticated") is True:
            self._noted["was authenticated there: it is taken over without its signature"] += 1
        self._stored += 1
        self._size += len(packet)
        yield Stored(
            lookup_id=self._stored,
            arrived_us=_number(record, "arrived_time", number, 0xFFFF_FFFF) * 1_000_000,
            abort_count=0,
            move_count=0,
            packet=packet,
            reason=_number(record, "class", number, 0xFFFF) if self._dead_letters else 0,
        )

    def _notes(self) -> Iterator[Finding]:
        for text, count in self._noted.items():
            yield Finding(self._queue, f"{counted(count, 'message')}: {text}")
        self._noted.clear()


def _message(record: dict[str, Any], number: int, *, dead_letter: bool) -> Message:
    """Return the message that a record describes. Raises BadFile for a field of the wrong type, _Unfit for
    one whose value cannot be taken over.
    """
    source, ordinal = _identifier(_text(record, "message_id", number), "message_id")
    correlation = record.get("correlation_id") or ""
    delivery = _number(record, "delivery", number, 1)
    transactional = record.get("transactional") is True
    sender = _bytes(record, "sender_id", number)
    kind = 0 if dead_letter else _number(record, "class", number, 0xFFFF)
    message = Message(
        body=_bytes(record, "body", number),
        label=str(record.get("label") or ""),
        destination=_name(record, "destination_queue"),
        priority=_number(record, "priority", number, 7),
        delivery=Delivery(delivery),
        body_type=_number(record, "body_type", number, 0xFFFF_FFFF),
        app_specific=_number(record, "app_specific", number, 0xFFFF_FFFF),
        extension=_bytes(record, "extension", number),
        message_class=kind,
        acknowledge=Acknowledge(_number(record, "acknowledge", number, 0x0F)),
        admin_queue=_name(record, "admin_queue"),
        response_queue=_name(record, "response_queue"),
        journal=Journal(_number(record, "journal", number, 3)),
        time_to_reach_queue=_time(record, "time_to_reach_queue", number),
        time_to_be_received=_time(record, "time_to_be_received", number),
        source_machine=source,
        message_id=ordinal,
        sent_time=_number(record, "sent_time", number, 0xFFFF_FFFF),
    )
    if correlation:
        other, last = _identifier(str(correlation), "correlation_id")
        message.correlation_id = other.bytes_le + last.to_bytes(4, "little")
    if transactional:
        first, end = record.get("first_in_transaction"), record.get("last_in_transaction")
        message.transaction = TransactionHeader(0, 0, 0, first=first is True, last=end is True)
    if sender:
        message.security = SecurityHeader(sender_id_type=1, sender_id=sender)
    return message


def _identifier(text: str, name: str) -> tuple[UUID, int]:
    found = _IDENTIFIER.fullmatch(text)
    if found is None or int(found[2]) > 0xFFFF_FFFF:
        raise _Unfit(f"{name} {_shown(text)} is not of the form {{GUID}}\\NUMBER")
    return UUID(found[1]), int(found[2])


def _name(record: dict[str, Any], name: str) -> FormatName | None:
    text = record.get(name)
    if not text:
        return None
    try:
        return parse_format_name(str(text))
    except MSMQError:
        raise _Unfit(f"{name} {_shown(text)} is not a valid format name") from None


def _time(record: dict[str, Any], name: str, number: int) -> int:
    return INFINITE if record.get(name) is None else _number(record, name, number, INFINITE)


# ---- the installation


def _installation(record: dict[str, Any], number: int) -> Iterator[Finding]:
    for name, text in _INSTALLATION.items():
        if record.get(name) is True:
            yield Finding("the host", text)
    certificates = record.get("certificates", 0)
    if isinstance(certificates, int) and certificates > 0:
        yield Finding(
            "the host",
            f"{counted(certificates, 'certificate')} of users: see `msmq-fast certificate register`",
        )
    for name, messages in _map(record, "outgoing", number).items():
        if isinstance(messages, int) and messages > 0:
            yield Finding(
                f"outgoing queue {_shown(name)}",
                f"{counted(messages, 'message')} for another computer: let the host deliver before it goes",
            )
    for name, value in _map(record, "registry", number).items():
        counterpart = _REGISTRY.get(name.casefold(), "see docs/reference/configuration.md for a counterpart")
        yield Finding(f"registry value {_shown(name)} = {_shown(value)}", f"not taken over: {counterpart}")


# ---- fields


def _shown(value: object) -> str:
    text = printable(str(value if value is not None else "?"))
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _text(record: dict[str, Any], name: str, number: int) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise BadFile(f"record {number}: {name} is missing or not text")
    return value


def _number(record: dict[str, Any], name: str, number: int, greatest: int) -> int:
    value = record.get(name, 0)
    if type(value) is not int or not 0 <= value <= greatest:
        raise BadFile(f"record {number}: {name} is not a number from 0 to {greatest}")
    return value


def _bytes(record: dict[str, Any], name: str, number: int) -> bytes:
    try:
        return b64decode(record.get(f"{name}_b64") or "", validate=True)
    except (ValueError, TypeError):
        raise BadFile(f"record {number}: {name}_b64 is not base64") from None


def _map(record: dict[str, Any], name: str, number: int) -> dict[str, Any]:
    value = record.get(name) or {}
    if not isinstance(value, dict) or len(value) > _MOST_ENTRIES:
        raise BadFile(f"record {number}: {name} is not an object of at most {_MOST_ENTRIES} entries")
    return value
