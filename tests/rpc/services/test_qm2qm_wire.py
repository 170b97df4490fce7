"""qm2qm through the whole runtime: requests and replies as bytes written by hand."""

from __future__ import annotations

import struct

import pytest

from msmq_fast.rpc.idl.qm2qm import MAX_PACKET
from tests.rpc.services.lines import Endpoint, Line
from tests.rpc.services.qm2qm import INFINITE, LICENSE, NULL_CONTEXT, desc, desc2, open_queue
from tests.support.clocks import WALL
from tests.support.rpc import wire

BAD_STUB_DATA, CONTEXT_MISMATCH, OP_RANGE = 0x6F7, 0x1C00001A, 0x1C010002
CANCELED_BY_CLIENT = 0x400E03E9


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint("qm2qm")


@pytest.mark.rule("QP-068", "QP-069", "QP-070", "QP-071", "QP-073")
def test_what_the_replies_of_reads_look_like(endpoint: Endpoint) -> None:
    world = endpoint.remote.world
    key = world.send(b"body")
    packets: list[bytes] = []
    world.manager.find("orders").core.peek(key, lambda message, _: packets.append(message.packet))
    packet = packets[0]
    handle = endpoint.remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    size = len(packet)
    described = struct.pack("<9IHH", handle, 0, 0, 0, size, handle, 1, 1, WALL, 0, 0)
    array = struct.pack("<III", size, 0, size) + packet + bytes(-size % 4)

    stub = line.call(0, desc(handle)).stub
    first, stub = stub[:20], stub[20:]
    assert first[:4] == bytes(4)
    assert first != NULL_CONTEXT
    assert stub[:40] == described
    assert stub[40:44] != bytes(4)
    assert stub[44:] == array + bytes(4)
    assert line.call(1, first + struct.pack("<I", 1)).stub == NULL_CONTEXT + bytes(4)

    stub = line.call(9, desc2(handle)).stub
    second, stub = stub[:20], stub[20:]
    assert second != first
    stub = stub[4:]  # alignment to 8
    assert stub[:4] != bytes(4)
    assert stub[8:16] == struct.pack("<Q", key & (1 << 56) - 1)
    assert stub[16:56] == described
    assert stub[60:] == array + bytes(4)

    empty = line.call(9, desc2(handle, request=2)).stub
    assert empty[:20] == NULL_CONTEXT
    assert len(empty) == 88
    assert empty[-4:] == struct.pack("<I", 0xC00E001B)
    assert len(line.call(0, desc(handle, request=2)).stub) == 68


@pytest.mark.rule("QP-076")
@pytest.mark.parametrize("fits", [True, False])
def test_the_greatest_packet(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, fits: bool) -> None:
    assert MAX_PACKET == 0x420000
    world = endpoint.remote.world
    key = world.send(bytes(1000))
    sizes: list[int] = []
    world.manager.find("orders").core.peek(key, lambda message, _: sizes.append(len(message.packet)))
    monkeypatch.setattr("msmq_fast.rpc.services.qm2qm.MAX_PACKET", sizes[0] - (not fits))
    handle = endpoint.remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    result = line.call(9, desc2(handle)).stub[-4:]
    assert result == struct.pack("<I", 0 if fits else 0xC00E0027)


@pytest.mark.rule("QP-170", "QP-171")
def test_the_version_has_four_bytes(endpoint: Endpoint) -> None:
    stub = Line(endpoint).call(8, b"").stub
    assert len(stub) == 4
    assert struct.unpack("<BBH", stub)[:2] == (6, 1)


@pytest.mark.rule("QP-009", "QP-034", "QP-075", "QP-101", "QP-162", "QP-015")
@pytest.mark.parametrize(
    ("opnum", "stub", "status"),
    [
        (2, LICENSE + struct.pack("<IIII", 17, 1, 1, 1), BAD_STUB_DATA),
        (0, desc(7, size=4), BAD_STUB_DATA),
        (0, desc(7, size=0x420001), BAD_STUB_DATA),
        (1, bytes(range(1, 21)) + struct.pack("<I", 0), BAD_STUB_DATA),
        (1, bytes(range(1, 21)) + struct.pack("<I", 3), BAD_STUB_DATA),
        (7, struct.pack("<I", 4), BAD_STUB_DATA),
        (0, desc(7)[:-1], BAD_STUB_DATA),
        (11, b"", OP_RANGE),
    ],
    ids=["dwMQS", "no buffer", "size", "ack 0", "ack 3", "port", "short", "opnum"],
)
def test_requests_that_break_a_rule(endpoint: Endpoint, opnum: int, stub: bytes, status: int) -> None:
    line = Line(endpoint)
    answer = line.call(opnum, stub)
    assert (answer.type, answer.status) == (wire.FAULT, status)
    assert line.call(8, b"").type == wire.RESPONSE


@pytest.mark.rule("QP-050", "QP-100", "QP-130")
def test_what_is_null(endpoint: Endpoint) -> None:
    line = Line(endpoint)
    invalid = struct.pack("<I", 0xC00E0007)
    assert line.call(1, NULL_CONTEXT + struct.pack("<I", 2)).stub == NULL_CONTEXT + invalid
    assert line.call(3, NULL_CONTEXT).stub == NULL_CONTEXT + invalid
    assert line.call(9, bytes(16)).stub == NULL_CONTEXT + bytes(4) + bytes(16) + invalid


@pytest.mark.rule("QP-079", "QP-123", "QP-124")
def test_a_read_that_waits_is_cancelled_on_its_own_connection(endpoint: Endpoint) -> None:
    handle = endpoint.remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    assert line.start(9, desc2(handle, timeout=INFINITE)) == []
    assert line.call(8, b"").type == wire.RESPONSE
    answers = line.start(5, struct.pack("<III", handle, handle, 1))
    by_size = sorted(answers, key=lambda answer: len(answer.stub))
    assert by_size[0].stub == bytes(4)
    assert by_size[1].stub[:20] == NULL_CONTEXT
    assert by_size[1].stub[-4:] == struct.pack("<I", CANCELED_BY_CLIENT)


@pytest.mark.rule("QP-109", "QP-131", "QP-182")
def test_handles_live_as_long_as_the_association(endpoint: Endpoint) -> None:
    remote = endpoint.remote
    for text in (b"one", b"two"):
        remote.world.send(text)
    handle = remote.opened()
    first = Line(endpoint)
    session = open_queue(first, handle)
    context = first.call(9, desc2(handle)).stub[:20]
    second = Line(endpoint, first.group)
    stranger = Line(endpoint)
    refused = stranger.call(1, context + struct.pack("<I", 2))
    assert (refused.type, refused.status) == (wire.FAULT, CONTEXT_MISMATCH)
    first.engine.connection_lost()
    assert second.call(1, context + struct.pack("<I", 2)).stub == NULL_CONTEXT + bytes(4)
    assert remote.world.bodies() == [b"two"]
    again = second.call(1, context + struct.pack("<I", 2))
    assert again.status == CONTEXT_MISMATCH
    second.call(9, desc2(handle, request=2))
    assert second.start(9, desc2(handle, timeout=INFINITE, request=3)) == []
    third = Line(endpoint, second.group)
    assert third.call(3, session).stub == NULL_CONTEXT + bytes(4)
    (cancelled,) = second.heard()
    assert cancelled.stub[-4:] == struct.pack("<I", CANCELED_BY_CLIENT)
    for line in (second, third):
        line.engine.connection_lost()
    assert remote.world.receive() == b"two"


@pytest.mark.rule("QP-181", "QP-183", "QP-186")
def test_a_client_that_is_lost(endpoint: Endpoint) -> None:
    remote = endpoint.remote
    remote.world.send(b"one")
    handle = remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    line.call(9, desc2(handle))
    assert line.start(9, desc2(handle, timeout=INFINITE, request=2)) == []
    line.engine.connection_lost()
    assert len(remote.queues) == 0
    assert remote.world.receive() == b"one"


@pytest.mark.rule("QP-183")
def test_a_reply_that_was_never_sent(endpoint: Endpoint) -> None:
    remote = endpoint.remote
    remote.world.send(b"one")
    handle = remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    other = Line(endpoint, line.group)
    line.engine.receive(wire.request(9, 9, desc2(handle)), 0.0)
    remote.world.run()
    line.engine.connection_lost()
    remote.world.run()
    answer = other.call(9, desc2(handle, 0x80000000, request=2))
    assert answer.stub[-4:] == bytes(4)
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("QP-123", "QP-183")
def test_a_read_that_rpc_cancels_takes_nothing(endpoint: Endpoint) -> None:
    remote = endpoint.remote
    handle = remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    for number, give_up in ((20, wire.cancel), (21, wire.orphaned)):
        line.engine.receive(wire.request(number, 9, desc2(handle, timeout=INFINITE)), 0.0)
        line.say(give_up(number))
    remote.world.send(b"one")
    assert remote.world.receive() == b"one"


@pytest.mark.parametrize("action", [0, 0x80000000])
def test_a_client_that_takes_nothing_is_not_given_all_it_waits_for(endpoint: Endpoint, action: int) -> None:
    world = endpoint.remote.world
    handle = endpoint.remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    for number in range(100):
        assert line.start(9, desc2(handle, action, INFINITE, request=number + 1)) == []
    body = bytes(1 << 20)
    for _ in range(1 if action else 40):
        world.send(body)
    world.run()
    assert line.engine._outbox.bytes < 24 * len(body), "one for each read would be 100 or 40"
    answers = 0
    while heard := list(line.heard()):
        answers += sum(bool(answer.flags & wire.LAST) for answer in heard)
        world.run()
    assert answers == (100 if action else 40)
