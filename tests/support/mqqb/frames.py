"""Messages by the document (MS-MQMQ 2.2.19, 2.2.20), written and read without the package that is tested."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from tests.support.mqqb import wire

NULL = UUID(int=0)
NEVER = 0xFFFFFFFF
REACH, RECEIVE, NO_REACH, NO_RECEIVE = 1, 2, 4, 8  # acknowledgments that a message asks for
DEAD_LETTER, JOURNAL = 1, 2  # journaling at the source
ORDERING_LABEL = "QM Ordering Ack"
SID = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")


@dataclass(frozen=True)
class Name:
    """A queue name as the UserHeader has it: the type value and the bytes."""

    kind: int = 0
    content: bytes = b""


def direct(text: str) -> Name:
    """A direct name, without `DIRECT=`."""
    return Name(7, wire.direct(text))


def private(number: int, kind: int = 3, manager: UUID | None = None) -> Name:
    """A private queue by its number; `kind` says whose, `manager` only with kind 6."""
    return Name(kind, (manager.bytes_le if manager else b"") + struct.pack("<I", number))


def public(guid: UUID) -> Name:
    return Name(5, guid.bytes_le)


def transaction(
    ordinal: int,
    stamp: int,
    number: int,
    previous: int,
    *,
    identifier: int = 1,
    first: bool = True,
    last: bool = True,
    final: bool = False,
    connector: UUID | None = None,
) -> bytes:
    """A TransactionHeader (2.2.20.5)."""
    flags = (connector is not None) | final << 1 | first << 2 | last << 3 | identifier << 4
    fixed = struct.pack("<IIIII", flags, ordinal, stamp, number, previous)
    return fixed + (connector.bytes_le if connector else b"")


def security(
    sender: bytes = SID, kind: int = 1, flags: int = 0, signature: bytes = b"", certificate: bytes = b""
) -> bytes:
    """A SecurityHeader (2.2.20.6) with a sender and perhaps a signature."""
    fixed = struct.pack("<HHHHII", kind | flags, len(sender), 0, len(signature), len(certificate), 0)
    return fixed + b"".join(item + bytes(-len(item) % 4) for item in (sender, signature, certificate))


def debug(queue: UUID | None = None) -> bytes:
    """A DebugHeader (2.2.20.8)."""
    return struct.pack("<HH", queue is not None, 0) + (queue.bytes_le if queue else b"")


def soap(header: str = "<h/>", body: str = "<b/>") -> bytes:
    """A SoapHeader (2.2.20.7), both sections padded."""
    found = b""
    for section, text in ((0x0320, header), (0x0384, body)):
        content = (text + "\0").encode("utf-16-le")
        found += struct.pack("<HHI", section, 0, len(content) // 2) + content
        found += bytes(-len(found) % 4)
    return found


def multi(*names: str) -> bytes:
    """A MultiQueueFormatHeader (2.2.20.1) with direct destinations."""
    elements = b"".join(struct.pack("<H", 3) + (name + "\0").encode("utf-16-le") for name in names)
    found = struct.pack("<IHHI", 12 + len(elements), 0x64, 0, len(names)) + elements
    found += bytes(-len(found) % 4)
    return (
        found
        + struct.pack("<IHHI", 12, 0xC8, 0, 0)
        + struct.pack("<IHHI", 12, 0x12C, 0, 0)
        + b"\x5e\x01"
        + bytes(6)
    )


def message(
    number: int,
    source: UUID,
    queue: Name,
    *,
    address: UUID = NULL,
    recoverable: bool = False,
    body: bytes = b"body",
    label: str = "",
    priority: int = 3,
    admin: Name | None = None,
    response: Name | None = None,
    connector: UUID | None = None,
    acks: int = 0,
    kind: int = 0,
    journal: int = 0,
    hops: int = 0,
    reach: int = NEVER,
    received: int = NEVER,
    sent: int = 0,
    correlation: bytes = bytes(20),
    tx: bytes = b"",
    secure: bytes = b"",
    traced: bytes = b"",
    envelope: bytes = b"",
    lists: bytes = b"",
    privacy: int = 0,
    extension: bytes = b"",
    session: bytes = b"",
    header_inside: bool = False,
    base_bits: int = 0,
    user_bits: int = 0,
    padding: int = 0,
) -> bytes:
    """A UserMessage. `journal`: 1 dead letter, 2 journal; `session`: a SessionHeader at its end.

    `padding` fills gaps; the bits are set besides those that the content asks for."""
    admin, response = admin or Name(), response or Name()
    transactional = bool(tx)
    flags = user_bits | hops | (recoverable or transactional) << 5 | journal << 8
    flags |= queue.kind << 10 | admin.kind << 13 | response.kind << 16
    flags |= bool(secure) << 19 | transactional << 20 | 1 << 21 | (connector is not None) << 22
    flags |= bool(lists) << 23 | bool(envelope) << 28
    user = source.bytes_le + address.bytes_le + struct.pack("<IIII", received, sent, number, flags)
    user += queue.content + admin.content + response.content + (connector.bytes_le if connector else b"")
    text = (label + "\0").encode("utf-16-le") if label else b""
    sizes = struct.pack("<IIIIIIII", 8, 42, len(body), len(body), privacy, 0x800E, 0x6801, len(extension))
    properties = struct.pack("<BBH20s", acks, len(text) // 2, kind, correlation) + sizes
    properties += text + extension + body
    properties += bytes([padding]) * (-len(properties) % 4)
    content = user + tx + secure + properties + traced + envelope + lists
    base_flags = priority * (not transactional) | bool(session) << 4 | bool(traced) << 5 | base_bits
    size = 16 + len(content) + len(session) * header_inside
    return wire.base(base_flags, size, reach) + content + session


@dataclass(frozen=True)
class Message:
    """What a UserMessage packet says."""

    packet: bytes
    base_flags: int
    size: int
    reach: int
    source: UUID
    manager: UUID
    received: int
    sent: int
    number: int
    flags: int
    destination: Name
    admin: Name
    response: Name
    tx: tuple[int, int, int, int, int] | None
    acks: int
    kind: int
    correlation: bytes
    body_type: int
    label: str
    body: bytes
    session: tuple[int, int, int, int, int, int] | None

    @property
    def delivery(self) -> int:
        return self.flags >> 5 & 3


def text_of(name: Name) -> str:
    """The text of a direct name."""
    assert name.kind == 7
    (count,) = struct.unpack_from("<H", name.content)
    text = name.content[2 : 2 + count].decode("utf-16-le")
    assert text[-1] == "\0"
    return text[:-1]


def read(packet: bytes) -> Message:
    """Takes a UserMessage without Debug, Soap and MultiQueueFormat headers apart, to its last byte."""
    version, _, base_flags, signature, size, reach = struct.unpack_from("<BBH4sII", packet)
    assert (version, signature) == (0x10, b"LIOR")
    assert not base_flags & 0x28
    source, manager, received, sent, number, flags = struct.unpack_from("<16s16sIIII", packet, 16)
    assert flags & 1 << 21
    at = 64
    names = []
    for kind in (flags >> 10 & 7, flags >> 13 & 7, flags >> 16 & 7):
        length = {2: 4, 3: 4, 4: 4, 5: 16, 6: 20}.get(kind, 0)
        if kind == 7:
            length = 2 + struct.unpack_from("<H", packet, at)[0]
            length += -length % 4
        names.append(Name(kind, packet[at : at + length]))
        at += length
    at += 16 * (flags >> 22 & 1)
    tx = None
    if flags >> 20 & 1:
        tx = struct.unpack_from("<IIIII", packet, at)
        at += 36 if tx[0] & 1 else 20
    if flags >> 19 & 1:
        _, *sizes = struct.unpack_from("<HHHHII", packet, at)
        at += 16 + sum(length + -length % 4 for length in sizes)
    acks, chars, kind, correlation = struct.unpack_from("<BBH20s", packet, at)
    body_type, _, length, _, _, _, _, extension = struct.unpack_from("<IIIIIIII", packet, at + 24)
    at += 56
    label = packet[at : at + 2 * chars].decode("utf-16-le").rstrip("\0")
    at += 2 * chars + extension
    body = packet[at : at + length]
    at += length
    at += -at % 4
    assert at == size, "the headers do not add up to PacketSize"
    session = None
    if base_flags & 0x10:
        session = wire.read_header(packet)
        at += 16
    assert at == len(packet)
    return Message(
        packet,
        base_flags,
        size,
        reach,
        UUID(bytes_le=source),
        UUID(bytes_le=manager),
        received,
        sent,
        number,
        flags,
        *names,
        tx,
        acks,
        kind,
        correlation,
        body_type,
        label,
        body,
        session,
    )


@dataclass(frozen=True)
class Ordering:
    """The body of an OrderAck (2.2.4.1) or FinalAck (2.2.5.1)."""

    ordinal: int
    stamp: int
    number: int
    previous: int
    source: UUID
    message: int


def ordering(found: Message) -> Ordering:
    ordinal, stamp, number, previous, source, identifier = struct.unpack("<IIII16sI", found.body)
    return Ordering(ordinal, stamp, number, previous, UUID(bytes_le=source), identifier)


def order_ack(
    number: int, source: UUID, queue: Name, ordinal: int, stamp: int, acknowledged: int, **fields: object
) -> bytes:
    """An OrderAck packet (MS-MQQB 2.2.4)."""
    body = struct.pack("<IIII20x", ordinal, stamp, acknowledged, acknowledged - 1)
    return _ordering(number, source, queue, 0x00FF, body, False, fields)


def final_ack(
    number: int,
    source: UUID,
    queue: Name,
    kind: int,
    tx: tuple[int, int, int, int],
    about: tuple[UUID, int],
    **fields: object,
) -> bytes:
    """A FinalAck packet (2.2.5); `tx`: ordinal, time stamp, number, previous number; `about`: the message."""
    body = struct.pack("<IIII16sI", *tx, about[0].bytes_le, about[1])
    return _ordering(number, source, queue, kind, body, True, fields)


def _ordering(
    number: int,
    source: UUID,
    queue: Name,
    kind: int,
    body: bytes,
    recoverable: bool,
    fields: dict[str, object],
) -> bytes:
    fields = {"label": ORDERING_LABEL, "priority": 0, "recoverable": recoverable, **fields}
    return message(number, source, queue, kind=kind, body=body, **fields)  # type: ignore[arg-type]
