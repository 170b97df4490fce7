"""Queue names: path names and format names (MS-MQMQ 2.1), and the keys for their comparison.

A path name gives the location of a queue (`host\\private$\\orders`); a format name gives the way to reach it
(`DIRECT=OS:host\\private$\\orders`). Comparisons ignore case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address
from uuid import UUID

from msmq_fast.packet.text import MAX_NAME, is_address, is_name, shown_name
from msmq_fast.protocol.errors import IllegalFormatName, IllegalQueuePathName, UnsupportedFormatNameOperation
from msmq_fast.protocol.text import quoted

MAX_COMPUTER = 256
MAX_QUEUE = 124
MAX_SUBQUEUE = 32

# MSMQ 2.0 and later: printable ASCII without " + , ; \
_NAME_CHAR = r"[\x21\x23-\x2A\x2D-\x3A\x3C-\x5B\x5D-\x7E]"
_QUEUE_NAME = re.compile(rf"{_NAME_CHAR}{{1,{MAX_QUEUE}}}")
_SUBQUEUE = re.compile(rf"{_NAME_CHAR}{{1,{MAX_SUBQUEUE}}}")
# Without the comma, which no host name has and which separates the elements of a list (2.1.7).
_COMPUTER = re.compile(rf"[\x21-\x2B\x2D-\x5B\x5D-\x7E]{{1,{MAX_COMPUTER}}}")
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_PRIVATE_ID = re.compile(r"[0-9A-Fa-f]{1,8}")
_PORT = re.compile(r"[0-9]{1,5}")
_SPX = re.compile(r"[0-9A-Fa-f]{8}\.[0-9A-Fa-f]{12}")
_IPX = re.compile(r"[0-9A-Fa-f]{1,8}:[0-9A-Fa-f]{1,12}")
_FORMAT_PREFIX = re.compile(r"(direct|public|private|dl|machine|connector|multicast)=", re.IGNORECASE)
_DOMAIN = re.compile(r"[\x21-\x7E]{1,255}")


class NameKind(IntEnum):
    """The kind of a format name: QUEUE_FORMAT_TYPE (2.2.6)."""

    PUBLIC = 1
    PRIVATE = 2
    DIRECT = 3
    MACHINE = 4
    CONNECTOR = 5
    DL = 6
    MULTICAST = 7
    SUBQUEUE = 8


class Suffix(IntEnum):
    """The kind of the suffix of a format name: QUEUE_SUFFIX_TYPE (2.2.11)."""

    NONE = 0
    JOURNAL = 1
    DEADLETTER = 2
    DEADXACT = 3
    XACTONLY = 4
    SUBQUEUE = 5


class Scope(IntEnum):
    """The group of queues of a computer to which a queue belongs."""

    PUBLIC = 0
    PRIVATE = 1
    SYSTEM = 2


@dataclass(frozen=True, slots=True)
class QueuePart:
    """The part of a path name or direct name that follows the computer."""

    scope: Scope
    queue: str  # for SYSTEM: journal, deadletter or deadxact
    subqueue: str = ""
    journal: bool = False  # the queue's own journal (;JOURNAL)

    def __str__(self) -> str:
        head = {Scope.PUBLIC: "", Scope.PRIVATE: "private$\\", Scope.SYSTEM: "system$;"}[self.scope]
        tail = f";{self.subqueue}" if self.subqueue else ";JOURNAL" if self.journal else ""
        return f"{head}{self.queue}{tail}"

    @property
    def key(self) -> str:
        """The case-folded text, for look-up among the queues of one computer."""
        return str(self).casefold()


@dataclass(frozen=True, slots=True)
class PathName:
    """A path name (2.1.1). `computer` is never `.`: the parser replaces it with the local name."""

    computer: str
    part: QueuePart

    def __str__(self) -> str:
        return f"{self.computer}\\{self.part}"

    @property
    def key(self) -> str:
        return str(self).casefold()


@dataclass(frozen=True, slots=True)
class DirectName:
    """The parts of a direct format name (2.1.2)."""

    protocol: str  # upper case: TCP, OS, HTTP, HTTPS, IPX, SPX
    address: str  # computer name or IP address (IPv6 without brackets)
    part: QueuePart
    port: int | None = None  # HTTP and HTTPS only


@dataclass(frozen=True, slots=True)
class FormatName:
    """A format name (2.1.2 to 2.1.6). `text` is canonical except that direct names keep their spelling."""

    kind: NameKind
    guid: UUID | None = None
    number: int = 0  # PRIVATE: the queue's identifier at its computer
    text: str = ""  # DIRECT, SUBQUEUE: without "DIRECT="; DL: the domain; MULTICAST: address:port
    suffix: Suffix = Suffix.NONE
    direct: DirectName | None = None

    def __str__(self) -> str:
        tail = f";{self.suffix.name}" if self.suffix not in (Suffix.NONE, Suffix.SUBQUEUE) else ""
        match self.kind:
            case NameKind.DIRECT | NameKind.SUBQUEUE:
                return f"DIRECT={self.text}"
            case NameKind.PRIVATE:
                return f"PRIVATE={self.guid}\\{self.number:08x}{tail}"
            case NameKind.DL:
                return f"DL={self.guid}" + (f"@{self.text}" if self.text else "")
            case NameKind.MULTICAST:
                return f"MULTICAST={self.text}"
            case _:
                return f"{self.kind.name}={self.guid}{tail}"

    @property
    def key(self) -> str:
        """The case-folded text, so that names that differ only in case have the same key."""
        return str(self).casefold()

    @property
    def is_illegal(self) -> bool:
        """Whether this is a direct name that a packet contained and that violates 2.1.2.

        Nothing is sent to such a name.
        """
        return self.direct is None and self.kind in (NameKind.DIRECT, NameKind.SUBQUEUE)

    @property
    def read_only(self) -> bool:
        """Whether this is a journal or dead-letter queue, which cannot be sent to."""
        return self.suffix in (Suffix.JOURNAL, Suffix.DEADLETTER, Suffix.DEADXACT)


def is_format_name(text: str) -> bool:
    """Whether `text` begins like a format name; any other text is treated as a path name."""
    return _FORMAT_PREFIX.match(text) is not None


def parse_queue_part(text: str) -> QueuePart | None:
    """Parse the part of a name that follows the computer; returns None if it violates 2.1.1 or 2.1.2."""
    if not text.isascii():  # some other letters become ASCII when their case is folded: U+017F is an s then
        return None
    folded = text.casefold()
    if folded.startswith("system$;"):
        name = folded[8:]
        return QueuePart(Scope.SYSTEM, name) if name in ("journal", "deadletter", "deadxact") else None
    scope = Scope.PUBLIC
    if folded.startswith("private$\\"):
        scope, text = Scope.PRIVATE, text[9:]
    queue, separator, tail = text.partition(";")
    if not _QUEUE_NAME.fullmatch(queue):
        return None
    if not separator:
        return QueuePart(scope, queue)
    if tail.casefold() == "journal":
        return QueuePart(scope, queue, journal=True)
    return QueuePart(scope, queue, tail) if _SUBQUEUE.fullmatch(tail) else None


def parse_path(text: str, computer: str) -> PathName:
    """Parse a path name; `computer` is the name of the local computer.

    A host `.` is replaced with this name. A name without a host, such as `orders`, means
    `.\\private$\\orders`. Raises IllegalQueuePathName if the text is not a path name.
    """
    host, separator, rest = text.partition("\\")
    if not separator:
        host, rest = ".", rf"private$\{text}"
    if host == ".":
        host = computer
    part = parse_queue_part(rest)
    if part is None and len(rest.rpartition("\\")[2].partition(";")[0]) > MAX_QUEUE:
        raise IllegalQueuePathName(
            f"the queue name in {quoted(text[:40])}… has more than {MAX_QUEUE} characters"
        )
    if part is None or not _COMPUTER.fullmatch(host):
        raise IllegalQueuePathName(
            f"{quoted(text)} is not a path name (computer\\queue or computer\\private$\\queue)"
        )
    return PathName(host, part)


def _direct(body: str) -> DirectName | None:
    protocol, separator, rest = body.partition(":")
    protocol = protocol.upper()
    if not separator:
        return None
    if protocol in ("HTTP", "HTTPS"):
        return _http(protocol, rest)
    address, separator, tail = rest.partition("\\")
    part = parse_queue_part(tail) if separator else None
    if part is None:
        return None
    match protocol:
        case "TCP":
            bare = address[1:-1] if address.startswith("[") and address.endswith("]") else address
            return DirectName(protocol, bare, part) if is_address(bare) else None
        case "OS":
            return DirectName(protocol, address, part) if _COMPUTER.fullmatch(address) else None
        case "IPX":
            return DirectName(protocol, address, part) if _IPX.fullmatch(address) else None
        case "SPX":
            return DirectName(protocol, address, part) if _SPX.fullmatch(address) else None
        case _:
            return None


def _http(protocol: str, rest: str) -> DirectName | None:
    found = re.fullmatch(
        r"//(\[[^\]/\\]+\]|[^:/\\\[\]]+)(?::([0-9]{1,5}))?[/\\]msmq[/\\](.+)", rest, re.IGNORECASE
    )
    if found is None:
        return None
    host, port, tail = found.groups()
    part = parse_queue_part(tail.replace("/", "\\"))
    if host.startswith("[") and not is_address(host[1:-1]):
        return None
    if part is None or not _COMPUTER.fullmatch(host) or (port is not None and int(port) > 0xFFFF):
        return None
    default = 443 if protocol == "HTTPS" else 80
    return DirectName(protocol, host.strip("[]"), part, default if port is None else int(port))


def _direct_name(body: str) -> FormatName | None:
    direct = _direct(body) if body.isascii() and is_name(body) else None
    if direct is None:
        return None
    part = direct.part
    if part.subqueue:
        return FormatName(NameKind.SUBQUEUE, text=body, suffix=Suffix.SUBQUEUE, direct=direct)
    suffix = Suffix.NONE
    if part.scope is Scope.SYSTEM:
        suffix = Suffix[part.queue.upper()]
    elif part.journal:
        suffix = Suffix.JOURNAL
    return FormatName(NameKind.DIRECT, text=body, suffix=suffix, direct=direct)


def _suffixed(body: str, allowed: tuple[Suffix, ...]) -> tuple[str, Suffix] | None:
    head, separator, tail = body.partition(";")
    if not separator:
        return head, Suffix.NONE
    for suffix in allowed:
        if tail.upper() == suffix.name:
            return head, suffix
    return None


def _guid_name(
    kind: NameKind, body: str, allowed: tuple[Suffix, ...], *, required: bool = False
) -> FormatName | None:
    split = _suffixed(body, allowed)
    if split is None or (required and split[1] is Suffix.NONE):
        return None
    text, suffix = split
    number = 0
    if kind is NameKind.PRIVATE:
        text, _, digits = text.partition("\\")
        if not _PRIVATE_ID.fullmatch(digits):
            return None
        number = int(digits, 16)
    return FormatName(kind, UUID(text), number, suffix=suffix) if _GUID.fullmatch(text) else None


def multicast_group(text: str) -> str | None:
    """Returns the canonical `address:port` of a multicast group (MS-MQMQ 2.1.6); None if the text is
    not one.
    """
    address, _, port = text.partition(":")
    try:
        group = IPv4Address(address)
    except ValueError:
        return None
    if not group.is_multicast or not _PORT.fullmatch(port) or int(port) > 0xFFFF:
        return None
    return f"{group}:{int(port)}"


def _multicast(body: str) -> FormatName | None:
    group = multicast_group(body)
    return None if group is None else FormatName(NameKind.MULTICAST, text=group)


def _distribution_list(body: str) -> FormatName | None:
    guid, separator, domain = body.partition("@")
    if not _GUID.fullmatch(guid) or (separator and not _DOMAIN.fullmatch(domain)):
        return None
    return FormatName(NameKind.DL, UUID(guid), text=domain)


def parse_format_name(text: str) -> FormatName:
    """Parse one format name. Raises IllegalFormatName, whose text quotes the invalid name."""
    prefix, _, body = text.partition("=")
    match prefix.upper() if text.isascii() else "":
        case "DIRECT":
            name = _direct_name(body)
        case "PUBLIC":
            name = _guid_name(NameKind.PUBLIC, body, (Suffix.JOURNAL,))
        case "PRIVATE":
            name = _guid_name(NameKind.PRIVATE, body, (Suffix.JOURNAL,))
        case "MACHINE":
            allowed = (Suffix.JOURNAL, Suffix.DEADLETTER, Suffix.DEADXACT)
            name = _guid_name(NameKind.MACHINE, body, allowed, required=True)
        case "CONNECTOR":
            name = _guid_name(NameKind.CONNECTOR, body, (Suffix.XACTONLY,))
        case "DL":
            name = _distribution_list(body)
        case "MULTICAST":
            name = _multicast(body)
        case _:
            name = None
    if name is None:
        raise IllegalFormatName(
            f"{quoted(text[:MAX_NAME])} is not a format name, such as DIRECT=OS:host\\private$\\queue or "
            "DIRECT=TCP:10.0.0.7\\private$\\queue"
        )
    return name


def parse_format_names(text: str) -> tuple[FormatName, ...]:
    """Parse a single or multiple-element format name (2.1.7).

    Raises IllegalFormatName if an element is not a format name, UnsupportedFormatNameOperation if an element
    of a list names a machine, a journal or a dead-letter queue.
    """
    names = tuple(parse_format_name(element) for element in text.split(","))
    if len(names) > 1:
        for name in names:
            if name.kind is NameKind.MACHINE or name.read_only:
                raise UnsupportedFormatNameOperation(
                    f"{name} cannot be an element of a multiple-element format name"
                )
    return names


def direct_format_name(path: PathName, protocol: str = "OS") -> FormatName:
    """Returns the direct format name of a path name, such as `DIRECT=OS:host\\private$\\orders`."""
    return parse_format_name(f"DIRECT={protocol}:{path}")


def direct_from_wire(text: str) -> FormatName:
    """Returns the direct format name that a packet contains as `text`, without `DIRECT=`.

    If the name violates 2.1.2, `direct` of the result is None. Such a name can be displayed, with unprintable
    characters escaped, but nothing is sent to it.
    """
    return _direct_name(text) or FormatName(NameKind.DIRECT, text=shown_name(text))


def direct_queue_key(text: str) -> str:
    """Returns the key (QueuePart.key) of the queue in a direct name of a packet, whatever its host.

    Returns "", which no queue has, if the text is not a valid name or contains no queue name. The host may
    violate 2.1.2: since the packet has arrived here, only the sender had to resolve the host.
    """
    if not is_name(text):
        return ""
    protocol, _, rest = text.partition(":")
    if protocol.upper() in ("HTTP", "HTTPS"):
        direct = _direct(text)
        return "" if direct is None else direct.part.key
    part = parse_queue_part(rest.partition("\\")[2])
    return "" if part is None else part.key
