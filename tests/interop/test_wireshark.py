"""The Wireshark dissector says of every packet what our decoders say, and survives what is no packet."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from msmq_fast.packet.acks import FinalAck, OrderAck, order_queue
from msmq_fast.packet.session import Ping, SessionHeader
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode
from tests.interop import dissected
from tests.support.captures import shark
from tests.support.captures.capture import Capture
from tests.support.mqqb import frames, wire
from tests.support.packet.mutations import mutated_packets, random_packets
from tests.support.packet.samples import build, combinations, frame, seeds

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.needs("tshark")]

VALUES = {
    "internal.type": {1: "SessionAck", 2: "EstablishConnection", 3: "ConnectionParameters"},
    "properties.class": {int(member): member.name for member in MessageClass},
    "properties.privacy_level": {0: "none", 1: "40 bits", 3: "128 bits", 5: "AES"},
    "properties.hash": {
        0x8001: "MD2",
        0x8002: "MD4",
        0x8003: "MD5",
        0x8004: "SHA-1",
        0x800C: "SHA-256",
        0x800E: "SHA-512",
    },
    "properties.cipher": {
        0x6602: "RC2",
        0x6801: "RC4",
        0x660E: "AES-128",
        0x660F: "AES-192",
        0x6610: "AES-256",
    },
    "security.flags.signature_type": {0: "none", 1: "MSMQ 1.0", 3: "MSMQ 2.0", 5: "MSMQ 3.0"},
    "multi.section": {0x64: "destination", 0xC8: "administration", 0x12C: "response", 0x15E: "signature"},
}


def test_the_tables_are_ours() -> None:
    printed: dict[str, dict[int, str]] = {}
    for line in shark.tshark("-G", "values").splitlines():
        if line.startswith("V\tmqqb."):
            _, field, value, text = line.split("\t")
            printed.setdefault(field.removeprefix("mqqb."), {})[int(value, 0)] = text
    for field, table in VALUES.items():
        assert printed[field] == table, field


def test_the_reasons_for_malformed_packets_are_ours() -> None:
    script = shark.SCRIPT.read_text()
    unused = {PacketFaultCode.NONE, PacketFaultCode.TRUNCATED, PacketFaultCode.INTERNAL}
    for code in set(PacketFaultCode) - unused:
        assert f'    {code.name} = "{code.text}",\n' in script


def samples() -> list[bytes]:
    return [frame(number) for number in range(3, 9)] + [
        packet for _, packet in seeds() + [(name, packet.encode()) for name, packet in combinations()]
    ]


@pytest.mark.parametrize("segment", [60_000, 1400, 7])
def test_every_field_of_every_packet_is_what_our_decoder_says(tmp_path: Path, segment: int) -> None:
    packets = samples() if segment > 7 else samples()[:30]
    capture = Capture()
    stream = capture.stream(segment=segment)
    for packet in packets:
        stream.client(packet)
    shown = shark.rows(capture.write(tmp_path / "samples.pcap"), dissected.FIELDS)
    assert len(shown) == len(packets)
    for packet, row in zip(packets, shown, strict=True):
        assert dissected.difference(row, dissected.of_packet(packet)) == {}, packet.hex()


def test_packets_that_share_a_segment_are_told_apart(tmp_path: Path) -> None:
    packets = samples()
    capture = Capture()
    capture.stream(segment=1460).client(b"".join(packets))
    rows = shark.rows(capture.write(tmp_path / "stream.pcap"), ["mqqb.size"])
    sizes = [int(size) for row in rows for size in row["mqqb.size"]]
    assert sizes == [int.from_bytes(packet[8:12], "little") for packet in packets]


def test_a_sender_and_a_session_header_in_one_packet(tmp_path: Path) -> None:
    """As Windows sends most messages: what is behind them in the segment is found by their size."""
    header = wire.header(sent=1)
    packets = [
        wire.message(number, security=frames.security(), session=header, header_inside=inside)
        for number, inside in enumerate((False, True, False), 1)
    ]
    capture = Capture()
    capture.stream(segment=60_000).client(b"".join(packets))
    path = capture.write(tmp_path / "senders.pcap")
    (row,) = shark.rows(path, ["mqqb.user.message_id", "mqqb.security.sid", "mqqb.session.messages"])
    assert row["mqqb.user.message_id"] == ["1", "2", "3"]
    assert row["mqqb.session.messages"] == ["1"] * 3
    assert len(row["mqqb.security.sid"]) == 3
    assert shark.rows(path, ["frame.number"], "mqqb.malformed") == []


def test_ping_and_its_answer(tmp_path: Path) -> None:
    capture = Capture()
    datagrams = [
        frame(1),
        frame(2),
        Ping(7, UUID(int=5), refused=True).encode(),
        b"\0\0HU" + bytes(21),
        b"\0\0UH" + bytes(20),
    ]
    for datagram in datagrams:
        capture.datagram("127.0.0.9", 4057, datagram)
        capture.datagram("127.0.0.9", 4057, datagram, answer=True)
    names = [f"mqqb_ping.{name}" for name in ("flags.client", "flags.refused", "cookie", "manager")]
    rows = shark.rows(capture.write(tmp_path / "ping.pcap"), names)
    expected = [ping for ping in map(Ping.decode, datagrams) if ping is not None for _ in range(2)]
    assert len(rows) == len(expected) == 6
    for row, ping in zip(rows, expected, strict=True):
        client, refused, cookie, manager = (row[name][0] for name in names)
        assert (client in ("1", "True"), refused in ("1", "True")) == (ping.client_class, ping.refused)
        assert (int(cookie), manager) == (ping.cookie, str(ping.manager))


ORDERING = [
    f"mqqb.{name}"
    for name in (
        "ordering",
        "ordering.ordinal",
        "ordering.timestamp",
        "ordering.number",
        "ordering.previous",
        "ordering.source",
        "ordering.message_id",
        "ordering.frame",
    )
]


@pytest.mark.parametrize("address", ["", "127.0.0.1", "[::1]"])
def test_acknowledgments_of_transactional_messages(tmp_path: Path, address: str) -> None:
    source, target = UUID(int=1), UUID(int=2)
    capture = Capture()
    stream = capture.stream()
    stream.client(build(transaction=TransactionHeader(5, 6, 7, 3)).encode())
    sent = capture.frames
    destination = order_queue(target, address)
    stream.server(OrderAck(5, 6, 7).message(destination, source).to_packet())
    final = FinalAck(5, 6, 7, 3, source, 77, MessageClass.NACK_Q_PURGED)
    stream.server(final.message(destination, source).to_packet())
    _, order, last = shark.rows(capture.write(tmp_path / "acks.pcap"), ORDERING)
    assert [*order.values()] == [["OrderAck"], ["5"], ["6"], ["7"], ["6"], [], [], [str(sent)]]
    assert [*last.values()] == [
        ["FinalAck"],
        ["5"],
        ["6"],
        ["7"],
        ["3"],
        [str(source)],
        ["77"],
        [str(sent)],
    ]


def test_counts_are_followed_through_a_conversation(tmp_path: Path) -> None:
    capture = Capture()
    stream = capture.stream()
    stream.client(wire.establish())
    stream.server(wire.establish())
    stream.client(wire.parameters())
    stream.server(wire.parameters())
    frames = []
    for recoverable in (False, True, True):
        stream.client(wire.message(1, recoverable=recoverable))
        frames.append(capture.frames)
    stream.server(wire.session_ack(2, 1, 0b11))
    header = SessionHeader(0, 0, 0, 4, 3).encode()
    stream.client(wire.message(1, recoverable=True, session=header))
    names = [
        "mqqb.number",
        "mqqb.recoverable_number",
        "mqqb.session.ack.frame",
        "mqqb.session.recoverable_list",
    ]
    path = capture.write(tmp_path / "counts.pcap")
    rows = shark.rows(path, names, "mqqb.number || mqqb.session.ack")
    assert [row["mqqb.number"] for row in rows] == [["1"], ["2"], ["3"], [], ["4"]]
    assert [row["mqqb.recoverable_number"] for row in rows] == [[], ["1"], ["2"], [], ["3"]]
    assert rows[3]["mqqb.session.ack.frame"] == [str(frames[1])]
    assert rows[3]["mqqb.session.recoverable_list"] == ["1 2"]
    assert shark.complaints(path) == []


def test_wrong_counts_are_pointed_out(tmp_path: Path) -> None:
    capture = Capture()
    stream = capture.stream()
    stream.client(wire.establish())
    stream.server(wire.establish())
    stream.client(wire.message(1))
    stream.client(wire.session_ack(0, sent=2))
    wrong = capture.frames
    stream.server(wire.session_ack(9))
    path = capture.write(tmp_path / "wrong.pcap")
    assert [line.split("\t")[0] for line in shark.complaints(path)] == [str(wrong), str(capture.frames)]


def verdict(data: bytes) -> tuple[str, bytes]:
    """The fault that our decoder finds, NONE for a sound packet, and the packet without what follows it."""
    try:
        dissected.of_packet(data)
        size = int.from_bytes(data[8:12], "little") if data[2] & 8 else UserMessagePacket.decode(data)[1]
    except PacketFault as fault:
        return fault.code.name, data
    return PacketFaultCode.NONE.name, data[:size]


def hostile(count: int) -> list[bytes]:
    found: list[bytes] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(mutated_packets(), random_packets()))
    def collect(packet: bytes) -> None:
        found.append(packet)

    collect()
    generator = random.Random(5)
    for packet in samples()[:6]:
        for _ in range(30):
            changed = bytearray(packet)
            changed[generator.randrange(len(packet))] = generator.randrange(256)
            found.append(bytes(changed))
    return found


def test_packets_that_are_none_are_called_malformed_where_our_decoder_says_so(tmp_path: Path) -> None:
    packets = [verdict(packet) for packet in hostile(1500) if len(packet) >= 16]
    capture = Capture()
    for index, (_, packet) in enumerate(packets):
        capture.stream(f"127.{1 + index // 200}.{index % 200}.9", segment=60_000).client(packet)
    path = capture.write(tmp_path / "hostile.pcap")
    rows = shark.rows(path, ["tcp.stream", "mqqb.malformed", "_ws.expert.message", *dissected.FIELDS])
    shown = {int(row["tcp.stream"][0]): row for row in rows}
    seen = set()
    for index, (fault, packet) in enumerate(packets):
        if fault == "TRUNCATED" or index not in shown:
            continue  # the dissector waits for the rest
        row = shown[index]
        seen.add(fault)
        if fault == "NONE":
            assert row["mqqb.malformed"] == [], (packet.hex(), row["_ws.expert.message"])
            assert dissected.difference(row, dissected.of_packet(packet)) == {}, packet.hex()
        else:
            messages = [text.partition(":")[0] for text in row["_ws.expert.message"]]
            assert fault in messages, (packet.hex(), fault, row["_ws.expert.message"])
    assert len(seen) > 20
    assert shark.rows(path, ["frame.number"], "_ws.lua.error") == []


def test_a_session_on_any_port_is_found_by_its_first_packet(tmp_path: Path) -> None:
    capture = Capture()
    stream = capture.stream()
    stream.client(wire.establish())
    stream.server(wire.establish())
    stream.client(UserMessagePacket().encode())
    data = capture.write(tmp_path / "other.pcap").read_bytes().replace(b"\x07\x09", b"\x1e\x61")
    (tmp_path / "other.pcap").write_bytes(data)
    assert len(shark.rows(tmp_path / "other.pcap", ["mqqb.size"])) == 3
