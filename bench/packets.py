"""MS-MQQB packets for the load generators, encoded with struct, independent of the server's own codec.

Layouts: MS-MQMQ 2.2.19 and 2.2.20, MS-MQQB 2.2.
"""

from __future__ import annotations

import struct
from uuid import UUID

__all__ = [
    "MAX_PACKET",
    "connection_parameters",
    "establish_connection",
    "session_ack",
    "user_message",
]

MAX_PACKET = 0x400000

_NEVER = 0xFFFFFFFF
_SIGNATURE = 0x524F494C
_INTERNAL, _SESSION_HEADER = 0x08, 0x10
_DIRECT = 7
_SHA_512, _RC4 = 0x800E, 0x6801
_NOBODY = UUID(int=0)


def _base(flags: int, size: int, time_to_reach_queue: int = _NEVER, reserved: int = 0) -> bytes:
    return struct.pack("<BBHIII", 0x10, reserved, flags, _SIGNATURE, size, time_to_reach_queue)


def _internal(packet_type: int, flags: int, content: bytes, reserved: int) -> bytes:
    return _base(flags, 20 + len(content), reserved=reserved) + struct.pack("<HH", 0, packet_type) + content


def establish_connection(
    client: UUID, server: UUID, time_stamp: int, *, pinged: bool = False, reserved: int = 0
) -> bytes:
    """The request that opens a session (MS-MQQB 2.2.3): 572 bytes. `time_stamp` is in milliseconds."""
    content = client.bytes_le + server.bytes_le
    content += struct.pack("<IHH", time_stamp, 0x0210 | (0 if pinged else 0x0100), 0) + b"\x5a" * 512
    return _internal(2, 3 | _INTERNAL, content, reserved)


def connection_parameters(
    recoverable_ack_ms: int, ack_ms: int, window: int = 64, *, reserved: int = 0
) -> bytes:
    """The two ack times in milliseconds and the window (MS-MQQB 2.2.2): 32 bytes."""
    return _internal(3, 3 | _INTERNAL, struct.pack("<IIHH", recoverable_ack_ms, ack_ms, 0, window), reserved)


def session_ack(
    ack: int,
    recoverable_base: int = 0,
    recoverable_bits: int = 0,
    *,
    user_sequence: int = 0,
    recoverable_sequence: int = 0,
    window: int = 64,
    reserved: int = 0,
) -> bytes:
    """A SessionHeader by itself (MS-MQQB 2.2.6): 36 bytes."""
    header = struct.pack(
        "<HHIHHHH", ack, recoverable_base, recoverable_bits, user_sequence, recoverable_sequence, window, 0
    )
    return _internal(1, 3 | _INTERNAL | _SESSION_HEADER, header, reserved)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _direct_name(name: str) -> bytes:
    text = (name + "\0").encode("utf-16-le")
    return _padded(struct.pack("<H", len(text)) + text)


def _security(sid: bytes) -> bytes:
    return struct.pack("<HHHHII", 1, len(sid), 0, 0, 0, 0) + _padded(sid)


def user_message(
    destination: str,
    body: bytes,
    *,
    recoverable: bool,
    transaction: bytes = b"",
    source: UUID = _NOBODY,
    message_id: int = 1,
    sent_time: int = 0,
    label: str = "",
    priority: int = 3,
    body_type: int = 0,
    acknowledge: int = 0,
    time_to_reach_queue: int = _NEVER,
    sid: bytes = b"",
    hash_algorithm: int = _SHA_512,
    encryption_algorithm: int = _RC4,
) -> bytes:
    r"""One UserMessage packet (MS-MQMQ 2.2.20) to a direct format name without `DIRECT=`, such as
    `TCP:127.0.0.1\private$\bench`; times in seconds. `transaction` is a whole TransactionHeader.

    Raises ValueError if it is too large for the protocol.
    """
    flags = (recoverable << 5) | (_DIRECT << 10) | (bool(sid) << 19) | (bool(transaction) << 20) | (1 << 21)
    user = source.bytes_le + bytes(16) + struct.pack("<IIII", _NEVER, sent_time, message_id, flags)
    user += _direct_name(destination)
    text = (label + "\0").encode("utf-16-le") if label else b""
    properties = struct.pack("<BBH20x", acknowledge, len(text) // 2, 0)
    properties += struct.pack(
        "<8I", body_type, 0, len(body), len(body), 0, hash_algorithm, encryption_algorithm, 0
    )
    content = (
        _padded(user) + transaction + (_security(sid) if sid else b"") + _padded(properties + text + body)
    )
    size = 16 + len(content)
    if size > MAX_PACKET:
        raise ValueError(f"a packet of {size} bytes; {MAX_PACKET} are allowed")
    return _base(priority, size, time_to_reach_queue) + content
