"""Hostile packets: every size and offset field of every header set to values that break parsers.

Each seed is a valid packet. Its fields become 0, 1, the maximum, one more, one less, past the end, and values
that wrap at 32 bits when doubled; then each presence flag is set with nothing behind it, and packets are
cut and extended.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.session import ConnectionParameters, EstablishConnection, SessionAck, SessionHeader
from tests.support.packet.samples import seeds

_WIDTHS = {1: "<B", 2: "<H", 4: "<I"}
BASE_PRESENCE = {"SH": 4, "DH": 5}
USER_PRESENCE = {"SH": 19, "TH": 20, "CQ": 22, "MQ": 23, "AH": 25, "HH": 28}


def size_fields(parsed: ParsedMessage) -> Iterator[tuple[str, int, int]]:
    """(name, offset, width) of every field of the packet that says how long or where something is."""
    packet = parsed.packet
    yield "PacketSize", 8, 4
    for name in ("dest", "admin", "response"):
        if getattr(parsed, f"{name}_type") == 7:
            yield f"{name}.Count", getattr(parsed, f"{name}_offset"), 2
    if parsed.security_offset:
        at = parsed.security_offset
        yield from (
            ("SenderIdSize", at + 2, 2),
            ("EncryptionKeySize", at + 4, 2),
            ("SignatureSize", at + 6, 2),
        )
        yield from (("SenderCertSize", at + 8, 4), ("ProviderInfoSize", at + 12, 4))
    at = parsed.properties_offset
    yield from (("LabelLength", at + 1, 1), ("MessageSize", at + 32, 4))
    yield from (("AllocationBodySize", at + 36, 4), ("ExtensionSize", at + 52, 4))
    if parsed.envelope_offset:
        yield "Envelope.DataLength", parsed.envelope_offset + 4, 4
        at = parsed.compound_offset
        yield from (("HTTPBodySize", at + 4, 4), ("MsgBodySize", at + 8, 4), ("MsgBodyOffset", at + 12, 4))
    if parsed.soap_offset:
        at = parsed.soap_offset
        yield from (("Soap.HeaderSectionID", at, 2), ("Soap.HeaderDataLength", at + 4, 4))
        at += 8 + 2 * struct.unpack_from("<I", packet, at + 4)[0]
        at = (at + 3) & ~3
        yield from (("Soap.BodySectionID", at, 2), ("Soap.BodyDataLength", at + 4, 4))
    if parsed.mqf_offset:
        yield from _mqf_fields(packet, parsed.mqf_offset)


def _mqf_fields(packet: bytes, at: int) -> Iterator[tuple[str, int, int]]:
    for name in ("Destination", "Administration", "Response"):
        size, _, _, count = struct.unpack_from("<IHHI", packet, at)
        yield from ((f"MQF.{name}.HeaderSize", at, 4), (f"MQF.{name}.HeaderID", at + 4, 2))
        yield f"MQF.{name}.ElementCount", at + 8, 4
        if count:
            yield f"MQF.{name}.FormatType", at + 12, 2
        at = (at + size + 3) & ~3
    yield from (("MQF.Signature.ID", at, 2), ("MQF.Signature.Size", at + 4, 4))


def values(value: int, width: int, left: int) -> list[int]:
    """What to set a field to that now holds `value`, when `left` bytes of packet follow it."""
    top = (1 << 8 * width) - 1
    wrapped = [value + 0x80000000, 0x80000000, 0x80000001, 0x7FFFFFFF, 0xC0000000] if width == 4 else []
    near = [
        value - 1,
        value + 1,
        value + 2,
        value * 2,
        left,
        left + 1,
        left // 2,
        left // 2 + 1,
        0x400000,
        0x400001,
    ]
    ends = [0, 1, 2, 3, 4, 5, 19, 20, 250, 251, 0xFFFF, 0x10000, top, top - 1, top - 3, top - 15]
    return sorted(
        {candidate for candidate in ends + near + wrapped if 0 <= candidate <= top and candidate != value}
    )


def hostile_packets() -> Iterator[tuple[str, bytes]]:
    """(what was done, bytes); many break a rule, some happen to be valid still."""
    for name, seed in seeds():
        yield from _field_mutations(name, seed)
        yield from _flag_mutations(name, seed)
        yield from _length_mutations(name, seed)


def _field_mutations(name: str, seed: bytes) -> Iterator[tuple[str, bytes]]:
    for field, offset, width in size_fields(parse(seed)):
        form = _WIDTHS[width]
        (value,) = struct.unpack_from(form, seed, offset)
        for candidate in values(value, width, len(seed) - offset - width):
            data = bytearray(seed)
            struct.pack_into(form, data, offset, candidate)
            yield f"{name}: {field} = {candidate:#x}", bytes(data)


def _flag_mutations(name: str, seed: bytes) -> Iterator[tuple[str, bytes]]:
    for flag, index in BASE_PRESENCE.items():
        yield f"{name}: BaseHeader.{flag} flipped", _flip(seed, 2, "<H", index)
    for flag, index in USER_PRESENCE.items():
        yield f"{name}: UserHeader.{flag} flipped", _flip(seed, 60, "<I", index)
    for index in (5, 6, 21):  # DM, MP
        yield f"{name}: UserHeader bit {index} flipped", _flip(seed, 60, "<I", index)
    for field, shift in (("DQ", 10), ("AQ", 13), ("RQ", 16)):
        for kind in range(8):
            data = bytearray(seed)
            (flags,) = struct.unpack_from("<I", data, 60)
            struct.pack_into("<I", data, 60, flags & ~(7 << shift) | kind << shift)
            yield f"{name}: {field} = {kind}", bytes(data)
    parsed = parse(seed)
    if parsed.transaction_offset:
        yield f"{name}: CG flipped", _flip(seed, parsed.transaction_offset, "<I", 0)
    if parsed.security_offset:
        yield f"{name}: ST = 0", seed[: parsed.security_offset] + b"\0" + seed[parsed.security_offset + 1 :]
    if parsed.debug_offset:
        yield f"{name}: QT bit 0 flipped", _flip(seed, parsed.debug_offset, "<H", 0)
        yield f"{name}: QT bit 1 flipped", _flip(seed, parsed.debug_offset, "<H", 1)
    yield f"{name}: IN set", _flip(seed, 2, "<H", 3)
    yield f"{name}: version", b"\x11" + seed[1:]
    yield f"{name}: signature", seed[:4] + b"ROIL" + seed[8:]


def _length_mutations(name: str, seed: bytes) -> Iterator[tuple[str, bytes]]:
    """PacketSize and bytes agree, but the headers do not fill them."""
    for size in range(20, min(len(seed), 700)):
        yield f"{name}: cut to {size} bytes", _sized(seed[:size])
    for cut in (1, 2, 4, 16, len(seed) // 2):
        yield f"{name}: {cut} bytes cut off", _sized(seed[:-cut])
    for extra in (1, 2, 4, 15, 16, 17, 20, 32):
        yield f"{name}: {extra} bytes added", _sized(seed + bytes(extra))


def _sized(data: bytes) -> bytes:
    return data[:8] + struct.pack("<I", len(data)) + data[12:]


def _flip(seed: bytes, offset: int, form: str, index: int) -> bytes:
    data = bytearray(seed)
    (flags,) = struct.unpack_from(form, data, offset)
    struct.pack_into(form, data, offset, flags ^ 1 << index)
    return bytes(data)


def hostile_session_packets() -> Iterator[tuple[str, bytes]]:
    """(what was done, bytes): the packets that sessions exchange about themselves, made bad."""
    sound = {
        "EstablishConnection": EstablishConnection(NULL_GUID).encode(),
        "ConnectionParameters": ConnectionParameters(1496, 120_000, 64).encode(),
        "SessionAck": SessionAck(SessionHeader()).encode(),
    }
    for name, seed in sound.items():
        size = len(seed)
        for candidate in values(size, 4, size - 12):
            yield f"{name}: PacketSize = {candidate:#x}", seed[:8] + struct.pack("<I", candidate) + seed[12:]
        for kind in range(16):
            if kind != seed[18]:
                yield f"{name}: PT = {kind}", seed[:18] + bytes([kind]) + seed[19:]
        yield f"{name}: IN clear", _flip(seed, 2, "<H", 3)
        if name == "SessionAck":
            yield f"{name}: SH clear", _flip(seed, 2, "<H", 4)
        yield f"{name}: version", b"\x11" + seed[1:]
        yield f"{name}: signature", seed[:4] + b"ROIL" + seed[8:]
