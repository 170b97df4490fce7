"""Message packets of RemoteRead and their sections (MS-MQRR 2.2.5 … 2.2.7, 3.1.4.7)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from msmq_fast._native.framing import parse
from msmq_fast.packet.base import INFINITE, padded, utf16z

if TYPE_CHECKING:
    from collections.abc import Callable

    from msmq_fast._native.queuebase import Received
    from msmq_fast.qm.queues.queue import Queue

__all__ = ["Section", "SectionType", "extension_headers", "message_packet", "sections"]

_TTRQ = 12  # offset of BaseHeader.TimeToReachQueue
_SENT_TIME = 52  # of UserHeader.SentTime
_USER_FLAGS = 60
_HTTP = 1 << 25  # UserHeader.Flags.AH
_COMPOUND = struct.Struct("<HHIII")  # CompoundMessageHeader without its data
_SUBQUEUE_NAME = 64
_HAS_DEAD_LETTER, _HAS_SUBQUEUE, _HAS_ADDRESS = 0x01, 0x02, 0x10  # ExtensionHeader.Flags
_ADDRESS = struct.pack("<IHHI16x", 28, 0, 0, 0)  # an ExtendedAddressHeader to be ignored: type 0


class SectionType(IntEnum):
    """The part of a message packet that a section contains: SectionType (2.2.7)."""

    FULL_PACKET = 0
    BINARY_FIRST = 1
    BINARY_SECOND = 2
    SRMP_FIRST = 3
    SRMP_SECOND = 4


class Section(NamedTuple):
    """One SectionBuffer (2.2.6). `allocated` is SectionSizeAlloc: the number of bytes that `data` would have
    if it contained the whole body.
    """

    kind: SectionType
    allocated: int
    data: bytes | memoryview


def _extensions(aborts: int, moves: int, subqueue: str, dead_letter: str) -> bytes:
    """Returns the bytes of ExtensionHeader, SubqueueHeader, DeadLetterHeader and ExtendedAddressHeader.

    The time of the last move is not stored, so LastMoveTime is 0.
    """
    name = utf16z(subqueue) if subqueue else b""
    headers = struct.pack("<IIIII64s64x", 148, 0, aborts, moves, 0, name[:_SUBQUEUE_NAME])
    flags = _HAS_SUBQUEUE | _HAS_ADDRESS
    if dead_letter:
        path = padded(utf16z(dead_letter))
        headers += struct.pack("<I", 4 + len(path)) + path
        flags |= _HAS_DEAD_LETTER
    headers += _ADDRESS
    return struct.pack("<IIB3x", 12, len(headers), flags) + headers


_PLAIN = _extensions(0, 0, "", "")


def extension_headers(received: Received, queue: Queue, path_of: Callable[[int], str]) -> bytes:
    """Returns the headers that follow the packet of a message of `queue`; only queue managers see them.

    `path_of` returns the path name of the queue with an ordinal, empty if there is none.
    """
    dead_letter = path_of(received.dead_letter) if received.dead_letter else ""
    subqueue = "" if queue.part is None else queue.part.subqueue
    if received.abort_count or received.move_count or subqueue or dead_letter:
        return _extensions(received.abort_count, received.move_count, subqueue, dead_letter)
    return _PLAIN


def message_packet(received: Received, queue: Queue, path_of: Callable[[int], str]) -> bytes:
    """Returns the Message Packet Structure of a message of `queue`.

    It consists of the stored packet, whose TimeToReachQueue is replaced by the time at which the message
    expires, and the `extension_headers`.
    """
    packet = received.packet
    within = int.from_bytes(packet[_TTRQ : _TTRQ + 4], "little")
    sent = int.from_bytes(packet[_SENT_TIME : _SENT_TIME + 4], "little")
    until = min(sent + within, INFINITE)
    view = memoryview(packet)
    tail = extension_headers(received, queue, path_of)
    return b"".join((view[:_TTRQ], until.to_bytes(4, "little"), view[_TTRQ + 4 :], tail))


def sections(stored: bytes, packet: bytes, max_body: int, max_compound: int) -> list[Section]:
    """Returns the sections of `packet`, which `message_packet` has made from the packet `stored`.

    The reader limits the bytes of the body (dwMaxBodySize) or, for a message that arrived by HTTP, of the
    compound message (dwMaxCompoundMessageSize). The first section has everything before the body and the
    first bytes of the body. If these are not the whole body, a second section has the data after the body and
    its padding.
    """
    size = len(packet)
    http = int.from_bytes(stored[_USER_FLAGS : _USER_FLAGS + 4], "little") & _HTTP
    wanted = max_compound if http else max_body
    if wanted >= size:
        return [Section(SectionType.FULL_PACKET, size, packet)]
    parsed = parse(stored)
    if http:
        start = parsed.compound_offset
        length = _COMPOUND.size + _COMPOUND.unpack_from(stored, start)[2]
    else:
        start, length = parsed.body_offset, parsed.body_length
    if wanted >= length:
        return [Section(SectionType.FULL_PACKET, size, packet)]
    view = memoryview(packet)
    end = (start + length + 3) & ~3
    return [
        Section(SectionType.SRMP_FIRST if http else SectionType.BINARY_FIRST, end, view[: start + wanted]),
        Section(SectionType.SRMP_SECOND if http else SectionType.BINARY_SECOND, size - end, view[end:]),
    ]
