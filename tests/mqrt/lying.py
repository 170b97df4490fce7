"""A server that answers each request with the next of a list of lies."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgpack

from msmq_fast.protocol.frames import HEADER, HEADER_SIZE, MIN_LENGTH, Frame, pack_frame

Lie = Callable[[random.Random, int, int], bytes | None]
"""Bytes to send for a request with this type and this number; None: close the connection."""

HELLO: Final[dict[str, Any]] = {
    "version": 1,
    "server": "liar",
    "name": "liar",
    "guid": bytes(range(16)),
    "max_frame": 65_536,
}
QUEUE: Final[dict[str, Any]] = {
    "name": "liar\\private$\\x",
    "format_name": "PRIVATE=00010203-0405-0607-0809-0a0b0c0d0e0f\\00000001",
    "kind": "queue",
    "messages": 3,
    "bytes": 70,
    "transactional": True,
    "guid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "subqueues": ["a;b"],
    "base_priority": -3,
    "label": "\u00e4\U0001f600",
    "in_per_second": 0.5,
}
MESSAGE: Final[list[Any]] = [
    5, b"body", "label", 1, 3, 0, 0, bytes(20), b"", "DIRECT=OS:a\\private$\\b", None, 0, 0, 0, bytes(20), 1,
    2, 3, "DIRECT=OS:.\\x", 0, b"\1\1\0\0\0\0\0\5\7\0\0\0", 0, 0, 4, 5, 0,
]  # fmt: skip
OBJECT: Final = {
    "Identifier": "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "Pathname": "a\\b",
    "ComputerName": "a",
}
TRUTHS: Final[list[tuple[Frame, Any]]] = [
    (Frame.REPLY, [7]),
    (Frame.REPLY, ["00010203-0405-0607-0809-0a0b0c0d0e0f"]),
    (Frame.REPLY, None),
    (Frame.REPLY, QUEUE),
    (Frame.REPLY, {"queues": [QUEUE, QUEUE], "total": 2}),
    (Frame.REPLY, {"descriptor": bytes([1, 0, 4, 128, *bytes(12), 20, 0, 0, 0, 2, 0, 8, 0, 0, 0, 0, 0])}),
    (Frame.REPLY, [{"own": True, "blob": b"k", "internal": False}]),
    (Frame.REPLY, [OBJECT]),
    (Frame.REPLY, OBJECT),
    (Frame.SENT, [1, [], [9]]),
    (Frame.SENT, [0, [[0, 0xC00E0003, "x", "y"]], [0]]),
    (Frame.MESSAGE, MESSAGE),
    (Frame.ERROR, [0xC00E001A, "MQ_ERROR_BUFFER_OVERFLOW", "too large", [4, 5, 6, 7, 8, 9, 10]]),
    (Frame.ERROR, [0, "MQ_OK", "an error that is none"]),
]
"""Replies as a server makes them, each of a request that may be another one."""


def truth(_: random.Random, kind: int, number: int) -> bytes:
    """What a server would say, as far as the suite comes with it."""
    fitting = {
        Frame.SEND: 9,
        Frame.RECEIVE: 11,
        Frame.CURSOR_READ: 11,
        Frame.BEGIN: 1,
        Frame.GET_QUEUE: 3,
        Frame.CREATE_QUEUE: 3,
        Frame.PAGE_QUEUES: 4,
        Frame.SHOW_ACL: 5,
        Frame.LIST_CERTIFICATES: 6,
        Frame.SHOW_KEYS: 6,
        Frame.LIST_DIRECTORY: 7,
        Frame.SHOW_DIRECTORY: 8,
    }
    reply, payload = TRUTHS[fitting.get(Frame(kind), 0)]
    return pack_frame(reply, number, payload)


def any_truth(draw: random.Random, _: int, number: int) -> bytes:
    """A reply to another request."""
    kind, payload = draw.choice(TRUTHS)
    return pack_frame(kind, number, payload)


def damaged(draw: random.Random, kind: int, number: int) -> bytes:
    """A reply with other bytes in its payload; its frame is whole."""
    frame = bytearray(truth(draw, kind, number) if draw.random() < 0.7 else any_truth(draw, kind, number))
    for _ in range(draw.randint(1, 3)):
        frame[draw.randrange(HEADER_SIZE, len(frame))] = draw.choice(
            (0x90, 0xDF, 0xC6, 0xDB, 0xFF, 0, 0xCF, 0xC0)
        )
    return bytes(frame)


def nested(draw: random.Random, kind: int, number: int) -> bytes:
    """A value in 60,000 arrays or maps."""
    opening = b"\x91" if draw.random() < 0.5 else b"\x81\xa1k"
    payload = opening * (60_000 // len(opening)) + b"\xc0"
    reply = truth(draw, kind, number)[4]
    return HEADER.pack(MIN_LENGTH + len(payload), reply, number) + payload


def counted(draw: random.Random, kind: int, number: int) -> bytes:
    """Counts of elements and bytes that are not there."""
    payload = (
        draw.choice((b"\xdd", b"\xdf", b"\xc6", b"\xdb"))
        + draw.choice((b"\xff" * 4, b"\x7f\0\0\0"))
        + bytes(9)
    )
    return HEADER.pack(MIN_LENGTH + len(payload), truth(draw, kind, number)[4], number) + payload


def framed(draw: random.Random, kind: int, number: int) -> bytes:
    """A frame whose length is wrong."""
    length = draw.choice((0, 4, 5, 65_537, 0x7FFF_FFFF, 0xFFFF_FFFF))
    return HEADER.pack(length, Frame.REPLY, number) + truth(draw, kind, number)[HEADER_SIZE:]


def misnumbered(draw: random.Random, kind: int, number: int) -> bytes:
    """Replies to requests that do not exist, the right one, and the right one again."""
    reply = truth(draw, kind, number)
    return pack_frame(Frame.REPLY, number + 1000, None) + reply + reply


def closing(draw: random.Random, kind: int, number: int) -> bytes | None:
    """Half a frame, or none, and the end."""
    return None if draw.random() < 0.3 else truth(draw, kind, number)


LIES: Final[dict[str, Lie]] = {
    "truth": truth,
    "other replies": any_truth,
    "damage": damaged,
    "nesting": nested,
    "counts": counted,
    "lengths": framed,
    "numbers": misnumbered,
    "closing": closing,
}


@contextmanager
def lying(path: Path, lie: Lie, seed: int, hello: bytes | None = None) -> Iterator[None]:
    """Serve lies at a Unix socket. `hello` are the bytes of the answer to the hello."""
    draw = random.Random(seed)
    answer = hello if hello is not None else pack_frame(Frame.REPLY, 1, HELLO)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_serve, args=(listener, lie, draw, answer))
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _serve(listener: socket.socket, lie: Lie, draw: random.Random, hello: bytes) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as requests:
            try:
                _talk(connection, requests.read, lie, draw, hello)
            except OSError:
                continue


def _talk(
    connection: socket.socket, read: Callable[[int], bytes], lie: Lie, draw: random.Random, hello: bytes
) -> None:
    while len(header := read(HEADER_SIZE)) == HEADER_SIZE:
        length, kind, number = HEADER.unpack(header)
        read(length - MIN_LENGTH)
        answer = hello if kind == Frame.HELLO else lie(draw, kind, number)
        if answer is None:
            connection.sendall(truth(draw, kind, number)[: draw.randint(0, 12)])
            return
        connection.sendall(answer)


def seeds(folder: Path) -> list[str]:
    """Files with the payloads of true replies, for fuzzing."""
    files = []
    for index, (_, payload) in enumerate([*TRUTHS, (Frame.REPLY, HELLO)]):
        file = folder / f"seed{index}"
        file.write_bytes(msgpack.packb(payload))
        files.append(str(file))
    return files
