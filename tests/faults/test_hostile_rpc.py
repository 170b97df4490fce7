"""Hostile RPC clients against a server process: clear faults or a close each time, nothing is left open or
locked, memory does not grow, what is counted is what was sent, and a reader beside them notices nothing."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random

import pytest
import uvloop

from msmq_fast.rpc.idl.qm2qm import QM2QM as QM2QM_TABLE
from tests.faults.hostile_rpc import NEGOTIATE, QM2QM, conversations
from tests.faults.rpc_storm import Storm, break_off, broken, converse, sockets, storm, tell
from tests.faults.rpc_stubs import batches
from tests.support.processes.servers import until
from tests.support.rpc import wire
from tests.support.rpc.socketreader import ACK, Caller, Fault, RemoteQueue, readable, reading

_MIB = 1 << 20
_WIDTH = 24  # connections at a time
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST
_CONTEXT_MISMATCH = 0x1C00001A
_UNANSWERED = "PDU type"  # ends a connection without a word
_BOUND = wire.bind([(0, QM2QM, [wire.NDR])], 1)
_PEEK = 0x80000000  # PEEK_CURRENT


@pytest.fixture(scope="module")
def weather() -> Iterator[Storm]:
    """A server for the short tests; at the end the witness says what it saw."""
    with storm(MSMQ_FAST_LIMITS__SLOW_READER_TIMEOUT="2") as found:
        yield found
        found.calm()
        found.testify()


@contextlib.contextmanager
def counted(storm: Storm) -> Iterator[tuple[Counter[str], Counter[int]]]:
    """The refusals by reason and the faults by status that are counted meanwhile; filled in at the end."""
    refusals, faults = Counter[str](), Counter[int]()
    before = storm.refusals(), storm.faults()
    yield refusals, faults
    storm.calm()
    refusals.update(storm.refusals() - before[0])
    faults.update(storm.faults() - before[1])


# --------------------------------------------------------------------------------------------- lies and ends


def _lies(storm: Storm, share: float, seed: int) -> int:
    """Tell some; the faults that are counted are those that came. How many there were."""
    told = batches(Random(seed), 1000, share)
    with counted(storm) as (_, faults):
        answered = uvloop.run(tell(storm, told))
    assert faults == answered
    assert answered[0x6F7] == sum(sum(batch.bad) for batch in told)
    return sum(batch.answers for batch in told)


def _ends(storm: Storm, count: int, seed: int) -> None:
    """Conversations that the server ends: each reason is counted as often as there was one."""
    told = list(broken(Random(seed), QM2QM, count))
    with counted(storm) as (refusals, _):
        answered = uvloop.run(break_off(storm, "qm2qm", [stream for _, stream in told]))
    assert refusals == Counter(reason for reason, _ in told)
    assert answered == len(told) - refusals[_UNANSWERED]


@pytest.mark.rule("RP-12", "RP-13", "RP-16")
def test_what_is_sent_is_refused_and_counted(weather: Storm) -> None:
    assert _lies(weather, 0.05, 1) > 2000
    _ends(weather, 200, 1)
    before = weather.server.resident
    _lies(weather, 0.05, 2)
    _ends(weather, 200, 2)
    assert weather.server.resident - before < 10 * _MIB


@pytest.mark.long(seconds=250)
@pytest.mark.timeout(2000)
@pytest.mark.rule("RP-16")
def test_a_million_lies() -> None:
    """Every word of the parameters of every operation, in both syntaxes, again and again."""
    with storm() as found:
        told = batches(Random(3), 1000)
        bad = sum(sum(batch.bad) for batch in told)
        assert uvloop.run(tell(found, told[:10]))
        before = found.server.resident
        sent = 0
        while sent < 1_000_000:
            with counted(found) as (_, faults):
                assert uvloop.run(tell(found, told))[0x6F7] == bad
            assert faults[0x6F7] == bad
            sent += sum(batch.answers for batch in told)
        _ends(found, 2000, 4)
        grown = found.server.resident - before
        print(f"{sent} PDUs, {grown / _MIB:.1f} MiB more")
        assert grown < 10 * _MIB
        found.testify()


# -------------------------------------------------------------------------------------------------- handles


def test_handles_of_others_and_handles_that_are_closed(weather: Storm) -> None:
    owner, other = RemoteQueue(weather.server, "victim"), RemoteQueue(weather.server, "victim")
    owner.start()
    read = owner.reader.receive()
    assert read.result == 0
    attempts = (
        (other.reader, "end_receive", {"pphContext": read.pphContext, "dwAck": ACK}),
        (other.reader, "close_queue", {"pphContext": read.pphContext}),
        (owner.reader, "close_queue", {"pphContext": read.pphContext}),
        (owner.reader, "end_receive", {"pphContext": bytes(4) + bytes(range(16)), "dwAck": ACK}),
        (other.opener, "close_remote_queue_context", {"pphContext": read.pphContext}),
    )
    with counted(weather) as (refusals, faults):
        for caller, name, values in attempts:
            with pytest.raises(Fault, match="1C00001A"):
                caller.call(name, **values)
        assert owner.end(read, 1) == 0
        with pytest.raises(Fault, match="1C00001A"):
            owner.end(read, ACK)
        thief = Caller(weather.address, weather.port("qm2qm"), QM2QM_TABLE)
        with pytest.raises(Fault, match="C00E0007"):
            thief.call("purge_queue", hQueue=owner.handle)
        cancelled = thief.call("cancel_receive", hQueue=owner.handle, pQueue=owner.handle, dwRequestID=1)
        closed = thief.call("close_cursor", hQueue=owner.handle, hCursor=1)
        assert [cancelled.result, closed.result] == [0xC00E0007] * 2
        for queue in (owner, other):
            queue.close()
        thief.close()
    assert faults == {_CONTEXT_MISMATCH: 6, 0xC00E0007: 1}
    assert not refusals


# ---------------------------------------------------------------------------------------------------- storms


def test_too_many_presentation_contexts(weather: Storm) -> None:
    """4,000 for each of the two interfaces of the port; the first of each PDU is accepted."""
    stream = _BOUND + b"".join(wire.alter([(number, QM2QM, [wire.NDR])], 2) for number in range(1, 9000))
    with counted(weather) as (refusals, _):
        heard = uvloop.run(converse(weather.address, weather.port("qm2qm"), stream))
    kinds = Counter(raw[2] for raw in wire.split(heard))
    assert kinds == {wire.BIND_ACK: 1, wire.ALTER_RESPONSE: 7999, wire.BIND_NAK: 1}
    assert refusals == {"too many presentation contexts": 1}


def test_thousands_of_logons_that_nobody_ends(weather: Storm) -> None:
    """Half an NTLM handshake, given up, and the next one, until the connection has too many."""
    legs = b"".join(
        wire.alter([(0, QM2QM, [wire.NDR])], 2, auth=wire.Auth(10, 5, number, NEGOTIATE))
        + wire.auth3(wire.Auth(10, 5, number, b"NTLMSSP\0" + bytes(60)), 2)
        for number in range(2049)
    )
    with counted(weather) as (refusals, _):
        uvloop.run(converse(weather.address, weather.port("qm2qm"), _BOUND + legs))
    assert refusals == {"too many security contexts": 1}


def test_clients_that_come_and_go(weather: Storm) -> None:
    """Association groups, a new one for each connection; half of them end by a reset."""
    with counted(weather) as (refusals, _):
        for port in ("rpc", "qm2qm", "epm"):
            for number, one in enumerate(sockets(weather.address, weather.port(port), 300, _BOUND)):
                if number % 2:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                one.close()
    assert not refusals


def test_requests_that_never_end(weather: Storm) -> None:
    """Together they may have 64 MiB; who asks for more is turned away, and the others keep theirs."""
    part = b"".join(
        wire.request(2, 0, bytes(5800), flags=wire.FIRST if at == 0 else 0, alloc_hint=0) for at in range(700)
    )
    before = weather.server.resident
    with counted(weather) as (refusals, faults):
        held = sockets(weather.address, weather.port("qm2qm"), 20)
        for one in held:
            with contextlib.suppress(ConnectionError):
                one.sendall(_BOUND + part)
        until(lambda: weather.refusals()["too many incomplete requests"], what="a refusal", timeout=30)
        assert weather.server.resident - before < 120 * _MIB
        for one in held:
            one.close()
    assert set(refusals) == {"too many incomplete requests"}
    assert faults == {0x1C010014: refusals.total()}


def test_clients_that_take_no_replies(weather: Storm) -> None:
    """Replies of 4 MB; the reads of who takes none of them are given up, and the message is there again."""
    readable(weather.server, "large")
    for _ in range(4):
        weather.server.ok("send", "large", "-", stdin=bytes(4_000_000))
    with counted(weather) as (refusals, _):
        deaf = [RemoteQueue(weather.server, "large") for _ in range(8)]
        for number, queue in enumerate(deaf):
            for _ in range(4 if number else 3):  # one is left for who peeks
                queue.start(action=_PEEK if number else 0)
        until(lambda: weather.refusals()["slow reader"] >= len(deaf), timeout=30, what="the end of the deaf")
        for queue in deaf:
            queue.close()
    assert refusals == {"slow reader": len(deaf)}
    assert len(weather.server.messages("large")) == 4


def _idle(found: Storm, count: int) -> None:
    ports = [found.port(name) for name in ("rpc", "qm2qm", "epm")]
    mgmt = ("afa8bd80-7d8a-11c9-bef4-08002b102989", 1, 0)
    hello = wire.bind([(0, mgmt, [wire.NDR])], 1)
    idle = [one for port in ports for one in sockets(found.address, port, count // len(ports), hello)]
    until(lambda: found.connections() == len(idle) + 2, timeout=60, what="all connections")
    with reading(found.server, "victim") as queue:
        queue.start(action=_PEEK)
        assert queue.reader.receive().result == 0
    for one in idle:
        one.close()
    found.calm()


def test_hundreds_of_idle_connections(weather: Storm) -> None:
    with counted(weather) as (refusals, _):
        _idle(weather, 600)
    assert not refusals


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
def test_ten_thousand_idle_connections() -> None:
    """Or as many as the system allows to one process."""
    with storm() as found:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500
        _idle(found, min(10_000, most))
        found.testify()


# ------------------------------------------------------------------------------------------------- at random


async def _attack(found: Storm, streams: Iterable[bytes]) -> None:
    turns = asyncio.Semaphore(_WIDTH)
    ports = [found.port(name) for name in ("rpc", "qm2qm")]

    async def one(port: int, stream: bytes) -> None:
        reader, writer = await asyncio.open_connection(found.address, port)
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


def _attacked(found: Storm, count: int, seed: int) -> int:
    """Anonymous memory of the server, in bytes, after so many hostile connections."""
    uvloop.run(_attack(found, conversations(count, seed)))
    found.calm()
    return found.server.resident


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
@pytest.mark.rule("RP-12", "RP-13", "RP-16")
def test_rubbish() -> None:
    with storm() as found:
        before = _attacked(found, 400, 1)
        after = _attacked(found, 3000, 2)
        assert after - before < 10 * _MIB, f"{(after - before) / _MIB:.1f} MiB more"
        found.testify()
