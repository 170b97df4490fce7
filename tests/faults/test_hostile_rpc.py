"""Hostile RPC clients against a server process: it goes on, it does not grow, it is not surprised."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Iterable

import pytest
import uvloop

from tests.faults.hostile_rpc import QM2QM, conversations
from tests.faults.hostile_server import Target, target
from tests.rpc import wire
from tests.server.processes import until

_MIB = 1 << 20
_WIDTH = 24  # connections at a time
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST


async def _attack(host: str, ports: list[int], streams: Iterable[bytes]) -> None:
    turns = asyncio.Semaphore(_WIDTH)

    async def one(port: int, stream: bytes) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        with contextlib.suppress(OSError):
            writer.write(stream)
            async with asyncio.timeout(0.1):
                while await reader.read(1 << 16):
                    pass
        connected = writer.get_extra_info("socket")
        if len(stream) % 2 and connected is not None:
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()
        turns.release()

    async with asyncio.TaskGroup() as group:
        for number, stream in enumerate(streams):
            await turns.acquire()
            group.create_task(one(ports[number % len(ports)], stream))


def _attacked(server: Target, count: int, seed: int) -> int:
    """Anonymous memory of the server, in bytes, after so many hostile connections."""
    ports = [server.server.port(name) for name in ("rpc", "qm2qm")]
    uvloop.run(_attack(server.server.host, ports, conversations(count, seed)))
    until(lambda: server.stats()["rpc_connections"] == 0, timeout=60, what="the end of hostile connections")
    return server.resident()


@pytest.mark.long(seconds=25)
@pytest.mark.timeout(400)
def test_hostile_rpc_clients() -> None:
    with target() as server:
        before = _attacked(server, 400, 1)
        after = _attacked(server, 3000, 2)
        assert after - before < 10 * _MIB, f"{(after - before) / _MIB:.1f} MiB more"
        with socket.create_connection((server.server.host, server.server.port("qm2qm")), 10) as honest:
            honest.sendall(wire.bind([(0, QM2QM, [wire.NDR])]))
            assert wire.read(honest.recv(5000)).type == wire.BIND_ACK
            honest.sendall(wire.request(1, 8))
            assert wire.read(honest.recv(5000)).type == wire.RESPONSE
        stats = server.stats()
        assert stats.get("rpc_failures", 0) == 0
        server.testify()
