"""Captures to tables, without a JVM: captures with known traffic, damaged ones, ones changed at random."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.packet.session import Ping
from msmq_fast.spark.packets import cut, plainly_cut
from msmq_fast.spark.pcap.errors import CaptureError
from msmq_fast.spark.pcap.frames import message_columns
from msmq_fast.spark.pcap.messages import native_encoder, plain_encoder
from msmq_fast.spark.pcap.reassembly import Direction
from tests.spark import stores, traffic
from tests.spark.conversations import conversation, kinds, rows
from tests.spark.traffic import Packet, Talk
from tests.support.timing import processor_time


def test_a_session_in_order(tmp_path: Path) -> None:
    capture = traffic.write(tmp_path / "a.pcap", conversation(16).packets)
    found = rows(capture)
    toward = [row for row in found if row["direction"] == "to_server"]
    assert kinds(toward) == ["establish", "parameters", *["user"] * 16]
    back = [row for row in found if row["direction"] == "to_client"]
    assert kinds(back) == ["establish", "parameters", "session_ack", "session_ack"]
    assert [row["message_id"] for row in toward[2:]] == [f"{{{traffic.CLIENT}}}\\{n}" for n in range(1, 17)]
    assert [row["label"] for row in toward[2:4]] == ["number 1", "number 2"]
    assert {row["destination_queue"] for row in toward[2:]} == {r"DIRECT=TCP:10.0.0.2\private$\orders"}
    rng = random.Random(16)
    assert [row["body"] for row in toward[2:]] == [rng.randbytes(900) for _ in range(16)]
    assert [row["ack_sequence"] for row in toward[2:5]] == [None, None, 3]
    assert (toward[0]["client_guid"], toward[0]["uptime_ms"]) == (str(traffic.CLIENT), 77)
    assert (back[1]["window_size"], back[1]["ack_ms"], back[1]["recoverable_ack_ms"]) == (32, 2500, 1500)
    assert (back[3]["ack_sequence"], back[3]["recoverable_ack_sequence"]) == (16, 1)
    assert {row["malformed"] for row in found} == {None}
    assert {row["connection"] for row in found} == {"10.0.0.1:40000->10.0.0.2:1801"}
    sizes = [row["packet_size"] for row in toward]
    assert [row["stream_offset"] for row in toward] == [sum(sizes[:i]) for i in range(len(sizes))]
    assert str(toward[0]["time"]) == "2023-11-14 22:13:20.003000+00:00"


@pytest.mark.parametrize("link", [traffic.ETHERNET, traffic.NULL, traffic.RAW, traffic.SLL, traffic.SLL2])
@pytest.mark.parametrize("host", ["10.0.0.{}", "fd00::{}"])
def test_link_types_and_addresses(tmp_path: Path, link: int, host: str) -> None:
    talk = conversation(3, Talk((host.format(1), 40_000), (host.format(2), 1801)))
    found = rows(traffic.write(tmp_path / "a.pcap", talk.packets, link))
    assert kinds(found).count("user") == 3
    assert host.format(1) in found[0]["connection"]


def test_file_formats(tmp_path: Path) -> None:
    packets = [traffic.framed(traffic.ETHERNET, packet.ip(), vlan=True) for packet in conversation(3).packets]
    files = {
        "big.pcap": traffic.pcap(packets, link=traffic.ETHERNET, order=">"),
        "nano.pcap": traffic.pcap(packets, link=traffic.ETHERNET, nano=True),
        "little.pcapng": traffic.pcapng(packets),
        "big.pcapng": traffic.pcapng(packets, order=">", resolution=9),
        "packed.pcap.gz": gzip.compress(traffic.pcap(packets, link=traffic.ETHERNET)),
    }
    found = {}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        found[name] = rows(tmp_path / name)
    first = [{**row, "capture": ""} for row in found.pop("big.pcap")]
    assert kinds(first).count("user") == 3
    for name, others in found.items():
        assert [{**row, "capture": ""} for row in others] == first, name


def test_nothing_is_lost_under_retransmission_and_reordering(tmp_path: Path) -> None:
    """Twelve connections at once, 1 % of segments repeated, 3 % out of order."""
    talks = [conversation(60, Talk(("10.0.0.1", 41_000 + n), segment=300 + 97 * n)) for n in range(12)]
    packets: list[Packet] = []
    queues = [
        list(traffic.disturbed(talk.packets, n, repeated=0.01, swapped=0.03)) for n, talk in enumerate(talks)
    ]
    rng = random.Random(5)
    while any(queues):
        queue = rng.choice([queue for queue in queues if queue])
        packets += queue[:7]
        del queue[:7]
    capture = traffic.write(tmp_path / "a.pcap", packets)
    for shares in (1, 3):
        found = rows(capture, shares=shares)
        assert {row["malformed"] for row in found} == {None}
        for n in range(12):
            mine = [row for row in found if f":{41_000 + n}->" in row["connection"]]
            ids = [row["app_specific"] for row in mine if row["packet_type"] == "user"]
            assert ids == list(range(1, 61))
    table = rows(capture, table="sessions")
    assert len(table) == 12
    assert {row["messages_to_server"] for row in table} == {60}
    assert {row["close_reason"] for row in table} == {"fin"}
    assert sum(row["repeated_segments_to_server"] for row in table) > 0
    assert sum(row["reordered_segments_to_server"] for row in table) > 0


def test_gaps_are_marked_and_what_follows_is_found(tmp_path: Path) -> None:
    talk = conversation(40, Talk(segment=500), size=1200)
    sent = [n for n, one in enumerate(talk.packets) if one.payload and one.destination[1] == 1801]
    lost = sent[32:34]
    packets = [packet for index, packet in enumerate(talk.packets) if index not in lost]
    found = [
        row for row in rows(traffic.write(tmp_path / "a.pcap", packets)) if row["direction"] == "to_server"
    ]
    missing = sum(len(talk.packets[index].payload) for index in lost)
    gaps = [row for row in found if row["packet_type"] == "gap"]
    assert [row["packet_size"] for row in gaps] == [missing]
    assert gaps[0]["malformed"] == f"{missing} bytes were not captured"
    ids = [row["app_specific"] for row in found if row["packet_type"] == "user"]
    assert ids == sorted(set(ids))
    assert len(ids) >= 38
    junk = [row for row in found if row["packet_type"] == "junk"]
    # What is left of the packets before and behind the gap: their bytes add up.
    assert len(junk) == 2
    assert "truncated" in junk[0]["malformed"]
    assert junk[1]["malformed"] == "the packet begins inside a gap"
    total = sum(len(packet.payload) for packet in talk.packets if packet.destination[1] == 1801)
    assert sum(row["packet_size"] for row in found) == total
    (session,) = rows(traffic.write(tmp_path / "b.pcap", packets), table="sessions")
    assert (session["missing_bytes_to_server"], session["malformed_to_server"]) == (missing, 2)


def test_a_long_wait_behind_a_hole_is_ended(tmp_path: Path) -> None:
    talk = conversation(200)
    packets = [packet for index, packet in enumerate(talk.packets) if index != 20]
    found = rows(traffic.write(tmp_path / "a.pcap", packets), flow_limit=20_000)
    times = {kind: [row["time"] for row in found if row["packet_type"] == kind] for kind in ("gap", "user")}
    assert len(times["user"]) >= 198
    assert times["user"][0] < times["gap"][0] < times["user"][-1]


def test_a_capture_that_begins_in_the_middle(tmp_path: Path) -> None:
    talk = conversation(20)
    found = rows(traffic.write(tmp_path / "a.pcap", talk.packets[9:]))
    ids = [row["app_specific"] for row in found if row["packet_type"] == "user"]
    assert ids == list(range(ids[0], 21))
    assert ids[0] <= 4
    (session,) = rows(traffic.write(tmp_path / "a.pcap", talk.packets[9:]), table="sessions")
    assert (session["handshake_seen"], session["server"]) == (False, "10.0.0.2:1801")


def test_short_snap_lengths_are_gaps(tmp_path: Path) -> None:
    data = traffic.pcap([packet.ip() for packet in conversation(5).packets], snap=200)
    (tmp_path / "a.pcap").write_bytes(data)
    found = rows(tmp_path / "a.pcap")
    assert kinds(found).count("gap") >= 5
    assert kinds(found)[:2] == ["junk", "gap"]


def test_malformed_packets(tmp_path: Path) -> None:
    good = [traffic.message(n, b"x" * 100) for n in range(1, 4)]
    bad = bytearray(good[1])
    bad[62] &= ~0x20  # UserHeader.Flags.MP
    talk = Talk().open().say(good[0] + bytes(bad) + good[2]).reset()
    capture = traffic.write(tmp_path / "a.pcap", talk.packets)
    found = rows(capture, raw=True)
    assert kinds(found) == ["user", "junk", "user"]
    assert found[1]["malformed"] == "UserHeader.Flags.MP is clear (no-properties)"
    assert found[1]["malformed_bytes"] == bytes(bad)
    assert found[0]["raw_packet"] == good[0]
    assert "raw_packet" not in rows(capture)[0]
    assert kinds(rows(capture, mode="DROPMALFORMED")) == ["user", "user"]
    with pytest.raises(CaptureError, match=r"a\.pcap"):
        rows(capture, mode="FAILFAST")
    (session,) = rows(capture, table="sessions")
    assert session["close_reason"] == "rst"


def test_native_and_plain_columns_agree() -> None:
    rng = random.Random(8)
    packets = [stores.message(number, rng).to_packet() for number in range(150)]
    for counted in (False, True):
        packets += [traffic.message(n, b"x", session=True, counted=counted) for n in range(3)]
    kept = []
    for packet in packets:
        assert cut(packet) == plainly_cut(packet)
        kept.append(cut(packet)[1])
    columns = message_columns(body=True)
    native, plain = native_encoder(columns)(kept), plain_encoder(columns)(kept)
    assert native.num_rows == 156
    assert native.to_pylist() == plain.to_pylist()
    assert native.schema == plain.schema


def test_port_numbers_used_again(tmp_path: Path) -> None:
    first = conversation(2).packets
    second = conversation(3, Talk(starts=(5_000_000, 7_000_000))).packets
    found = rows(traffic.write(tmp_path / "a.pcap", first + second))
    names = {row["connection"] for row in found}
    assert names == {"10.0.0.1:40000->10.0.0.2:1801", "10.0.0.1:40000->10.0.0.2:1801#2"}
    assert kinds(found).count("user") == 5


def test_sequence_numbers_that_wrap(tmp_path: Path) -> None:
    talk = conversation(30, Talk(starts=(2**32 - 5_000, 2**32 - 600)))
    found = rows(traffic.write(tmp_path / "a.pcap", traffic.disturbed(talk.packets, 3, swapped=0.1)))
    assert kinds(found).count("user") == 30
    assert {row["malformed"] for row in found} == {None}


def test_pings(tmp_path: Path) -> None:
    ends = ("10.0.0.1", 50_000), ("10.0.0.2", 3527)
    packets = [
        traffic.datagram(*ends, Ping(5, traffic.CLIENT).encode()),
        traffic.datagram(*reversed(ends), Ping(5, traffic.SERVER, refused=True).encode()),
        traffic.datagram(*ends, b"something else"),
    ]
    (tmp_path / "a.pcap").write_bytes(traffic.pcap(packets))
    found = rows(tmp_path / "a.pcap")
    assert kinds(found) == ["ping", "ping"]
    assert [row["refused"] for row in found] == [False, True]
    assert found[1]["client_guid"] == str(traffic.SERVER)


def test_the_packet_table(tmp_path: Path) -> None:
    talk = conversation(20)
    capture = traffic.write(tmp_path / "a.pcap", talk.packets)
    found = rows(capture, table="packets", shares=2)
    assert [row["number"] for row in found] == list(range(1, len(talk.packets) + 1))
    assert [row["flags"] for row in found[:3]] == ["SYN", "SYN|ACK", "ACK"]
    assert [(row["sequence"], row["payload"]) for row in found] == [
        (packet.sequence, packet.payload) for packet in talk.packets
    ]
    assert "payload" not in rows(capture, table="packets", body=False)[0]


def test_files_of_one_capture(tmp_path: Path) -> None:
    talk = conversation(30)
    files = [traffic.write(tmp_path / f"{n}.pcap", talk.packets[n * 20 : n * 20 + 20]) for n in range(2)]
    files.append(traffic.write(tmp_path / "2.pcap", talk.packets[40:]))
    assert kinds(rows(*files)).count("user") == 30
    assert {row["malformed"] for row in rows(*files)} == {None}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"GIF89a", "neither pcap nor pcapng"),
        (traffic.pcap([])[:20], "inside the header of the file"),
        (traffic.pcap([b"x" * 50])[:-10], "inside record 1"),
        (traffic.pcap([]) + b"\xff" * 16, "claims 4294967295 bytes"),
        (traffic.pcapng([bytes(60)])[:-5], "inside a block"),
        (traffic.pcapng([])[:12], "inside a block"),
        (b"\n\r\r\n" + bytes(24), "byte order mark"),
        (gzip.compress(traffic.pcap([bytes(60)] * 9), mtime=0)[:40], "cannot be read after byte"),
        (gzip.compress(b"x", mtime=0)[:10] + b"\xff" * 50, "invalid block type"),
        (traffic.pcap([bytes(60)], link=147), "link type 147 is not supported"),
        (traffic.pcap([b"\x45"]), "1 captured bytes are too few"),
    ],
)
def test_damaged_files(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.pcap").write_bytes(data)
    for table in ("frames", "packets"):
        found = rows(tmp_path / "a.pcap", table=table, shares=2)
        assert len(found) == 1
        assert reason in found[0]["malformed"]
        assert rows(tmp_path / "a.pcap", table=table, mode="DROPMALFORMED") == []
        with pytest.raises(CaptureError, match=r"a\.pcap"):
            rows(tmp_path / "a.pcap", table=table, mode="FAILFAST")


def test_a_block_of_very_many_options_is_read_once(tmp_path: Path) -> None:
    options = b"\1\0\0\0" * (1 << 18)
    size = (len(options) + 20).to_bytes(4, "little")
    block = b"\1\0\0\0" + size + traffic.RAW.to_bytes(4, "little") + bytes(4) + options + size
    (tmp_path / "a.pcapng").write_bytes(traffic.pcapng([])[:28] + block)
    with processor_time() as spent:
        assert rows(tmp_path / "a.pcapng") == []
    assert spent.seconds < 3


def test_very_many_short_segments_behind_a_hole_do_not_fill_the_memory() -> None:
    direction = Direction(10_000)
    direction.begin(0)
    pieces = [piece for number in range(1000) for piece in direction.add(10 + 2 * number, b"x")]
    pieces += direction.end()
    waited = [index for index, piece in enumerate(pieces) if not piece.data]
    assert direction.waiting == 0
    assert sum(len(piece.data) for piece in pieces) == 1000
    assert len(waited) == 1000
    direction.begin(0)
    held = 0
    for number in range(1000):
        held += 1 - sum(1 for piece in direction.add(10 + 2 * number, b"x") if piece.data)
        assert held < 100


@pytest.fixture(scope="module")
def samples() -> list[bytes]:
    packets = traffic.disturbed(conversation(12, Talk(segment=700)).packets, 1, repeated=0.1, swapped=0.1)
    framed = [traffic.framed(traffic.ETHERNET, packet.ip()) for packet in packets]
    return [traffic.pcap(framed, link=traffic.ETHERNET), traffic.pcapng(framed)]


@pytest.mark.parametrize("which", [0, 1])
def test_changed_captures_stop_nothing(tmp_path: Path, samples: list[bytes], which: int) -> None:
    rng = random.Random(which)
    for _ in range(60):
        data = bytearray(samples[which])
        for _ in range(rng.choice((1, 5, 50, 400))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0xFF, rng.randrange(256)))
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        (tmp_path / "a.pcap").write_bytes(data)
        for table in ("frames", "sessions", "packets"):
            rows(tmp_path / "a.pcap", table=table, flow_limit=5_000)


# -- the order of a stream


def _pieces(found: Iterator[Any]) -> bytes:
    return b"".join(piece.data if piece.data else b"?" * piece.missing for piece in found)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_order_of_segments_gives_the_stream(data: st.DataObject) -> None:
    stream = bytes(range(1, 200))
    cuts = data.draw(st.lists(st.integers(0, 199), max_size=12).map(lambda found: sorted({0, 199, *found})))
    segments = [(low, stream[low:high]) for low, high in itertools.pairwise(cuts)]
    overlapping = data.draw(st.lists(st.tuples(st.integers(0, 198), st.integers(1, 50)), max_size=6))
    segments += [(low, stream[low : low + size]) for low, size in overlapping]
    order = data.draw(st.permutations(segments))
    start = data.draw(st.sampled_from([0, 2**31 - 100, 2**32 - 100]))
    direction = Direction(1 << 20)
    direction.begin(start)
    found = b""
    for low, payload in order:
        found += _pieces(direction.add((start + low) % 2**32, payload))
        assert stream.startswith(found)
    assert found == stream
    assert direction.waiting == 0
    assert list(direction.end()) == []


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_holes_are_gaps_of_the_right_size(data: st.DataObject) -> None:
    stream = bytes(range(1, 200))
    there = data.draw(st.lists(st.booleans(), min_size=20, max_size=20))
    segments = [(10 * n, stream[10 * n : 10 * n + 10]) for n in range(20) if there[n]]
    direction = Direction(data.draw(st.sampled_from([15, 60, 1000])))
    direction.begin(0)
    found = b""
    for low, payload in segments:
        found += _pieces(direction.add(low, payload))
        assert direction.waiting <= 1000
    found += _pieces(direction.end())
    last = max((n for n in range(20) if there[n]), default=-1)
    expected = b"".join(stream[10 * n : 10 * n + 10] if there[n] else b"?" * 10 for n in range(last + 1))
    assert found == expected
