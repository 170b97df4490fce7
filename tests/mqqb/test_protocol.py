"""The asyncio adapter over loopback sockets."""

from __future__ import annotations

import asyncio
import socket
import statistics
from itertools import pairwise
from uuid import UUID

import pytest
import uvloop

from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.timers import Timers
from tests.mqqb.serving import Serving, until
from tests.support.mqqb import wire


@pytest.mark.rule("QB-001", "QB-003", "QB-006", "QB-008", "QB-362")
def test_a_session_over_a_socket() -> None:
    async def run() -> None:
        serving = Serving()
        reader, writer = await asyncio.open_connection("127.0.0.1", await serving.start())
        writer.write(wire.establish() + wire.parameters())
        assert await reader.readexactly(604)
        writer.write(b"".join(wire.message(n, recoverable=True) for n in range(1, 21)))
        ack = await asyncio.wait_for(reader.readexactly(36), 5)
        assert wire.read_header(ack)[:3] == (20, 1, 0xFFFFF)
        assert serving.host.messages() == list(range(1, 21))
        assert [s.peer_address for s in serving.endpoint.sessions] == ["127.0.0.1"]
        writer.close()
        await writer.wait_closed()
        await until(lambda: not serving.endpoint.sessions)
        assert serving.endpoint.session_context.counts.closed[CloseReason.DISCONNECTED] == 1
        serving.server.close()

    asyncio.run(run())


@pytest.mark.rule("QB-163", "QB-295", "QB-299")
@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"", wire.message(1)])
def test_strangers_are_disconnected(data: bytes) -> None:
    async def run() -> None:
        serving = Serving(timers=Timers(session_init=0.1))
        reader, writer = await asyncio.open_connection("127.0.0.1", await serving.start())
        writer.write(data)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        assert serving.endpoint.sessions == set()
        writer.close()
        serving.server.close()

    asyncio.run(run())


def test_reading_pauses_while_much_is_on_its_way_to_the_disk() -> None:
    async def run() -> None:
        serving = Serving(pending_bytes=4_000)
        reader, writer = await asyncio.open_connection("127.0.0.1", await serving.start())
        writer.write(wire.establish() + wire.parameters())
        await reader.readexactly(604)
        (session,) = serving.endpoint.sessions
        serving.quick = False
        writer.write(b"".join(wire.message(n, recoverable=True, body=bytes(1_000)) for n in range(1, 2_001)))
        await until(lambda: session.window.received > 0)
        await asyncio.sleep(0.1)
        assert session.window.received < 1_000
        serving.quick = True
        serving.touch()
        await until(lambda: len(serving.host.messages()) == 2_000)
        writer.close()
        serving.server.close()

    asyncio.run(run())


def test_a_socket_with_much_to_read_lets_others_have_their_turn() -> None:
    """uvloop reads a socket up to 32 times in a row as long as it fills its buffer."""

    async def run() -> None:
        serving = Serving()
        loop = asyncio.get_running_loop()
        port = await serving.start()
        turns: list[int] = []

        def turn() -> None:
            turns.append(session.general)
            if turns[-1] < count:
                loop.call_soon(turn)

        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.setblocking(False)
            await loop.sock_sendall(peer, wire.establish() + wire.parameters())
            await until(lambda: any(s.opened_at for s in serving.endpoint.sessions))
            (session,) = serving.endpoint.sessions
            packet = wire.message(1, admin="OS:elsewhere\\private$\\acks", ack_flags=0x0F)
            count = peer.send(packet * 5_000) // len(packet)  # before the server reads any of it
            assert count > 2_000
            turn()
            await until(lambda: session.general == count)
        steps = [after - before for before, after in pairwise(turns)]
        assert max(steps) < 2 * 65_536 // len(packet), "no turn takes more than a buffer or so"
        assert statistics.median(steps[-20:]) <= 64, "and less is read at a time"
        serving.server.close()

    uvloop.run(run())


def test_a_peer_that_never_reads_is_cut_off_with_what_was_meant_for_it() -> None:
    async def run() -> None:
        serving = Serving(limits=Limits(slow_reader=0.2))
        loop = asyncio.get_running_loop()
        port = await serving.start()
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            peer.setblocking(False)
            await loop.sock_connect(peer, ("127.0.0.1", port))
            await loop.sock_sendall(peer, wire.establish() + wire.parameters())
            await until(lambda: any(s.opened_at for s in serving.endpoint.sessions))
            (session,) = serving.endpoint.sessions
            session.attach(
                serving.host.outgoing([wire.message(n, body=bytes(1_000_000)) for n in range(1, 12)])
            )
            session.wake()
            await until(lambda: not session.alive)
            assert session.reason is CloseReason.SLOW_READER
            await until(lambda: not serving.endpoint.sessions)
        serving.server.close()

    asyncio.run(run())


def test_the_connection_of_a_session_that_another_one_ended_is_closed() -> None:
    async def run() -> None:
        serving = Serving()
        port = await serving.start()
        old, old_writer = await asyncio.open_connection("127.0.0.1", port)
        old_writer.write(wire.establish() + wire.parameters())
        await old.readexactly(604)
        (session,) = serving.endpoint.sessions
        session.heard_at -= 1_000
        new, new_writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        new_writer.write(wire.establish() + wire.parameters())
        await new.readexactly(604)
        assert session.alive
        serving.endpoint.expire(session.heard_at + 1_100)
        serving.endpoint.expire(session.heard_at + 1_110)  # neither address has answered a ping
        assert session.reason is CloseReason.SUPERSEDED
        assert await asyncio.wait_for(old.read(), 5) == b""
        for writer in (old_writer, new_writer):
            writer.close()
        serving.server.close()

    asyncio.run(run())


def test_whoever_left_a_large_packet_makes_room_for_those_that_arrive() -> None:
    async def run() -> None:
        serving = Serving(limits=Limits(unfinished=400_000))
        port = await serving.start()
        peers = []
        sessions = serving.endpoint.sessions
        for number in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.establish(client=UUID(int=number + 1)) + wire.parameters())
            await reader.readexactly(604)
            packet = wire.message(number + 1, body=bytes(200_000))
            writer.write(packet[:150_000])
            await until(lambda: all(session.receiver.held == 150_000 for session in sessions))
            peers.append((reader, writer, packet))
        assert serving.endpoint.session_context.counts.closed == {CloseReason.UNFINISHED: 2}
        for reader, _, _ in peers[:2]:
            assert await asyncio.wait_for(reader.read(), 5) == b""
        for _, writer, packet in peers[2:]:
            writer.write(packet[150_000:])
        await until(lambda: serving.host.messages() == [3, 4])
        for _, writer, _ in peers:
            writer.close()
        serving.server.close()

    asyncio.run(run())
