"""Replaces the SecurityHeader and the body of packets that are signed, encrypted or decrypted."""

from __future__ import annotations

import struct
from typing import Final

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.packet.base import MAX_PACKET, align4
from msmq_fast.packet.multi import MQFSignatureHeader
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.errors import InsufficientResources

__all__ = ["ENCRYPTED", "protected", "security_of", "unclaimed", "with_multi_signature"]

ENCRYPTED: Final = 0x20
"""SecurityHeader.Flags.EB"""

_AUTHENTICATION: Final = 0x0F  # SecurityHeader.Flags.AS, in its second byte
_USER_FLAGS: Final = 60
_SECURITY: Final = 1 << 19  # UserHeader.Flags.SH
_SIZE: Final = 8  # BaseHeader.PacketSize
_LISTS: Final = 3


def security_of(message: ParsedMessage) -> SecurityHeader | None:
    """Returns the SecurityHeader of a message; None if it has no SecurityHeader."""
    if not message.security_offset:
        return None
    return SecurityHeader.decode(message.packet, message.security_offset)[0]


def unclaimed(message: ParsedMessage) -> bytes:
    """Returns the packet with the bit SecurityHeader.Flags.AS (authenticated) cleared: only the receiver of a
    message may set this bit.
    """
    at = message.security_offset + 1
    if not message.security_offset or not message.packet[at] & _AUTHENTICATION:
        return message.packet
    packet = bytearray(message.packet)
    packet[at] &= ~_AUTHENTICATION & 0xFF
    return bytes(packet)


def protected(
    message: ParsedMessage,
    security: SecurityHeader | None,
    *,
    body: bytes | None = None,
    message_size: int | None = None,
    privacy_level: int | None = None,
    hash_algorithm: int | None = None,
    encryption_algorithm: int | None = None,
) -> bytes:
    """Returns the packet of `message` with `security` as its SecurityHeader; None removes this header.

    `body` replaces the body. Its length becomes AllocationBodySize, and also MessageSize unless
    `message_size` is given. `privacy_level` and the two algorithms replace the fields of the
    MessagePropertiesHeader. An argument that is None changes nothing. Raises InsufficientResources if the
    packet would be larger than 4 MiB.
    """
    packet, start = message.packet, message.properties_offset
    at = message.security_offset or start
    head = bytearray(packet[:at])
    flags = int.from_bytes(head[_USER_FLAGS : _USER_FLAGS + 4], "little")
    flags = flags | _SECURITY if security is not None else flags & ~_SECURITY
    struct.pack_into("<I", head, _USER_FLAGS, flags)
    # An empty body has no offset: it is what is left behind label and extension.
    fixed = start + 56 + 2 * message.label_chars + message.extension_length
    properties = bytearray(packet[start:fixed])
    # The body of a message that came over HTTP may stand in its compound message instead.
    old = packet[fixed : fixed + message.body_length] if message.body_offset == fixed else b""
    new = old if body is None else body
    if body is not None:
        size = len(new) if message_size is None else message_size
        struct.pack_into("<II", properties, 32, size, len(new))
    for offset, value in ((40, privacy_level), (44, hash_algorithm), (48, encryption_algorithm)):
        if value is not None:
            struct.pack_into("<I", properties, offset, value)
    middle = b"" if security is None else security.encode()
    content = bytes(properties) + new
    rest = packet[align4(fixed + len(old)) : message.size]
    result = bytearray(bytes(head) + middle + _padded_at(content, len(head) + len(middle)) + rest)
    if len(result) > MAX_PACKET:
        raise InsufficientResources(
            f"the protected packet has {len(result)} bytes; the limit is {MAX_PACKET}"
        )
    struct.pack_into("<I", result, _SIZE, len(result))
    return bytes(result)


def _padded_at(content: bytes, offset: int) -> bytes:
    """Returns `content` padded with zeros so that it ends at a multiple of 4 if it begins at `offset`."""
    return content + bytes(-(offset + len(content)) % 4)


def with_multi_signature(message: ParsedMessage, signature: bytes) -> bytes:
    """Returns the packet of `message` with `signature` in its MultiQueueFormatHeader, which must be the last
    header. Raises InsufficientResources if the packet would be larger than 4 MiB.
    """
    packet, at = message.packet, message.mqf_offset
    for _ in range(_LISTS):
        at += align4(int.from_bytes(packet[at : at + 4], "little"))
    result = bytearray(packet[:at] + MQFSignatureHeader(signature).encode())
    if len(result) > MAX_PACKET:
        raise InsufficientResources(f"the signed packet has {len(result)} bytes; the limit is {MAX_PACKET}")
    struct.pack_into("<I", result, _SIZE, len(result))
    return bytes(result)
