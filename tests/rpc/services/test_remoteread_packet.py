"""Message packets of RemoteRead: sections, expiry times, and the headers behind the user message."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast._native.framing import parse
from msmq_fast._native.queuebase import Received
from msmq_fast._native.remoteread import whole_answer
from msmq_fast.packet import Message
from msmq_fast.packet.soap import CompoundMessageHeader, SRMPEnvelopeHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.qm.access import Access
from msmq_fast.rpc.idl.remoteread import REMOTE_READ, SECTION_BUFFER
from msmq_fast.rpc.services.remotereadpacket import SectionType, message_packet, sections
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

INFINITE = 0xFFFFFFFF
TTRQ = slice(12, 16)


def stored(world: World, name: str = "orders") -> Received:
    """The first message of a queue."""
    handle = world.reader(name)
    found: Received = world.finish(handle.receive(0, peek=True).completion)
    handle.close()
    return found


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def nobody(_ordinal: int) -> str:
    return ""


@pytest.mark.rule("RR-040")
def test_the_packet_tells_when_the_message_expires(world: World) -> None:
    queue = world.manager.find("orders")
    sender = world.sender()
    sent = sender.stamp(Message(body=b"one", time_to_reach_queue=3600)).to_packet()
    world.advance(60)
    world.finish(sender.send_packets([sent]))
    message = stored(world)
    assert message.arrived_time == WALL + 60
    packet = message_packet(message, queue, nobody)
    assert int.from_bytes(packet[TTRQ], "little") == WALL + 3600
    size = len(message.packet)
    assert packet[:12] + message.packet[TTRQ] + packet[16:size] == message.packet


@pytest.mark.rule("RR-040")
def test_a_message_that_does_not_expire_says_so(world: World) -> None:
    queue = world.manager.find("orders")
    world.send(b"one", time_to_reach_queue=INFINITE)
    assert int.from_bytes(message_packet(stored(world), queue, nobody)[TTRQ], "little") == INFINITE
    world.send(b"two", time_to_reach_queue=INFINITE - 1, priority=7)
    assert int.from_bytes(message_packet(stored(world), queue, nobody)[TTRQ], "little") == INFINITE


def headers(tail: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """ExtensionHeader, SubqueueHeader, DeadLetterHeader, ExtendedAddressHeader by hand."""
    size, remaining, flags = struct.unpack_from("<IIB", tail)
    assert size == 12
    assert remaining == len(tail) - size
    assert flags & 0x12 == 0x12  # SQ, EA
    extension, rest = tail[:12], tail[12:]
    assert rest[:4] == (148).to_bytes(4, "little")
    subqueue, rest = rest[:148], rest[148:]
    letter = b""
    if flags & 1:
        length = int.from_bytes(rest[:4], "little")
        assert length % 4 == 0
        letter, rest = rest[:length], rest[length:]
    assert len(rest) == 28
    assert rest[:4] == (28).to_bytes(4, "little")
    return extension, subqueue, letter, rest


@pytest.mark.rule("RR-041")
def test_the_headers_behind_the_user_message(world: World) -> None:
    queue = world.manager.find("orders")
    world.send(b"one")
    message = stored(world)
    packet = message_packet(message, queue, nobody)
    assert int.from_bytes(packet[8:12], "little") == len(message.packet)
    extension, subqueue, letter, address = headers(packet[len(message.packet) :])
    assert extension[8] == 0x12
    assert subqueue[4:] == bytes(144)
    assert letter == b""
    assert address[4:] == bytes(24)


@pytest.mark.rule("RR-041")
def test_a_message_of_a_subqueue_names_it(world: World) -> None:
    key = world.send(b"one")
    source = world.reader()
    target = world.manager.open("orders;retry", Access.MOVE)
    world.finish(source.move(key, target))
    message = stored(world, "orders;retry")
    packet = message_packet(message, world.manager.find("orders;retry"), nobody)
    _, subqueue, _, _ = headers(packet[len(message.packet) :])
    aborts, moves, moved = struct.unpack_from("<III", subqueue, 8)
    assert (aborts, moves, moved) == (0, 1, 0)
    assert subqueue[20:84] == "retry".encode("utf-16-le").ljust(64, b"\0")
    assert subqueue[84:] == bytes(64)


@pytest.mark.rule("RR-041")
def test_a_dead_letter_queue_of_its_own_is_named(world: World) -> None:
    world.create("mine")
    ordinal = world.manager.dead_letter_queue(r".\private$\mine", None)
    handle = world.sender()
    message = handle.stamp(Message(body=b"one", delivery=1))
    world.finish(handle.send_packets([message.to_packet()], [ordinal]))
    found = stored(world)
    name = world.manager.find("mine").name
    packet = message_packet(found, world.manager.find("orders"), {ordinal: name}.__getitem__)
    extension, _, letter, _ = headers(packet[len(found.packet) :])
    assert extension[8] == 0x13
    assert letter[4:].decode("utf-16-le").rstrip("\0") == name
    assert letter[4:].endswith(b"\0\0")


@pytest.mark.rule("RR-042")
@pytest.mark.parametrize("length", [0, 1, 7, 1000])
@pytest.mark.parametrize("wanted", [0, 1, 6, 999, 1000, 5000, INFINITE])
def test_a_packet_has_one_section_or_two(world: World, length: int, wanted: int) -> None:
    body = bytes(range(1, 251)) * 4
    world.send(body[:length], label="a label", extension=b"abc")
    message = stored(world)
    packet = message_packet(message, world.manager.find("orders"), nobody)
    found = sections(message.packet, packet, wanted, 0)
    if wanted >= length:
        ((kind, allocated, data),) = found
        assert (kind, allocated, bytes(data)) == (SectionType.FULL_PACKET, len(packet), packet)
        return
    first, second = found
    parsed = parse(message.packet)
    assert (first.kind, second.kind) == (SectionType.BINARY_FIRST, SectionType.BINARY_SECOND)
    assert bytes(first.data) == packet[: parsed.body_offset + wanted]
    assert second.allocated == len(second.data)
    assert first.allocated + second.allocated == len(packet)
    assert first.allocated - len(first.data) - (length - wanted) in range(4)  # the padding
    assert bytes(second.data) == packet[first.allocated :]


@pytest.mark.rule("RR-042")
def test_a_message_that_came_by_http_is_split_in_its_compound_message() -> None:
    whole = UserMessagePacket(
        envelope=SRMPEnvelopeHeader("<e/>"), compound=CompoundMessageHeader(b"POST " * 10, 5, 20)
    )
    packet = whole.encode()
    parsed = parse(packet)
    tail = bytes(188)
    assert [item.kind for item in sections(packet, packet + tail, 0, 66)] == [SectionType.FULL_PACKET]
    first, second = sections(packet, packet + tail, INFINITE, 20)
    assert (first.kind, second.kind) == (SectionType.SRMP_FIRST, SectionType.SRMP_SECOND)
    assert bytes(first.data) == packet[: parsed.compound_offset + 20]
    assert first.allocated == len(packet)
    assert bytes(second.data) == tail


@pytest.mark.rule("RR-040")
@pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])
@pytest.mark.parametrize("op", ["start_receive", "start_transactional_receive"])
@given(
    body=st.binary(max_size=40),
    sent=st.integers(0, INFINITE),
    within=st.integers(0, INFINITE),
    tail=st.binary(max_size=9),
    arrived=st.integers(0, INFINITE),
    sequence=st.integers(0, (1 << 56) - 1),
)
def test_a_whole_answer_is_what_the_codec_writes(
    op: str, ndr64: bool, body: bytes, sent: int, within: int, tail: bytes, arrived: int, sequence: int
) -> None:
    def packet(time: int) -> bytes:
        return b"h" * 12 + time.to_bytes(4, "little") + b"m" * 36 + sent.to_bytes(4, "little") + body

    data = packet(min(sent + within, INFINITE)) + tail
    codec = REMOTE_READ.op(op)
    results = codec.Results(
        pdwArriveTime=arrived,
        pSequenceId=sequence,
        pdwNumberOfSections=1,
        ppPacketSections=[SECTION_BUFFER.record(SectionType.FULL_PACKET, len(data), len(data), data)],
    )
    written = whole_answer(packet(within), tail, arrived, sequence, ndr64)
    assert written == codec.encode_response(results, ndr64=ndr64)


@pytest.mark.parametrize("size", [0, 12, 55])
def test_a_whole_answer_needs_a_packet(size: int) -> None:
    with pytest.raises(ValueError, match="not a UserMessage packet"):
        whole_answer(bytes(size), b"", 0, 0, False)
