"""Frames of the application protocol that break its rules: lengths, msgpack that lies, depth, huge counts."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgpack

from msmq_fast.protocol.frames import HEADER, MAX_FRAME, MIN_LENGTH, Frame, pack_frame

HELLO = pack_frame(Frame.HELLO, 1, {"version": 1})
_REQUEST = 7

LENGTHS = [*range(MIN_LENGTH), MAX_FRAME + 1, 0x7FFFFFFF, 0x80000000, 0x80000005, 0xFFFFFFFE, 0xFFFFFFFF]

# what a payload may claim without having it
LIES = {
    "nothing": b"",
    "the code that is never used": b"\xc1",
    "an array of 4 G": b"\xdd\xff\xff\xff\xff",
    "an array of 64 K": b"\xdc\xff\xff",
    "a map of 4 G": b"\xdf\xff\xff\xff\xff",
    "text of 4 G": b"\xdb\xff\xff\xff\xff",
    "bytes of 4 G": b"\xc6\xff\xff\xff\xff",
    "an extension of 4 G": b"\xc9\xff\xff\xff\xff\x01",
    "an extension": b"\xd4\x01\x00",
    "a time stamp": b"\xd6\xff\x00\x00\x00\x00",
    "text that is no UTF-8": b"\x93\xa3\xff\xfe\xfd\x01\x01",
    "arrays 100,000 deep": b"\x91" * 100_000,
    "maps 100,000 deep": b"\x81\xa1a" * 100_000,
    "arrays 500 deep, complete": b"\x91" * 500 + b"\xc0",
    "more behind the value": b"\x91\x01\x91\x01",
    "a map with lists as keys": b"\x81\x91\x01\x01",
    "a key twice": b"\x82\xa1a\x01\xa1a\x02",
    "nil": b"\xc0",
    "a float": b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    "an empty array": b"\x90",
    "an empty map": b"\x80",
}

# values that no request wants, in every position of an array
_VALUES = [
    None,
    True,
    -1,
    2**63,
    2**64 - 1,
    1.5,
    "",
    "\0",
    "x" * 70_000,
    b"",
    b"x" * 70_000,
    [],
    {},
    [[]],
    {"": 0},
]
_SOUND = ["queue", 1, 0, 0]
_MESSAGE = [b"body", "label", 1, 3, 0, 0, bytes(20), b"", None, None, 0, 0, 600, 600, 0]


def broken_lengths() -> Iterator[tuple[str, bytes]]:
    """Frames after which the connection must be closed: whatever follows has no place."""
    for length in LENGTHS:
        yield f"a frame of {length} bytes", HEADER.pack(length, Frame.PING, _REQUEST) + b"\xc0"


def strange_requests() -> Iterator[tuple[str, bytes]]:
    """Whole frames with payloads that break rules: each gets an answer, or the end of the connection."""
    kinds = [kind for kind in Frame if kind < 0x80]
    for kind in [*kinds, 0, 0x7F, 0x80, 0xFF]:
        for name, payload in LIES.items():
            yield f"0x{kind:02X} with {name}", frame(kind, payload)
        for position in range(len(_SOUND)):
            for value in _VALUES:
                array = [*_SOUND[:position], value, *_SOUND[position + 1 :]]
                yield f"0x{kind:02X} with {str(value)[:20]!r} at {position}", frame(kind, packed(array))
    for position in range(len(_MESSAGE)):
        for value in _VALUES:
            message = [*_MESSAGE[:position], value, *_MESSAGE[position + 1 :]]
            yield f"SEND with {str(value)[:20]!r} at {position}", frame(Frame.SEND, packed([1, 0, [message]]))
    whole = packed([1, 3, [_MESSAGE, _MESSAGE]])
    for cut in range(len(whole)):
        yield f"SEND cut to {cut} bytes", frame(Frame.SEND, whole[:cut])
    for at in range(len(whole)):
        for byte in (0x00, 0x7F, 0xC1, 0xDD, 0xFF):
            changed = whole[:at] + bytes([byte]) + whole[at + 1 :]
            yield f"SEND with 0x{byte:02X} at {at}", frame(Frame.SEND, changed)


def packed(value: object) -> bytes:
    return bytes(msgpack.packb(value))


def frame(kind: int, payload: bytes) -> bytes:
    """A frame of the right length around any payload."""
    return HEADER.pack(MIN_LENGTH + len(payload), kind, _REQUEST) + payload


def frames(data: bytes) -> tuple[list[tuple[int, int, bytes]], bytes]:
    """(type, request id, payload) of the whole frames in `data`, and what is left."""
    found = []
    while len(data) >= HEADER.size:
        length, kind, request = HEADER.unpack_from(data)
        end = 4 + length
        if len(data) < end:
            break
        found.append((kind, request, data[HEADER.size : end]))
        data = data[end:]
    return found, data


def http_garbage() -> Iterator[tuple[str, bytes]]:
    """Bytes for the admin port that are no sound request."""
    get = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
    yield "nothing", b""
    yield "noise", bytes(range(256)) * 40
    yield "an MS-MQQB packet", struct.pack("<BBH4sII", 0x10, 0, 3, b"LIOR", 572, 0) + bytes(556)
    yield "a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512)
    yield "no version", b"GET /livez\r\n\r\n"
    yield "a strange version", b"GET /livez HTTP/9.9\r\n\r\n"
    yield "an endless method", b"A" * 100_000
    yield "an endless path", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"
    yield "an endless header", get + b"X: " + b"a" * 200_000 + b"\r\n\r\n"
    yield "100,000 headers", get + b"A: b\r\n" * 100_000 + b"\r\n"
    yield "a header without colon", get + b"nonsense\r\n\r\n"
    yield "a NUL in a header", get + b"X: a\0b\r\n\r\n"
    yield "two lengths", get + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"
    yield "a negative length", get + b"Content-Length: -1\r\n\r\n"
    yield "a huge length", get + b"Content-Length: 99999999999999999999\r\n\r\nabc"
    yield "length and chunks", get + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    yield "a chunk that lies", get + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nabc"
    yield "a chunk that is none", get + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"
    yield "a body for a GET", get + b"Content-Length: 3\r\n\r\nabc"
    yield "leaving the tree", b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "an encoded NUL", b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "a bad escape", b"GET /%zz?%ff=%c0%80 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "another method", b"DELETE /api/v1/queues HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "many in one", (get + b"\r\n") * 500
    yield "an upgrade", get + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + bytes(100)
    yield "an expectation", get + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    yield "half a request", get


def datagrams(ping: bytes) -> Iterator[tuple[str, bytes]]:
    """Datagrams for the ping port around a sound request."""
    for size in range(len(ping)):
        yield f"{size} bytes", ping[:size]
    for at in range(4):
        for byte in range(0, 256, 5):
            yield f"0x{byte:02X} at {at}", ping[:at] + bytes([byte]) + ping[at + 1 :]
    for size in (25, 100, 1500, 9000, 60_000):
        yield f"{size} bytes, sound at the front", ping + bytes(size - len(ping))
        yield f"{size} bytes of noise", b"\xa5" * size
