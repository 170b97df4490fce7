"""Hostile programs, datagrams and HTTP clients against a server process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time

import pytest
import uvloop

from msmq_fast.protocol.frames import Frame, pack_frame
from tests.faults.hostile_frames import (
    HELLO,
    broken_lengths,
    datagrams,
    frames,
    http_garbage,
    strange_requests,
)
from tests.faults.hostile_server import target
from tests.support.packet.samples import frame as published

MIB = 1 << 20
PATIENCE = 20.0
AFTER = 99  # the id of the request that shows that the connection goes on


class Program:
    """A connection to the Unix socket that writes whatever it is told."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reader: asyncio.StreamReader | None = None

    async def say(self, data: bytes) -> None:
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_unix_connection(self.path)
            self.writer.write(HELLO)
            self.rest = b""
            assert (await self._until(1)) is not None
        with contextlib.suppress(ConnectionError):
            self.writer.write(data)

    async def _until(self, request: int) -> list[tuple[int, int, bytes]] | None:
        """Frames up to the answer to `request`; None when the server has closed."""
        assert self.reader is not None
        seen: list[tuple[int, int, bytes]] = []
        while not any(number == request for _, number, _ in seen):
            try:
                data = await self.reader.read(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                self.close()
                return None
            found, self.rest = frames(self.rest + data)
            seen += found
        return seen

    async def goes_on(self) -> bool:
        """Whether the server still answers on this connection; if not it has closed it."""
        await self.say(pack_frame(Frame.PING, AFTER, None))
        async with asyncio.timeout(PATIENCE):
            return await self._until(AFTER) is not None

    def close(self) -> None:
        if self.reader is not None:
            self.writer.transport.abort()
            self.reader = None


def test_programs_that_break_the_protocol() -> None:
    """A broken length ends the connection; anything else is answered or ends it, and is never a surprise."""
    with target() as server:
        path = str(server.server.data / "app.sock")

        async def work() -> tuple[int, int]:
            for name, data in broken_lengths():
                program = Program(path)
                await program.say(data)
                assert not await program.goes_on(), name
            program, closed, answered = Program(path), 0, 0
            for name, data in strange_requests():
                await program.say(data)
                try:
                    goes_on = await program.goes_on()
                except TimeoutError:
                    raise AssertionError(f"no answer after {name}") from None
                closed, answered = closed + (not goes_on), answered + goes_on
            program.close()
            for _ in range(200):  # without hello, or cut off inside a frame
                _, writer = await asyncio.open_unix_connection(path)
                writer.write(HELLO[:7])
                writer.transport.abort()
            return closed, answered

        uvloop.run(work())
        before = server.resident()  # with all buffers that are kept for the next connection
        print("closed, answered:", uvloop.run(work()), (server.resident() - before) // 1024, "KiB more")
        assert server.resident() - before < 24 * MIB  # the witness goes on beside them
        print(server.check())


@pytest.mark.rule("QB-063")
def test_datagrams_that_are_no_pings() -> None:
    ping = published(1)
    with target() as server:
        address = (server.server.host, server.server.port("ping"))
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.settimeout(5)
            for _ in range(20):
                for _, datagram in datagrams(ping):
                    client.sendto(datagram, address)
                time.sleep(0.01)
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while client.recv(100):
                    pass
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.bind(("127.0.54.99", 0))  # pings of the other address may have used its rate up
            client.settimeout(5)
            client.sendto(ping[:4] + struct.pack("<I", 0xFEEDF00D) + ping[8:], address)
            assert client.recv(100)[4:8] == struct.pack("<I", 0xFEEDF00D)
        print(server.check())


def test_garbage_on_the_admin_port() -> None:
    with target() as server:
        address = (server.server.host, server.server.port("admin"))
        before = server.resident()

        def work(data: bytes) -> None:
            with socket.create_connection(address, timeout=10) as client, contextlib.suppress(OSError):
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass

        for _ in range(5):
            for name, data in http_garbage():
                work(data)
                assert server.get("/livez") == b"ok\n", name
        assert server.refusals("admin request")["malformed"] >= 50
        # An address with too many connections loses those that sent no request. The witness has another.
        idle = [socket.create_connection(address, source_address=("127.0.54.98", 0)) for _ in range(200)]
        assert server.get("/readyz") == b"ok\n"
        for client in idle:
            client.close()
        assert server.resident() - before < 30 * MIB
        print(server.check())
