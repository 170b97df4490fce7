"""Decodes the packets that remote reads return (MS-MQQP 2.2.2.1, MS-MQRR 2.2.5)."""

from __future__ import annotations

import struct
from typing import Final

from msmq_fast._native.framing import BadPacket, parse
from msmq_fast.packet.base import INFINITE
from msmq_fast.protocol.errors import PacketFault
from msmq_fast.qm.reading.remote import RemoteMessage

__all__ = ["Undecodable", "message_of"]

_PRIORITIES: Final = 7
_BASE = struct.Struct("<II")  # PacketSize, TimeToReachQueue
_BASE_AT, _BASE_END = 8, 16
_SENT_TIME = 52
_EXTENSION = struct.Struct("<IIB3x")  # ExtensionHeader: its size, that of the headers behind it, Flags
_SUBQUEUE = struct.Struct("<IIII")  # SubqueueHeader: size, flags, AbortCounter, MoveCounter
_HAS_SUBQUEUE = 0x02
_MOST_EXTENSIONS = 1024  # bytes that are searched for an ExtensionHeader


class Undecodable(ValueError):
    """Raised if a packet is not a valid message. The message stays in the queue of the other computer
    (QP-209).
    """


def message_of(packet: bytes, sequential_id: int, arrived_time: int, *, absolute: bool) -> RemoteMessage:
    """Returns the message in a packet, in the form in which this server stores messages.

    `sequential_id` is the lower 7 bytes of the LookupIdentifier, 0 if they are unknown; the priority of the
    message determines the highest byte. If `absolute`, TimeToReachQueue in the packet is the time at which
    the message expires, not a duration (MS-MQRR 2.2.5.1). Raises Undecodable.
    """
    if len(packet) < _SENT_TIME + 4:
        raise Undecodable("the packet is too short")
    size, _ = _BASE.unpack_from(packet, _BASE_AT)
    if not _SENT_TIME + 4 <= size <= len(packet):
        raise Undecodable(f"BaseHeader.PacketSize is {size}, but the packet has {len(packet)} bytes")
    try:
        message = _message(packet, size, absolute=absolute)
        parsed = parse(message)
    except BadPacket as fault:
        # MS-MQRR does not define whether PacketSize includes the headers after the message.
        start = _extensions(packet) if size == len(packet) else None
        if start is None:
            raise Undecodable(str(PacketFault(fault.code))) from None
        size = start
        try:
            message = _message(packet, size, absolute=absolute)
            parsed = parse(message)
        except BadPacket as second:
            raise Undecodable(str(PacketFault(second.code))) from None
    aborts, moves = _counters(packet, size)
    lookup_id = (_PRIORITIES - parsed.priority) << 56 | sequential_id if sequential_id else 0
    return RemoteMessage(message, lookup_id, arrived_time, aborts, moves)


def _message(packet: bytes, size: int, *, absolute: bool) -> bytes:
    """Returns the first `size` bytes, a UserMessage, with TimeToReachQueue converted to a duration."""
    _, limit = _BASE.unpack_from(packet, _BASE_AT)
    if absolute and limit != INFINITE:
        sent = int.from_bytes(packet[_SENT_TIME : _SENT_TIME + 4], "little")
        limit = max(0, limit - sent)
    view = memoryview(packet)
    return b"".join((view[:_BASE_AT], _BASE.pack(size, limit), view[_BASE_END:size]))


def _extensions(packet: bytes) -> int | None:
    """Returns the offset of the ExtensionHeader, whose size field is the size of the rest of the packet."""
    last = len(packet) - _EXTENSION.size
    for start in range(last, max(last - _MOST_EXTENSIONS, 0), -1):
        size, behind, _ = _EXTENSION.unpack_from(packet, start)
        if size == _EXTENSION.size and behind == last - start:
            return start
    return None


def _counters(packet: bytes, start: int) -> tuple[int, int]:
    """Return (AbortCounter, MoveCounter) of the SubqueueHeader after the message; (0, 0) if there is none."""
    if start + _EXTENSION.size + _SUBQUEUE.size > len(packet):
        return 0, 0
    size, _, flags = _EXTENSION.unpack_from(packet, start)
    if size != _EXTENSION.size or not flags & _HAS_SUBQUEUE:
        return 0, 0
    _, _, aborts, moves = _SUBQUEUE.unpack_from(packet, start + _EXTENSION.size)
    return aborts, moves
