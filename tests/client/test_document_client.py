"""A client with nothing but sockets and msgpack, written from docs/reference/application-protocol.md.

The document suffices to write it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path
from typing import Any

import msgpack

from tests.client.server import running


class BareClient:
    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.next_id = 0

    def send(self, kind: int, payload: Any) -> int:
        self.next_id += 1
        body = msgpack.packb(payload)
        self.socket.sendall(struct.pack(">IBI", 5 + len(body), kind, self.next_id) + body)
        return self.next_id

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data

    def frame(self) -> tuple[int, int, Any]:
        length, kind, number = struct.unpack(">IBI", self.exactly(9))
        return kind, number, msgpack.unpackb(self.exactly(length - 5))

    def call(self, kind: int, payload: Any) -> tuple[int, Any]:
        number = self.send(kind, payload)
        got, answered, value = self.frame()
        assert answered == number
        return got, value


def session(path: str) -> None:
    client = BareClient(path)
    kind, hello = client.call(0x01, {"version": 1, "client": "bare"})
    assert kind == 0x80
    assert hello["version"] == 1
    kind, queue = client.call(0x10, ["orders", {}])
    assert (kind, queue["kind"]) == (0x80, "queue")
    assert client.call(0x10, ["orders", {}])[1][:2] == [0xC00E0005, "MQ_ERROR_QUEUE_EXISTS"]
    kind, (handle,) = client.call(0x20, ["orders", 3])
    assert kind == 0x80

    two = [[b"hello", "first", 1], [b"again", "", 1]]
    kind, (count, refusals, ordinals) = client.call(0x22, [handle, 1, two])
    assert (kind, count, refusals) == (0x82, 2, [])
    kind, message = client.call(0x23, [handle, 1000, True])
    assert (kind, message[1], message[2]) == (0x84, b"hello", "first")
    assert message[14] == hello["guid"] + struct.pack("<I", ordinals[0])
    assert client.call(0x24, [handle, message[0], 0, False])[1] == message
    assert client.call(0x23, [handle, 0])[1][1] == b"again"
    assert client.call(0x23, [handle, 0])[1][1] == "MQ_ERROR_IO_TIMEOUT"

    waiting = client.send(0x23, [handle, None])
    cancel = client.send(0x25, [waiting])
    assert client.frame()[:2] == (0x81, waiting)
    assert client.frame() == (0x80, cancel, True)

    subscription = client.send(0x26, [handle, 10, True])
    assert client.frame() == (0x80, subscription, None)
    send = client.send(0x22, [handle, 0, [[b"%d" % n, "", 1] for n in range(3)]])
    bodies, first = [], None
    sent = False
    while len(bodies) < 3 or not sent:
        kind, number, value = client.frame()
        if kind == 0x82:
            assert (number, value) == (send, [3, []])
            sent = True
        else:
            assert (kind, number) == (0x85, subscription)
            first = first or value[0]
            bodies += [message[1] for message in value[1]]
    assert (first, bodies) == (1, [b"0", b"1", b"2"])
    assert client.call(0x28, [subscription, 1, 2]) == (0x80, None)
    client.send(0x2A, [subscription])
    assert client.frame()[:2] == (0x86, subscription)
    assert client.frame()[0] == 0x80
    assert client.call(0x23, [handle, 0])[1][1] == b"2"
    assert client.call(0x21, [handle]) == (0x80, None)
    assert client.call(0x11, ["orders"]) == (0x80, None)

    client.socket.sendall(struct.pack(">I", 0))
    client.socket.sendall(bytes(5))
    assert client.frame()[:2] == (0x81, 0)
    assert client.socket.recv(1) == b""


def test_a_client_written_from_the_document(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "app.sock") as server:
            await asyncio.to_thread(session, server.path)

    asyncio.run(main())
