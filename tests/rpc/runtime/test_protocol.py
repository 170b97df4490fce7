"""The asyncio side, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop

from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.limits import Limits
from msmq_fast.rpc.protocol import RpcProtocol, on_threads
from tests.support.rpc import wire
from tests.support.rpc.world import DEFER, ECHO, IFACE, WHO, Secured, SeeThrough, World

CONTEXTS = [(0, IFACE, [wire.NDR])]


@contextlib.asynccontextmanager
async def served(world: World) -> AsyncIterator[tuple[int, list[RpcProtocol]]]:
    loop = asyncio.get_running_loop()
    protocols: list[RpcProtocol] = []

    def factory() -> RpcProtocol:
        protocols.append(RpcProtocol(world.server, loop, loop.time, lambda: None))
        return protocols[-1]

    server = await loop.create_server(factory, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], protocols
    finally:
        server.close()
        for protocol in protocols:
            protocol.close()


async def answer(reader: asyncio.StreamReader) -> wire.Answer:
    header = await reader.readexactly(16)
    (length,) = struct.unpack_from("<H", header, 8)
    return wire.read(header + await reader.readexactly(length - 16))


async def until(condition: object) -> None:
    """Let the loop turn until something is so."""
    assert callable(condition)
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what changes is not asyncio's
            await asyncio.sleep(0)


def run(main: object, *, loop: str = "uvloop") -> None:
    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)  # type: ignore[arg-type]


@pytest.mark.rule("RP-11")
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_large_replies_and_deferred_calls(loop: str) -> None:
    world = World()
    stub = bytes(range(256)) * (4_200_000 // 256)

    async def main() -> None:
        async with served(world) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.bind(CONTEXTS, flags=wire.WHOLE | wire.MPX))
            assert (await answer(reader)).type == wire.BIND_ACK
            for call_id in (1, 2):
                writer.write(wire.request(call_id, DEFER))
            await until(lambda: len(world.service.calls) == 2)
            world.service.calls[1].reply(stub, world.service.written.append)
            world.service.calls[0].reply(b"small", world.service.written.append)
            pieces = []
            while not pieces or not pieces[-1].flags & wire.LAST:
                pieces.append(await answer(reader))
            assert {piece.call_id for piece in pieces} == {2}
            assert wire.response(pieces) == stub
            assert (await answer(reader)).stub == b"small"
            assert world.service.written == [True, True]
            writer.close()
            await until(lambda: len(list(world.server.connections)) == 0)

    run(main(), loop=loop)


def test_a_lost_connection_abandons_its_calls() -> None:
    world = World()

    async def main() -> None:
        async with served(world) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.bind(CONTEXTS) + wire.request(1, DEFER))
            await answer(reader)
            await until(lambda: world.service.calls)
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            writer.transport.abort()
            await until(lambda: world.service.abandoned)
            assert len(list(world.server.connections)) == 0
            assert len(world.server.associations) == 0

    run(main())


def test_the_clock_is_read_before_a_call_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    world, order = World(), []  # type: ignore[var-annotated]
    received = ServerConnection.received

    def noted(self: ServerConnection, *arguments: Any) -> None:
        order.append("bytes")
        received(self, *arguments)

    monkeypatch.setattr(ServerConnection, "received", noted)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: RpcProtocol(world.server, loop, loop.time, lambda: order.append("clock")), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(wire.bind(CONTEXTS))
        assert (await answer(reader)).type == wire.BIND_ACK
        writer.close()
        server.close()
        await until(lambda: len(list(world.server.connections)) == 0)

    run(main())
    assert order[:2] == ["clock", "bytes"]


def test_the_server_closes_after_its_last_word() -> None:
    world = World()

    async def main() -> None:
        async with served(world) as (port, protocols):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.bind([]) + b"and more that nobody reads")
            assert (await answer(reader)).type == wire.BIND_NAK
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await reader.readexactly(1)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.bind(CONTEXTS))
            await answer(reader)
            protocols[-1].close()
            assert await reader.read() == b""

    run(main())


def test_too_many_connections() -> None:
    world = World()
    object.__setattr__(world.server, "limits", type(world.limits)(connections=1))

    async def main() -> None:
        async with served(world) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.bind(CONTEXTS))
            await answer(reader)
            late, _ = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionResetError):
                assert await late.read() == b""
            writer.write(wire.request(1, ECHO, b"still here"))
            assert (await answer(reader)).stub == b"still here"

    run(main())


def test_deadlines_come_from_the_loop() -> None:
    world = World()
    object.__setattr__(world.server, "limits", type(world.limits)(handshake=0.05))

    async def main() -> None:
        async with served(world) as (port, _):
            reader, _ = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            assert [why for _, why, _ in world.refused] == ["handshake timeout"]

    run(main())


def test_a_client_that_reads_nothing_is_not_read_from() -> None:
    world = World()

    async def main() -> None:
        async with served(world) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            writer.write(wire.bind(CONTEXTS, flags=wire.WHOLE | wire.MPX))
            await answer(reader)
            body = bytes(5000)
            for call_id in range(1, 4001):
                writer.write(wire.request(call_id, ECHO, body))
            (connection,) = world.server.connections
            await until(lambda: not connection.reading)
            assert len(world.service.calls) < 4000
            for call_id in range(1, 4001):
                assert (await answer(reader)).call_id == call_id
            assert len(world.service.calls) == 4000

    run(main())


def test_legs_on_threads() -> None:
    class Slow(SeeThrough):
        def step(self, token: bytes) -> bytes:
            if token == b"crash":
                raise RuntimeError("step")
            return super().step(token)

    world = World()
    world.server.acceptors = type("Slows", (), {"accept": lambda self, *how: Slow(*how)})()

    async def main() -> None:
        world.server.offload = on_threads(asyncio.get_running_loop())
        async with served(world) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            secured = Secured(world.connect(), auth_type=16, level=2)
            writer.write(wire.bind(CONTEXTS, auth=secured.auth(b"hello")))
            writer.write(wire.auth3(secured.auth(b"I am alice")))
            writer.write(wire.request(1, WHO))
            assert (await answer(reader)).type == wire.BIND_ACK
            assert (await answer(reader)).stub.startswith(b"alice|16|2")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.bind(CONTEXTS, auth=secured.auth(b"crash")))
            assert (await answer(reader)).type == wire.BIND_NAK

    run(main())


class Narrow(asyncio.Transport):
    """A transport that says stop after each write, and go on when the test says so."""

    def __init__(self, protocol: RpcProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.reading = True
        self.data = b""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("10.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return False

    def writelines(self, list_of_data: object) -> None:
        self.data += b"".join(list_of_data)  # type: ignore[call-overload]
        self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def test_there_is_always_room_for_what_may_arrive() -> None:
    world = World(limits=Limits(output=300_000))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        protocol = RpcProtocol(world.server, loop, loop.time, lambda: None)
        transport = Narrow(protocol)
        protocol.connection_made(transport)

        def arrives(stream: bytes) -> bytes:
            room = protocol.get_buffer(-1)
            count = min(len(room), len(stream))
            room[:count] = stream[:count]
            protocol.buffer_updated(count)
            return stream[count:]

        arrives(wire.bind(CONTEXTS, flags=wire.WHOLE | wire.MPX) + wire.request(1, DEFER))
        protocol.resume_writing()
        rest = b"".join(wire.request(call_id, ECHO, bytes(100)) for call_id in range(2, 202))
        world.service.calls[0].reply(bytes(400_000))
        rest = arrives(rest)  # fills the buffer, and nothing of it is taken: too much waits to be written
        assert len(world.service.calls) > 1
        while rest:
            if transport.reading:
                rest = arrives(rest)
            protocol.resume_writing()
        while len(transport.data) < 400_000 + 200 * 124:
            protocol.resume_writing()
        answers = [wire.read(raw) for raw in wire.split(transport.data)]
        assert [answer.call_id for answer in answers[-200:]] == list(range(2, 202))
        protocol.connection_lost(None)

    run(main())
