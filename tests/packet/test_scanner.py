"""PacketScanner: the stream arrives in any pieces, packets come out whole, and the buffer stays bounded."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.framing import parse
from msmq_fast._native.packetbuild import build_user_message
from msmq_fast._native.scanner import PacketScanner
from msmq_fast.packet.base import MAX_PACKET
from msmq_fast.packet.fields import direct_wire
from msmq_fast.protocol.errors import PacketFaultCode
from tests.support.packet.samples import OPTIONAL, build, frame, seeds

IDLE = 65536
BUSY = 131072  # of one whose reads fill the buffer
FIRST = 4096  # of a scanner that has seen little
DESTINATION = direct_wire("OS:host\\private$\\queue")
USER_MESSAGE, SESSION_ACK, ESTABLISH, PARAMETERS, BAD = 1, 2, 3, 4, -1


def drain(scanner: PacketScanner) -> list[tuple[int, bytes]]:
    found = []
    while (taken := scanner.take()) is not None:
        found.append(taken)
        if taken[0] == BAD:
            break
    return found


CONVERSATION = [frame(3), frame(5), frame(8), *(data for _, data in seeds()), frame(8)]


@pytest.mark.rule("QB-011")
@given(st.lists(st.integers(1, 2000), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_any_segmentation_gives_the_same_packets(cuts: list[int]) -> None:
    stream, scanner, found, at = b"".join(CONVERSATION), PacketScanner(), [], 0
    for index in range(len(stream)):
        size = cuts[index % len(cuts)]
        scanner.feed(stream[at : at + size])
        found += drain(scanner)
        at += size
        if at >= len(stream):
            break
    assert [packet for _, packet in found] == CONVERSATION


@pytest.mark.rule("QB-011")
def test_byte_by_byte_and_all_at_once() -> None:
    stream = b"".join(CONVERSATION)
    one, whole, found = PacketScanner(), PacketScanner(), []
    for index in range(len(stream)):
        one.feed(stream[index : index + 1])
        found += drain(one)
    whole.feed(stream)
    assert [packet for _, packet in found] == CONVERSATION
    assert drain(whole) == found
    assert one.held == whole.held == 0


@pytest.mark.rule("QB-011")
@pytest.mark.parametrize("counted", [False, True])
def test_a_session_header_outside_and_inside_packet_size(counted: bool) -> None:
    packet = build(**OPTIONAL["session"][0]).encode(count_session=counted)
    plain = build().encode()
    scanner = PacketScanner()
    scanner.feed(packet + plain)
    assert drain(scanner) == [(USER_MESSAGE, packet), (USER_MESSAGE, plain)]
    parsed = parse(packet)
    assert parsed.session_offset == len(plain)
    assert parsed.size == len(plain)
    assert parsed.kept() == plain


def test_a_4_mb_message_across_a_thousand_reads() -> None:
    size = MAX_PACKET - len(build_user_message(DESTINATION, body=b""))
    packet = build_user_message(DESTINATION, body=bytes(range(256)) * (size // 256))
    piece = len(packet) // 1000 + 1
    scanner = PacketScanner()
    for at in range(0, len(packet), piece):
        assert scanner.take() is None
        view = scanner.buffer(-1)
        rest = packet[at : at + piece]
        while rest:
            count = min(len(view), len(rest))
            view[:count] = rest[:count]
            scanner.commit(count)
            rest = rest[count:]
            view = scanner.buffer(-1) if rest else view
        assert scanner.capacity <= MAX_PACKET + 16
    assert scanner.take() == (USER_MESSAGE, packet)
    scanner.buffer(-1)
    assert scanner.capacity == IDLE


def test_memory_follows_the_bytes_that_arrive_not_the_size_announced() -> None:
    scanner = PacketScanner()
    scanner.feed(struct.pack("<BBH4sII", 0x10, 0, 3, b"LIOR", MAX_PACKET, 0))
    assert scanner.take() is None
    scanner.buffer(-1)
    assert scanner.capacity == FIRST


def test_a_stream_of_small_packets_gets_the_larger_buffer() -> None:
    packet = build().encode()
    scanner = PacketScanner()
    for at in range(0, 100 * len(packet), 4096):
        scanner.feed((packet * 100)[at : at + 4096])
        drain(scanner)
    assert scanner.capacity == IDLE


def test_reads_that_fill_the_buffer_enlarge_it_until_they_no_longer_do() -> None:
    packet = build().encode()
    scanner = PacketScanner()
    sent = 0

    def read(most: int) -> None:
        nonlocal sent
        view = scanner.buffer(-1)
        stream = packet * (len(view) // len(packet) + 2)
        count = min(len(view), most)
        view[:count] = stream[sent % len(packet) :][:count]
        scanner.commit(count)
        sent += count
        assert all(found == (USER_MESSAGE, packet) for found in drain(scanner))
        assert scanner.capacity <= BUSY

    for _ in range(8):
        read(BUSY)
    assert scanner.capacity == BUSY
    read(len(packet) - sent % len(packet) + 10 * len(packet))
    assert scanner.held == 0
    read(len(packet))
    scanner.buffer(-1)
    assert scanner.capacity == IDLE


def test_packets_that_are_not_taken_do_not_grow_the_buffer() -> None:
    scanner = PacketScanner(max_packet=1000)
    with pytest.raises(BufferError):
        scanner.feed(build().encode() * 1000)
    assert scanner.capacity == IDLE
    assert len(drain(scanner)) == IDLE // len(build().encode())


def test_views_that_are_kept_stay_valid() -> None:
    scanner = PacketScanner()
    view = scanner.buffer(-1)
    big = build_user_message(DESTINATION, body=bytes(300_000))
    scanner.feed(big)
    assert drain(scanner) == [(USER_MESSAGE, big)]
    view[:4] = b"late"  # into a buffer that the scanner has left
    assert len(view) == FIRST


def test_commit_of_more_than_the_view_is_refused() -> None:
    scanner = PacketScanner()
    with pytest.raises(ValueError, match="more bytes committed"):
        scanner.commit(1)
    view = scanner.buffer(-1)
    with pytest.raises(ValueError, match="more bytes committed"):
        scanner.commit(len(view) + 1)
    with pytest.raises(ValueError, match="more bytes committed"):
        scanner.commit(-1)


def changed(packet: bytes, offset: int, new: bytes) -> bytes:
    return packet[:offset] + new + packet[offset + len(new) :]


BAD_STREAMS = {
    "VERSION": changed(frame(3), 0, b"\x11"),
    "SIGNATURE": changed(frame(3), 4, b"ROIL"),
    "PACKET_SIZE": changed(frame(7), 8, struct.pack("<I", MAX_PACKET + 1))[:16],
    "PACKET_TYPE": changed(frame(3), 18, b"\x04"),
    "ESTABLISH_SIZE": changed(frame(3), 8, struct.pack("<I", 576)),
    "PARAMETERS_SIZE": changed(frame(5), 8, struct.pack("<I", 36)),
    "SESSION_ACK_SIZE": changed(frame(8), 8, struct.pack("<I", 20)),
    "SESSION_ACK_NO_HEADER": changed(frame(8), 2, b"\x0b"),
    "LENGTH_MISMATCH": changed(frame(7), 8, struct.pack("<I", 2228)) + bytes(4),
}


@pytest.mark.rule("QB-010", "QB-019", "QB-157", "QB-162", "QB-163")
@pytest.mark.parametrize(("fault", "stream"), BAD_STREAMS.items())
def test_a_malformed_packet_ends_the_stream(fault: str, stream: bytes) -> None:
    scanner = PacketScanner()
    scanner.feed(frame(5) + stream)
    assert scanner.take() == (PARAMETERS, frame(5))
    assert scanner.take() == (BAD, b"")
    assert PacketFaultCode(scanner.fault).name == fault
    scanner.feed(frame(5))
    assert scanner.take() == (BAD, b"")


@pytest.mark.rule("QB-019")
@pytest.mark.parametrize("kind", [0, *range(4, 16)])
def test_unknown_packet_types(kind: int) -> None:
    scanner = PacketScanner()
    scanner.feed(changed(frame(3), 18, bytes([kind])))
    assert scanner.take() == (BAD, b"")


@pytest.mark.rule("QB-018", "QB-023")
def test_reserved_bits_and_bytes_are_ignored() -> None:
    packet = changed(changed(frame(3), 16, b"\xff\xff\xe2\xff"), 1, b"\x77")
    scanner = PacketScanner()
    scanner.feed(packet)
    assert scanner.take() == (ESTABLISH, packet)
    message = bytearray(build().encode())
    message[2:4] = struct.pack("<H", struct.unpack_from("<H", message, 2)[0] | 0xFEC0)
    message[60:64] = struct.pack("<I", struct.unpack_from("<I", message, 60)[0] | 0xED000080)
    scanner.feed(message)
    assert scanner.take() == (USER_MESSAGE, bytes(message))


def test_a_smaller_limit() -> None:
    scanner = PacketScanner(max_packet=1000)
    scanner.feed(build_user_message(DESTINATION, body=bytes(1000)))
    assert scanner.take() == (BAD, b"")
    assert PacketFaultCode(scanner.fault) is PacketFaultCode.PACKET_SIZE
    for wrong in (0, 571, MAX_PACKET + 1):
        with pytest.raises(ValueError, match="max_packet"):
            PacketScanner(max_packet=wrong)
