"""Headers and messages survive encoding and decoding, in every combination."""

import struct
import sys
import tracemalloc
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.framing import parse
from msmq_fast._native.packetbuild import build_user_message
from msmq_fast._native.receive import with_session_header
from msmq_fast.packet import FormatName, Message, PacketFault
from msmq_fast.packet.acks import FinalAck, OrderAck, order_queue
from msmq_fast.packet.base import MAX_PACKET, BaseHeader, InternalHeader
from msmq_fast.packet.fields import QueueField, direct_text, direct_wire
from msmq_fast.packet.names import NameKind, parse_format_name
from msmq_fast.packet.properties import DebugHeader, MessagePropertiesHeader
from msmq_fast.packet.session import ConnectionParameters, EstablishConnection, SessionAck, SessionHeader
from msmq_fast.packet.soap import SoapHeader
from msmq_fast.packet.user import (
    SecurityHeader,
    TransactionHeader,
    UserHeader,
    parse_provider_info,
    provider_info,
)
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.errors import (
    IllegalPropertyValue,
    InsufficientResources,
    LabelTooLong,
    PacketFaultCode,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from tests.support.packet.samples import OPTIONAL, OTHER, QUEUE_FIELDS, SOURCE, build, combinations, frame

pytestmark = pytest.mark.smoke

u16, u32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
guids = st.uuids()
texts = st.text(max_size=30, alphabet=st.characters(exclude_characters="\0"))
direct_names = st.sampled_from(
    [
        r"DIRECT=OS:host\private$\q",
        r"DIRECT=TCP:10.0.0.7\q",
        r"DIRECT=OS:h\private$\q;sub",
        "DIRECT=HTTP://h/msmq/q",
    ]
).map(parse_format_name)
private_names = st.builds(lambda guid, number: FormatName(NameKind.PRIVATE, guid, number), guids, u32)
public_names = st.builds(lambda guid: FormatName(NameKind.PUBLIC, guid), guids)
queue_names = st.one_of(direct_names, private_names, public_names)


@pytest.mark.parametrize(("name", "packet"), list(combinations()))
def test_every_combination_of_headers(name: str, packet: UserMessagePacket) -> None:
    data = packet.encode()
    decoded, used = UserMessagePacket.decode(data + b"next packet")
    assert used == len(data)
    assert decoded.encode() == data
    for header in ("transaction", "security", "debug", "envelope", "compound", "soap", "multi", "session"):
        assert getattr(decoded, header) == getattr(packet, header)
    assert (decoded.properties.body, decoded.body) == (packet.properties.body, packet.body)
    parsed = parse(data)
    assert parsed.size == len(data) - (16 if packet.session else 0)
    assert bytes(parsed.body) == packet.body
    assert parsed.label == packet.properties.label


@pytest.mark.rule("DM-183")
@pytest.mark.parametrize(("name", "packet"), list(combinations()))
def test_what_has_no_header_keeps_its_default(name: str, packet: UserMessagePacket) -> None:
    """Whether a header is there is said by the flags, and by nothing else."""
    message, plain = Message.from_packet(packet.encode()), Message()
    assert message.transaction == packet.transaction
    assert message.security == packet.security
    assert message.soap == packet.soap
    assert message.trace_queue == (packet.debug.queue if packet.debug is not None else None)
    assert message.connector_type == plain.connector_type
    for lists in ("destinations", "admin_queues", "response_queues", "multi_signature"):
        if packet.multi is None:
            assert getattr(message, lists) == getattr(plain, lists)
    assert bool(message.destinations) == (packet.multi is not None)


@pytest.mark.rule("DM-190")
def test_a_body_is_copied_once() -> None:
    """Into the message that is handed out; the packet is only looked at."""
    packet = Message(body=bytes(3 << 20)).to_packet()
    tracemalloc.start()
    try:
        message = Message.from_packet(packet)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(message.body) == 3 << 20
    assert peak < (3 << 20) + (1 << 16)


@pytest.mark.rule("DM-198")
def test_headers_are_read_without_an_object_for_each_field() -> None:
    packets = [build(**OPTIONAL["security"][1]).encode() for _ in range(500)]
    parsed = [parse(packets[0])] * len(packets)
    before = sys.getallocatedblocks()
    for number, packet in enumerate(packets):
        parsed[number] = parse(packet)
    assert sys.getallocatedblocks() - before <= 2 * len(packets)  # the view, and the packet that it keeps


@pytest.mark.parametrize("dest", [0, 3, 5, 7])
@pytest.mark.parametrize("admin", [0, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("response", range(8))
def test_queue_name_types(dest: int, admin: int, response: int) -> None:
    user = UserHeader(
        SOURCE,
        OTHER,
        destination=QUEUE_FIELDS[dest],
        admin=QUEUE_FIELDS[admin],
        response=QUEUE_FIELDS[response],
    )
    data = build(user=user).encode()
    parsed = parse(data)
    assert bytes(parsed.destination) == QUEUE_FIELDS[dest].wire
    assert bytes(parsed.admin) == QUEUE_FIELDS[admin].wire
    assert bytes(parsed.response) == QUEUE_FIELDS[response].wire
    assert UserMessagePacket.decode(data)[0].user == user


@pytest.mark.parametrize(("field", "kinds"), [(10, (1, 2, 4, 6)), (13, (1, 4))])
def test_illegal_queue_types(field: int, kinds: tuple[int, ...]) -> None:
    for kind in kinds:
        data = bytearray(build().encode())
        (flags,) = struct.unpack_from("<I", data, 60)
        struct.pack_into("<I", data, 60, flags & ~(7 << field) | kind << field)
        with pytest.raises(PacketFault) as fault:
            Message.from_packet(bytes(data))
        expected = PacketFaultCode.DESTINATION_TYPE if field == 10 else PacketFaultCode.ADMIN_TYPE
        assert fault.value.code is expected
        with pytest.raises(PacketFault):
            UserMessagePacket.decode(bytes(data))


@pytest.mark.parametrize("length", range(1, 12))
def test_padding_of_direct_names(length: int) -> None:
    wire = direct_wire("x" * length)
    assert len(wire) % 4 == 0
    assert int.from_bytes(wire[:2], "little") == 2 * length + 2
    assert direct_text(wire) == "x" * length
    junk = wire[: 4 + 2 * length] + b"\xff" * (len(wire) - 4 - 2 * length)
    user = UserHeader(destination=QueueField(7, junk))
    destination = Message.from_packet(build(user=user).encode()).destination
    assert destination is not None
    assert destination.text == "x" * length


messages = st.builds(
    Message,
    body=st.binary(max_size=64),
    label=texts,
    destination=queue_names,
    priority=st.integers(0, 7),
    delivery=st.sampled_from(Delivery),
    body_type=u32,
    app_specific=u32,
    extension=st.binary(max_size=16),
    correlation_id=st.binary(min_size=20, max_size=20),
    message_class=st.integers(0x0003, 0x00FE),
    acknowledge=st.integers(0, 15).map(Acknowledge),
    admin_queue=st.none() | queue_names,
    response_queue=st.none() | queue_names,
    journal=st.integers(0, 3).map(Journal),
    time_to_reach_queue=u32,
    time_to_be_received=u32,
    source_machine=guids,
    message_id=u32,
    sent_time=u32,
    hops=st.integers(0, 29),
    connector_type=st.none() | guids,
    privacy_level=st.sampled_from([0, 1, 3, 5]),
    hash_algorithm=u32,
    encryption_algorithm=u32,
    security=st.none() | st.builds(SecurityHeader, st.just(2), sender_id=st.binary(min_size=16, max_size=16)),
    soap=st.none() | st.builds(SoapHeader, texts, texts),
    destinations=st.lists(queue_names, max_size=3).map(tuple),
    admin_queues=st.lists(queue_names, max_size=2).map(tuple),
    response_queues=st.lists(queue_names, max_size=2).map(tuple),
)


@pytest.mark.rule("QB-372", "DM-179", "DM-181", "DM-182", "DM-184", "DM-187", "DM-188", "DM-193", "DM-194")
@given(messages, st.booleans(), st.none() | guids)
@settings(max_examples=300, deadline=None)
def test_message_round_trip(message: Message, trace: bool, queue: UUID | None) -> None:
    message.trace, message.trace_queue = trace, queue if trace else None
    data = message.to_packet()
    decoded = Message.from_packet(data)
    if message.destination_manager.int == 0 and message.destination.kind is NameKind.PRIVATE:
        message.destination_manager = message.destination.guid
    assert decoded == message
    assert decoded.to_packet() == data
    assert UserMessagePacket.decode(data)[0].encode() == data
    assert struct.unpack_from("<I", data, 8)[0] == len(data)


@pytest.mark.rule("QB-373", "DM-180", "DM-184", "DM-191")
@given(
    st.builds(
        TransactionHeader,
        u32,
        u32,
        u32,
        u32,
        st.integers(0, 0xFFFFF),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    )
)
def test_a_transactional_message_is_recoverable_and_has_priority_0(header: TransactionHeader) -> None:
    decoded = Message.from_packet(Message(transaction=header, priority=6).to_packet())
    assert decoded.transaction == header
    assert (decoded.priority, decoded.delivery, decoded.transactional) == (0, Delivery.RECOVERABLE, True)
    assert header.sequence_id == header.sequence_timestamp << 32 | header.sequence_ordinal


@pytest.mark.rule("DM-192", "DM-196")
def test_trace_flags() -> None:
    data = Message(trace=True).to_packet()
    assert struct.unpack_from("<H", data, 2)[0] == 0x0123
    assert DebugHeader.decode(data, len(data) - 4)[0].queue is None
    data = Message(trace=True, trace_queue=OTHER).to_packet()
    assert DebugHeader.decode(data, len(data) - 20) == (DebugHeader(OTHER), len(data))


def test_private_reply_queues_take_the_short_forms() -> None:
    def kinds(**queues: FormatName) -> tuple[int, int]:
        parsed = parse(Message(source_machine=SOURCE, destination_manager=OTHER, **queues).to_packet())
        return parsed.admin_type, parsed.response_type

    def private(guid: UUID) -> FormatName:
        return FormatName(NameKind.PRIVATE, guid, 9)

    assert kinds(admin_queue=private(SOURCE), response_queue=private(OTHER)) == (2, 3)
    assert kinds(admin_queue=private(UUID(int=1)), response_queue=private(SOURCE)) == (6, 2)


def test_reply_names_that_refer_to_the_admin_queue() -> None:
    admin = QueueField(6, OTHER.bytes_le + b"\x0c\0\0\0")
    same = build(user=UserHeader(SOURCE, OTHER, admin=admin, response=QueueField(1))).encode()
    assert str(Message.from_packet(same).response_queue) == f"PRIVATE={OTHER}\\0000000c"
    near = build(user=UserHeader(SOURCE, OTHER, admin=admin, response=QueueField(4, b"\x0d\0\0\0"))).encode()
    assert str(Message.from_packet(near).response_queue) == f"PRIVATE={OTHER}\\0000000d"


@pytest.mark.rule("DM-194")
@pytest.mark.parametrize(("label", "length"), [("", 0), ("x", 2), ("\U0001f4e8", 3), ("x" * 249, 250)])
def test_the_length_of_a_label_counts_its_nul(label: str, length: int) -> None:
    packet = Message(label=label, body=b"body").to_packet()
    assert packet[parse(packet).properties_offset + 1] == length


@pytest.mark.rule("DM-194")
def test_refusals_of_a_message() -> None:
    with pytest.raises(LabelTooLong):
        Message(label="x" * 250).to_packet()
    with pytest.raises(LabelTooLong):
        Message(label="\U0001f4e8" * 125).to_packet()
    assert Message.from_packet(Message(label="\U0001f4e8" * 124).to_packet()).label == "\U0001f4e8" * 124
    with pytest.raises(InsufficientResources):
        Message(body=bytes(MAX_PACKET)).to_packet()
    with pytest.raises(IllegalPropertyValue):
        Message(priority=8).to_packet()
    with pytest.raises(IllegalPropertyValue):
        Message(app_specific=1 << 32).to_packet()
    with pytest.raises(IllegalPropertyValue):
        Message(correlation_id=b"short").to_packet()
    for name in ("MULTICAST=224.0.0.1:80", f"PUBLIC={OTHER};JOURNAL", f"DL={OTHER}"):
        with pytest.raises(UnsupportedFormatNameOperation):
            Message(destination=parse_format_name(name)).to_packet()


@pytest.mark.rule("QB-010")
def test_the_largest_packet() -> None:
    room = MAX_PACKET - len(Message().to_packet())
    assert len(Message(body=bytes(room)).to_packet()) == MAX_PACKET
    with pytest.raises(InsufficientResources):
        Message(body=bytes(room + 1)).to_packet()
    largest = BaseHeader(packet_size=MAX_PACKET)
    assert BaseHeader.decode(largest.encode())[0] == largest
    with pytest.raises(PacketFault):
        BaseHeader.decode(BaseHeader(packet_size=MAX_PACKET + 1).encode())


@given(st.text(max_size=300, alphabet=st.characters(codec=None, exclude_characters="\0")))
@settings(deadline=None)
def test_labels_of_any_text(label: str) -> None:
    units = len(label.encode("utf-16-le", "surrogatepass")) // 2
    if units > 249:
        with pytest.raises(ValueError, match="label"):
            build_user_message(b"", 0, label=label)
    else:
        parsed = parse(build_user_message(b"", 0, label=label))
        assert parsed.label == label.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        assert parsed.label_chars == (units + 1 if label else 0)


def test_native_build_checks_its_parts() -> None:
    for wrong in (
        {"source": b"short"},
        {"correlation_id": b""},
        {"transaction": b"abc"},
        {"connector": bytes(15)},
    ):
        with pytest.raises(ValueError):
            build_user_message(b"", 0, **wrong)
    with pytest.raises(ValueError):
        build_user_message(b"abc", 7)


def test_a_session_header_behind_a_packet() -> None:
    data = build(**OPTIONAL["security"][0]).encode()
    header = SessionHeader(1, 2, 3, 4, 5, 6)
    sent = with_session_header(data, header.encode())
    parsed = parse(sent)
    assert sent[parsed.session_offset :] == header.encode()
    assert parsed.kept() == data
    with pytest.raises(ValueError):
        with_session_header(data, b"short")


@pytest.mark.rule("QB-046", "QB-047", "QB-048", "QB-049", "QB-041", "QB-042", "QB-043", "QB-045")
def test_order_ack_on_the_wire() -> None:
    data = OrderAck(1, 2, 3).message(order_queue(OTHER), SOURCE).to_packet()
    parsed = parse(data)
    assert (parsed.base_flags, parsed.user_flags) == (0, 3 << 10 | 1 << 21)
    assert bytes(parsed.destination) == b"\x04\0\0\0"
    assert parsed.destination_manager == OTHER.bytes_le
    assert (parsed.label, parsed.label_chars, parsed.ack_flags) == ("QM Ordering Ack", 16, 0)
    assert (parsed.message_class, parsed.body_type, parsed.body_length) == (0x00FF, 0, 0x24)
    assert bytes(parsed.body) == struct.pack("<IIII", 1, 2, 3, 2) + bytes(20)
    assert OrderAck.decode_body(bytes(parsed.body)[:16] + b"j" * 20) == OrderAck(1, 2, 3)
    with pytest.raises(ValueError):
        OrderAck.decode_body(bytes(35))


@pytest.mark.rule("QB-056", "QB-044", "QB-052", "QB-053", "QB-054", "QB-055", "QB-058")
def test_final_ack_on_the_wire() -> None:
    ack = FinalAck(1, 2, 9, 4, OTHER, 77)
    parsed = parse(ack.message(order_queue(address="10.0.0.7"), SOURCE).to_packet())
    assert (parsed.base_flags, parsed.user_flags) == (0, 1 << 5 | 7 << 10 | 1 << 21)
    assert direct_text(parsed.destination) == r"TCP:10.0.0.7\PRIVATE$\order_queue$"
    assert (parsed.label, parsed.message_class, parsed.body_length) == ("QM Ordering Ack", 0x4000, 36)
    assert bytes(parsed.body) == struct.pack("<IIII", 1, 2, 9, 4) + OTHER.bytes_le + struct.pack("<I", 77)
    assert FinalAck.decode_body(bytes(parsed.body), 0x4000) == ack
    with pytest.raises(ValueError):
        FinalAck.decode_body(bytes(37), 0x4000)


def test_session_packets_refuse_one_another() -> None:
    for decode in (EstablishConnection.decode, ConnectionParameters.decode, SessionAck.decode):
        refused = 0
        for number in (3, 5, 7, 8):
            try:
                decode(frame(number))
            except PacketFault as fault:
                refused += fault.code is PacketFaultCode.PACKET_TYPE
        assert refused == 3
    with pytest.raises(PacketFault):
        ConnectionParameters.decode(frame(5)[:-1])
    assert EstablishConnection.decode(EstablishConnection(SOURCE, refused=True).encode()).refused
    with pytest.raises(PacketFault):
        InternalHeader.decode(bytes(20))
    with pytest.raises(PacketFault):
        BaseHeader.decode(frame(3)[:15])


def test_properties_carry_their_reserved_bits() -> None:
    header = MessagePropertiesHeader(5, 1, allocation_size=64, body=b"abc", reserved_flags=0xA0)
    data = header.encode()
    assert MessagePropertiesHeader.decode(data, 0) == (header, len(data))
    with pytest.raises(LabelTooLong):
        MessagePropertiesHeader(label="x" * 250).encode()


def test_providers() -> None:
    assert parse_provider_info(provider_info(24, "Enhanced")) == (24, "Enhanced")
    with pytest.raises(PacketFault):
        parse_provider_info(b"\x01\0\0\0\0")


def test_names_that_no_rule_allows_are_kept() -> None:
    """What Windows may have sent stays readable, and goes out as it came."""
    odd = QueueField(7, direct_wire("OS:two words\\prïvate"))
    data = build(user=UserHeader(SOURCE, destination=odd, admin=odd, response=odd)).encode()
    message = Message.from_packet(data)
    assert str(message.destination) == str(message.admin_queue) == "DIRECT=OS:two words\\prïvate"
    assert message.to_packet()[64:][: len(odd.wire) * 3] == odd.wire * 3
    host_of_nobody = UserHeader(SOURCE, OTHER, admin=odd, response=QueueField(4, b"\x0d\0\0\0"))
    assert Message.from_packet(build(user=host_of_nobody).encode()).response_queue is None
