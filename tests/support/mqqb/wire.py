"""Packets written by hand, field by field: nothing here uses the encoders that the tests check."""

from __future__ import annotations

import struct
from uuid import UUID

NEVER = 0xFFFFFFFF
PEER = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
NULL = UUID(int=0)


def base(flags: int, size: int, reach: int = NEVER, version: int = 0x10, signature: bytes = b"LIOR") -> bytes:
    return struct.pack("<BBH4sII", version, 0, flags, signature, size, reach)


def establish(
    client: UUID = PEER,
    server: UUID = NULL,
    stamp: int = 0x1DDECA4E,
    system: int = 0x310,
    refused: bool = False,
    padding: bytes = b"\x5a" * 512,
) -> bytes:
    internal = struct.pack("<HH", 0, 2 | (0x10 if refused else 0))
    header = client.bytes_le + server.bytes_le + struct.pack("<IHH", stamp, system, 0)
    return base(0x0B, 572) + internal + header + padding


def parameters(recoverable: int = 1496, ack: int = 120_000, window: int = 64, reserved: int = 0) -> bytes:
    return base(0x0B, 32) + struct.pack("<HHIIHH", 0, 3, recoverable, ack, reserved, window)


def header(
    ack: int = 0, base_ack: int = 0, flags: int = 0, sent: int = 0, recoverable: int = 0, window: int = 64
) -> bytes:
    return struct.pack("<HHIHHHH", ack, base_ack, flags, sent, recoverable, window, 0)


def session_ack(*args: int, **fields: int) -> bytes:
    return base(0x1B, 36) + struct.pack("<HH", 0, 1) + header(*args, **fields)


def read_header(data: bytes) -> tuple[int, int, int, int, int, int]:
    """(ack, recoverable base, flags, user count, recoverable count, window) of the last 16 bytes."""
    return struct.unpack("<HHIHHH", data[-16:-2])


def direct(name: str) -> bytes:
    """A direct queue name: Count, UTF-16 with NUL, padded to 4 together."""
    text = (name + "\0").encode("utf-16-le", "surrogatepass")
    field = struct.pack("<H", len(text)) + text
    return field + bytes(-len(field) % 4)


def message(
    number: int,
    *,
    queue: str = "OS:host\\private$\\q",
    recoverable: bool = False,
    body: bytes = b"body",
    label: str = "",
    priority: int = 3,
    source: UUID = PEER,
    address: UUID = NULL,
    reach: int = NEVER,
    received: int = NEVER,
    sent_time: int = 1_000,
    transaction: bytes = b"",
    security: bytes = b"",
    ack_flags: int = 0,
    admin: str | None = None,
    response: str | None = None,
    session: bytes = b"",
    header_inside: bool = False,
    message_class: int = 0,
) -> bytes:
    """A UserMessage packet; `session` is a SessionHeader, behind the packet or (header_inside)
    counted in PacketSize."""
    flags = (7 << 10) | (1 << 21) | ((1 if recoverable or transaction else 0) << 5)
    flags |= (
        (1 << 20 if transaction else 0) | (1 << 19 if security else 0) | (7 << 13 if admin is not None else 0)
    )
    flags |= 7 << 16 if response is not None else 0
    user = source.bytes_le + address.bytes_le + struct.pack("<IIII", received, sent_time, number, flags)
    user += direct(queue) + (direct(admin) if admin is not None else b"")
    user += direct(response) if response is not None else b""
    text = (label + "\0").encode("utf-16-le") if label else b""
    properties = struct.pack(
        "<BBH20sIIIIIIII",
        ack_flags,
        len(text) // 2,
        message_class,
        bytes(20),
        0,
        0,
        len(body),
        len(body),
        0,
        0x8004,
        0x6801,
        0,
    )
    properties += text + body
    properties += bytes(-len(properties) % 4)
    packet = user + transaction + security + properties
    size = 16 + len(packet) + (len(session) if header_inside else 0)
    return base(priority | (0x10 if session else 0), size, reach) + packet + session


def split(data: bytes) -> list[bytes]:
    """The packets in a stream, SessionHeaders of UserMessages included."""
    packets = []
    while data:
        (flags, size) = struct.unpack_from("<2xH4xI", data)
        if flags & 0x10 and not flags & 0x08:
            size += 16
        packets.append(data[:size])
        data = data[size:]
    return packets


def kind(packet: bytes) -> str:
    """EC, CP, ACK or MSG."""
    if not packet[2] & 0x08:
        return "MSG"
    return {1: "ACK", 2: "EC", 3: "CP"}[packet[18] & 0x0F]


def ordinal(packet: bytes) -> int:
    """UserHeader.MessageID."""
    return int(struct.unpack_from("<I", packet, 56)[0])
