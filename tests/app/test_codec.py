"""appcodec against packet.Message: what is sent stands in the packet, and what stands in a packet is
delivered.
"""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.appcodec import PacketBuilder
from msmq_fast._native.appencode import Encoder
from msmq_fast._native.appread import FrameFault, send_head
from msmq_fast._native.framing import parse
from msmq_fast.packet import Message
from msmq_fast.packet.fields import destination_field
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.protect import protected
from msmq_fast.packet.replies import ReplyNames
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.frames import (
    LONG_LIVED,
    OUT_DEFAULTS,
    OUT_FIELDS,
    Frame,
    FrameCutter,
    In,
    Out,
    unpack_payload,
)
from msmq_fast.security.sid import Sid

pytestmark = pytest.mark.smoke

SOURCE = UUID("4f1d3c2b-8a6e-4d4f-9c01-0203040506ff")
DESTINATION = parse_format_name(r"DIRECT=OS:here\private$\orders")
NAMES = [
    None,
    r"DIRECT=TCP:10.0.0.7\private$\replies",
    r"PUBLIC=11112222-3333-4444-5555-666677778888",
    r"PRIVATE=99992222-3333-4444-5555-666677778888\0000002a",
    rf"PRIVATE={SOURCE}\00000007",
]


def builder(sender: bytes = b"") -> PacketBuilder:
    field = destination_field(DESTINATION)
    null = UUID(int=0)
    names = ReplyNames("here", SOURCE, null)
    return PacketBuilder(SOURCE.bytes_le, null.bytes_le, field.kind, field.wire, names, sender=sender)


def payload(*messages: Any, handle: int = 7, flags: int = 0) -> bytes:
    return msgpack.packb([handle, flags, list(messages)])


def build(*messages: Any) -> list[bytes | int]:
    return builder().packets(payload(*messages), 9, 1_700_000_000)


def stored(packet: bytes, lookup_id: int = 5) -> SimpleNamespace:
    return SimpleNamespace(
        packet=packet,
        lookup_id=lookup_id,
        arrival_seq=77,
        arrived_time=1_700_000_009,
        abort_count=2,
        move_count=3,
        reason=0,
    )


labels = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=124)
u32 = st.integers(0, 0xFFFFFFFF)
messages = st.tuples(
    st.binary(max_size=300) | st.integers(32_760, 32_776).map(lambda size: b"x" * size),
    labels,
    st.integers(0, 1),
    st.integers(0, 7),
    u32,
    u32,
    st.binary(min_size=20, max_size=20),
    st.binary(max_size=50),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES[1:]),
    st.integers(0, 15),
    st.integers(0, 3),
    u32.filter(lambda seconds: seconds != 0xFFFF_FFFE),  # stands for the default of the server
    u32,
    st.sampled_from([0, 1, 0x8001, 0xE1FF]),
)


@given(messages, st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_message_with_its_sender_is_the_packet_without_it_and_a_header(
    full: tuple[Any, ...], transactional: bool
) -> None:
    header = SecurityHeader(sender_id_type=1, sender_id=Sid.build(5, 21, 1, 2, 3, 1004).data)
    fields = list(full)
    if not full[Out.ACKNOWLEDGE]:
        fields[Out.ADMIN_QUEUE] = None
    given = [*fields, *OUT_DEFAULTS[len(fields) :]]
    given[Out.ATTACH_SENDER] = True
    headers = (1 << 4 | 12,) if transactional else ()
    (without,) = builder().packets(payload(fields), 9, 1_700_000_000, *headers)
    assert isinstance(without, bytes)
    known = builder(header.encode())
    assert known.packets(payload(given), 9, 1_700_000_000, *headers) == [protected(parse(without), header)]
    assert known.signatures == {}


def test_a_sender_that_is_not_known_is_left_to_the_caller() -> None:
    fields = list(OUT_DEFAULTS)
    fields[Out.ATTACH_SENDER] = True
    asked = builder()
    (packet,) = asked.packets(payload(fields), 9, 1_700_000_000)
    assert isinstance(packet, bytes)
    assert parse(packet).security_offset == 0
    assert asked.signatures == {0: (0, 0, b"")}


@pytest.mark.rule("QB-373")
@given(messages, st.integers(0, OUT_FIELDS))
@settings(max_examples=150, deadline=None)
def test_a_sent_message_is_the_packet(full: tuple[Any, ...], count: int) -> None:
    fields = list(full[:count])
    if count > Out.ACKNOWLEDGE and not full[Out.ACKNOWLEDGE]:
        fields[Out.ADMIN_QUEUE] = None
    values = [*fields, *OUT_DEFAULTS[count:]]
    (packet,) = build(fields)
    assert isinstance(packet, bytes)
    message = Message.from_packet(packet)
    assert message.source_machine == SOURCE
    assert message.message_id == 9
    assert message.sent_time == 1_700_000_000
    assert message.destination == DESTINATION
    assert message.body == values[Out.BODY]
    assert message.label == values[Out.LABEL]
    assert message.delivery == values[Out.DELIVERY]
    assert message.priority == values[Out.PRIORITY]
    assert message.body_type == values[Out.BODY_TYPE]
    assert message.app_specific == values[Out.APP_SPECIFIC]
    assert message.correlation_id == values[Out.CORRELATION_ID]
    assert message.extension == values[Out.EXTENSION]
    assert message.acknowledge == values[Out.ACKNOWLEDGE]
    assert message.journal == values[Out.JOURNAL]
    reach = values[Out.TIME_TO_REACH_QUEUE]
    assert message.time_to_reach_queue == (345_600 if reach == LONG_LIVED else reach)
    assert message.time_to_be_received == values[Out.TIME_TO_BE_RECEIVED]
    assert message.message_class == values[Out.CLASS]
    for name, given_name in (
        (message.response_queue, Out.RESPONSE_QUEUE),
        (message.admin_queue, Out.ADMIN_QUEUE),
    ):
        wanted = values[given_name]
        if given_name == Out.ADMIN_QUEUE and not values[Out.ACKNOWLEDGE]:
            wanted = None
        assert (str(name).lower() if name else None) == (wanted.lower() if wanted else None)


@given(st.lists(messages, min_size=1, max_size=6), st.sampled_from([1, 1000, 262_144]))
@settings(max_examples=60, deadline=None)
def test_packets_are_delivered_whole(many: list[tuple[Any, ...]], target: int) -> None:
    sent = [m if m[Out.ACKNOWLEDGE] else (*m[:9], None, *m[10:]) for m in many]
    packets = [packet for packet in build(*sent) if isinstance(packet, bytes)]
    assert len(packets) == len(sent)
    buffers = Encoder().delivery(6, 100, [stored(p, i) for i, p in enumerate(packets)], target)  # type: ignore[misc]
    seen = 0
    for kind, number, data in FrameCutter().feed(b"".join(buffers)):
        assert (kind, number) == (Frame.DELIVERY, 6)
        tag, messages = unpack_payload(data)
        assert tag == 100 + seen
        for fields in messages:
            original = sent[seen]
            assert fields[In.LOOKUP_ID] == seen
            assert fields[In.BODY] == original[Out.BODY]
            assert fields[In.LABEL] == original[Out.LABEL]
            assert fields[In.DELIVERY : In.EXTENSION + 1] == list(original[Out.DELIVERY : Out.EXTENSION + 1])
            for given_name, shown in (
                (original[Out.RESPONSE_QUEUE], fields[In.RESPONSE_QUEUE]),
                (original[Out.ADMIN_QUEUE], fields[In.ADMIN_QUEUE]),
            ):
                assert (shown and shown.lower()) == (given_name and given_name.lower())
            assert fields[In.ACKNOWLEDGE] == original[Out.ACKNOWLEDGE]
            assert fields[In.JOURNAL] == original[Out.JOURNAL]
            assert fields[In.CLASS] == original[Out.CLASS]
            assert fields[In.MESSAGE_ID] == SOURCE.bytes_le + (9 + seen).to_bytes(4, "little")
            assert fields[In.SENT_TIME : In.ARRIVAL_SEQ + 1] == [1_700_000_000, 1_700_000_009, 77]
            assert fields[In.DESTINATION_QUEUE] == str(DESTINATION)
            assert fields[In.FLAGS :] == [
                0,
                None,
                2,
                3,
                original[Out.TIME_TO_REACH_QUEUE],
                original[Out.TIME_TO_BE_RECEIVED],
                0,
                0,
            ]
            seen += 1
    assert seen == len(sent)


def test_what_was_handed_over_stays_as_it_is() -> None:
    """The encoder's own memory is handed over: later frames, larger and smaller, get other memory."""
    encoder = Encoder()
    seen = []
    for number, size in enumerate([10, 30_000, 0, 40_000, 5_000, 100]):
        packets = [packet for packet in build([b"x" * size], [b"y" * size]) if isinstance(packet, bytes)]
        many = [stored(packet, index) for index, packet in enumerate(packets)]
        buffers = [*encoder.delivery(number, 1, many, 20_000), *encoder.message(number, many[0])]
        seen.append((buffers, [bytes(buffer) for buffer in buffers]))
    for buffers, copies in seen:
        assert [bytes(buffer) for buffer in buffers] == copies


def test_a_lone_surrogate_of_a_peer_is_delivered_as_replacement() -> None:
    packet = build([b"", "ab"])[0]
    assert isinstance(packet, bytes)
    spoiled = packet.replace("ab\0".encode("utf-16-le"), b"a\0\x00\xd8\0\0")
    assert spoiled != packet
    ((_, _, data),) = FrameCutter().feed(b"".join(Encoder().message(1, stored(spoiled))))
    assert unpack_payload(data)[In.LABEL] == "a�"


def test_response_queue_relative_to_the_admin_queue() -> None:
    admin = r"PRIVATE=99992222-3333-4444-5555-666677778888\0000002a"
    packet = build([b"", "", 0, 3, 0, 0, b"", b"", admin, admin, 1])[0]
    assert isinstance(packet, bytes)
    flags = int.from_bytes(packet[60:64], "little")
    same = bytearray(packet)  # RQ 1: the response queue is the admin queue
    same[60:64] = (flags & ~(7 << 16) | 1 << 16).to_bytes(4, "little")
    start = packet.index(bytes.fromhex("2a000000")) + 4  # behind the admin queue
    same[start : start + 20] = b""
    same[8:12] = len(same).to_bytes(4, "little")
    ((_, _, data),) = FrameCutter().feed(b"".join(Encoder().message(1, stored(bytes(same)))))
    fields = unpack_payload(data)
    assert fields[In.RESPONSE_QUEUE] == fields[In.ADMIN_QUEUE] == admin


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ([b"", "x" * 250], 0xC00E005D),
        ([b"", "a\0b"], 0xC00E0018),
        ([b"", "", 2], 0xC00E0018),
        ([b"", "", 0, 8], 0xC00E0018),
        ([b"", "", 0, 3, 0, 0, None, None, None, None, 16], 0xC00E0018),
        ([b"", "", 0, 3, 0, 0, None, None, None, None, 0, 4], 0xC00E0018),
        ([b"", "", 0, 3, 0, 0, None, None, None, None, 1], 0xC00E003F),
        ([b"", "", 0, 3, 0, 0, None, None, None, None, 0, 0, None, None, 0x0200], 0xC00E0018),
        ([b"", "", 0, 3, 0, 0, None, None, "DIRECT=nonsense"], 0xC00E001E),
        ([b"x" * 0x400000], 0xC00E0027),
        ([b"", "", 0, 3, 0, 0, None, b"x" * 0x400000], 0xC00E0027),
    ],
)
def test_a_refused_message_does_not_harm_its_neighbours(fields: list[Any], code: int) -> None:
    before, refused, after = build([b"1"], fields, [b"2"])
    assert refused == code
    assert isinstance(before, bytes)
    assert isinstance(after, bytes)
    assert Message.from_packet(after).body == b"2"
    assert Message.from_packet(after).message_id == Message.from_packet(before).message_id + 1


@pytest.mark.parametrize(
    "fields",
    [
        "no array",
        [b""] * 16,
        ["text as body"],
        [b"", b"bytes as label"],
        [b"", "", -1],
        [b"", "", 1.0],
        [b"", "", 0, 3, 1 << 32],
        [b"", "", 0, 3, 0, 0, b"short"],
        [b"", "", 0, 3, 0, 0, None, None, b"bytes as name"],
        [[b""]],
        {0: b""},
    ],
)
def test_a_message_of_another_layout_is_a_fault(fields: Any) -> None:
    with pytest.raises(FrameFault):
        send_head(payload([b"good"], fields))
    with pytest.raises(FrameFault):
        builder().packets(payload([b"good"], fields), 1, 0)


def test_every_cut_of_a_frame_is_a_fault() -> None:
    whole = payload([b"body", "label", 1, 3, 70_000, 1, b"c" * 20, b"e" * 300, None, None, 0, 0, 5, 6, 0])
    for size in range(len(whole)):
        with pytest.raises(FrameFault):
            send_head(whole[:size])
    with pytest.raises(FrameFault):
        send_head(whole + b"\0")


@given(st.binary(max_size=200))
@settings(max_examples=400, deadline=None)
def test_noise_is_a_fault_or_a_frame(noise: bytes) -> None:
    for data in (noise, b"\x93\x07\x00\x91" + noise, b"\x93\x07\x00\xdd\xff\xff\xff\xff" + noise):
        try:
            send_head(data)
        except FrameFault:
            continue
        for item in builder().packets(data, 1, 0):
            assert isinstance(item, int) or Message.from_packet(item)


@given(st.binary(min_size=1, max_size=4), st.integers(0, 120))
@settings(max_examples=200, deadline=None)
def test_mutated_frames(change: bytes, place: int) -> None:
    whole = bytearray(
        payload([b"body", "label", 1, 3, 70_000, 1, b"c" * 20, b"e" * 30, NAMES[1], NAMES[2], 5])
    )
    whole[place : place + len(change)] = change
    try:
        send_head(bytes(whole))
    except FrameFault:
        return
    for item in builder().packets(bytes(whole), 1, 0):
        assert isinstance(item, int) or Message.from_packet(item)


LONG_ADMIN = """
from types import SimpleNamespace
from msmq_fast._native.appencode import Encoder
from msmq_fast._native.packetbuild import build_user_message

def field(text):
    raw = (text + chr(0)).encode("utf-16-le")
    raw = len(raw).to_bytes(2, "little") + raw
    return raw + bytes(-len(raw) % 4)

admin = field(chr(0x6F22) * 30000)
packet = build_user_message(field("OS:a"), body=b"x", admin=admin, admin_type=7, response_type=1)
names = "lookup_id", "arrival_seq", "arrived_time", "abort_count", "move_count", "reason"
fields = dict.fromkeys(names, 1)
message = SimpleNamespace(packet=packet, **fields)
assert len(b"".join(map(bytes, Encoder().message(1, message)))) > 180_000
"""


def test_an_admin_queue_that_is_the_response_queue_too_has_room_twice() -> None:
    """Python's debug allocator notices a byte written behind the buffer."""
    environment = os.environ | {"PYTHONMALLOC": "debug"}
    run = subprocess.run([sys.executable, "-c", LONG_ADMIN], env=environment, capture_output=True, timeout=60)
    assert run.returncode == 0, run.stderr.decode()
