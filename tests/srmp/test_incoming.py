"""Messages that come become packets: every attribute where MS-MQMQ has it, and the message as it came."""

from __future__ import annotations

import base64
import re
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.framing import parse
from msmq_fast.packet.base import INFINITE, MAX_PACKET
from msmq_fast.packet.message import Message
from msmq_fast.packet.protect import protected
from msmq_fast.packet.user import SecurityHeader, parse_provider_info
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.srmp.compound import Compound, read_http, read_text
from msmq_fast.srmp.incoming import to_packet
from msmq_fast.srmp.model import Envelope
from msmq_fast.srmp.multipart import build
from msmq_fast.srmp.values import Nonconforming
from msmq_fast.srmp.writing import write_envelope
from tests.srmp.envelopes import envelopes
from tests.support.srmp.station import Station
from tests.support.srmp.station import envelope as station_envelope
from tests.support.srmp.texts import (
    ACTION,
    GUID,
    ID,
    OTHER,
    SENT,
    START,
    STREAM_ID,
    TO,
    URL,
    envelope,
    examples,
    full,
    msmq,
    path,
    properties,
    services,
    stream,
)
from tests.support.worlds.cores import Core

HEAD = b"POST /msmq/private$/q HTTP/1.1\r\nHost: machine2\r\n\r\n"
NOW = SENT + 5
DAY = 86_400


def packet_of(xml: bytes, content: bytes | None = None, extension: bytes | None = None) -> bytes:
    parts = [(b"text/xml", b"", xml)]
    for name, part in ((b"body@x", content), (b"extension@x", extension)):
        if part is not None:
            parts.append((b"application/octet-stream", name, part))
    wire = build(b"b", parts)
    return to_packet(read_http("multipart/related; boundary=b", wire), HEAD + wire, NOW)


def message_of(*headers: str) -> Message:
    return Message.from_packet(packet_of(envelope(*headers)))


def with_path(content: str) -> Message:
    return message_of(path(content), properties(), msmq())


def with_dates(expires: str, ttrq: str | None, sent: str | None = "20070719T031140") -> Message:
    dates = f"<expiresAt>{expires}</expiresAt>" + (f"<sentAt>{sent}</sentAt>" if sent else "")
    return message_of(path(), properties(dates), *([msmq(TTrq=ttrq)] if ttrq else []))


# ---- as it came


@pytest.mark.rule("SR-135")
@pytest.mark.parametrize("name", [each for each in examples() if not each.endswith("-response")])
def test_the_message_is_kept_as_it_came(name: str) -> None:
    wire = base64.b64decode(examples()[name]["wire_b64"])
    found = read_text(wire)
    packet = to_packet(found, wire, NOW)
    kept, size = UserMessagePacket.decode(packet)
    assert size == len(packet)
    assert kept.compound is not None
    assert kept.envelope is not None
    assert kept.compound.data == wire
    assert kept.envelope.envelope.encode() == found.envelope_xml
    assert kept.properties.body == b""  # it is kept once
    assert kept.body == bytes(parse(packet).body) == Message.from_packet(packet).body == (found.body or b"")


@pytest.mark.rule("SR-135")
def test_what_is_kept_can_be_read_in_bulk() -> None:
    xml = envelope(path(), properties(), msmq(TTrq="20380119T031407"))
    core = Core()
    core.put(packet_of(xml, b"content", b"more"))
    (row,) = core.rows()
    assert row["soap_envelope"].encode() == xml
    assert row["compound_body"].startswith(HEAD + b"--b\r\n")
    assert (row["body"], row["body_size"], row["extension"]) == (b"content", 7, b"more")


def test_only_the_envelope_is_kept_in_another_encoding() -> None:
    xml = path(f"<action>MSMQ:é \U0001f600</action>{TO}{ID}")
    kept, _ = UserMessagePacket.decode(packet_of(b"\xef\xbb\xbf" + envelope(xml, properties(), msmq())))
    assert kept.envelope is not None
    assert kept.envelope.envelope.startswith("<se:Envelope")
    assert "é \U0001f600" in kept.envelope.envelope
    assert kept.properties.label == "é \U0001f600"


@pytest.mark.rule("SR-038")
def test_body_and_extension() -> None:
    for content, extension in ((b"content", b"more"), (b"", b""), (None, b"more"), (b"content", None)):
        message = Message.from_packet(packet_of(full(), content, extension))
        assert (message.body, message.extension) == (content or b"", extension or b"")


@pytest.mark.rule("SR-224")
def test_how_large_a_message_may_be() -> None:
    """What is kept of a message is a packet of 4 MiB at most."""
    station = Station()
    station.make("in")
    text = station_envelope(Station.base + "in", headers=services("<durable/>"))
    assert station.post(text, bytes(MAX_PACKET)) == 400
    assert station.post(text, b"x" * 4_000_000) == 200
    (body,) = station.taken()
    assert (len(body), set(body)) == (4_000_000, {ord("x")})


def test_another_security_header_leaves_the_body_where_it_is() -> None:
    packet = packet_of(full(), b"content" * 9, b"more")
    changed = protected(parse(packet), SecurityHeader(certificate=b"der"))
    message = Message.from_packet(changed)
    assert (message.body, message.extension) == (b"content" * 9, b"more")
    assert message.security is not None
    assert message.security.certificate == b"der"
    before, after = UserMessagePacket.decode(packet)[0], UserMessagePacket.decode(changed)[0]
    assert (after.compound, after.envelope) == (before.compound, before.envelope)


# ---- where it goes, who sent it, where answers go


@pytest.mark.rule("SR-136")
@pytest.mark.parametrize(
    "to", ["http://machine2/msmq/private$/q", "https://h:8443/msmq/q", "http://h/msmq/q?a=b"]
)
def test_destinations(to: str) -> None:
    assert str(with_path(f"{ACTION}<to>{to}</to>{ID}").destination) == f"DIRECT={to}"


@pytest.mark.rule("SR-136")
def test_a_multicast_address_stays_in_the_envelope() -> None:
    xml = envelope(path(f"{ACTION}<to>MSMQ:MULTICAST=234.1.1.1:8001</to>{ID}"), properties())
    found = read_http("text/xml", xml)
    assert found.envelope.destination_name == "MULTICAST=234.1.1.1:8001"
    assert Message.from_packet(to_packet(found, HEAD + xml, NOW)).destination is None


@pytest.mark.rule("SR-137", "SR-050", "SR-051", "SR-092")
def test_identifiers() -> None:
    message = with_path(f"{ACTION}{TO}<id>uuid:20503@{GUID.upper()}</id>")
    assert (message.source_machine, message.message_id) == (UUID(GUID), 20503)
    message = with_path(f"{ACTION}{TO}<id>uuid:7@{OTHER}</id>")
    assert (message.source_machine, message.message_id) == (UUID(GUID), 7)
    message = message_of()
    assert (message.source_machine, message.message_id) == (UUID(int=0), 1)


@pytest.mark.rule("SR-138", "SR-053")
@pytest.mark.parametrize(
    ("via", "name"),
    [
        (URL, f"DIRECT={URL}"),
        ("https://h:1/other/path", "DIRECT=https://h:1/other/path"),
        (r"MSMQ:DIRECT=OS:host\private$\q", r"DIRECT=OS:host\private$\q"),
        (f"MSMQ:PRIVATE={OTHER}\\0000000a", f"PRIVATE={OTHER}\\0000000a"),
        (f"MSMQ:PRIVATE={GUID}\\0000000a", f"PRIVATE={GUID}\\0000000a"),  # of the sender, as the id says
        (f"MSMQ:PUBLIC={OTHER}", f"PUBLIC={OTHER}"),
        ("", None),
        ("MSMQ:MULTICAST=234.1.1.1:8001", None),  # a name, but no field of a packet takes it
    ],
)
def test_response_queues(via: str, name: str | None) -> None:
    message = with_path(f"{ACTION}{TO}{ID}<rev><via>{via}</via></rev>")
    assert (None if message.response_queue is None else str(message.response_queue)) == name


@pytest.mark.rule("SR-138")
def test_a_via_that_is_no_format_name() -> None:
    for via in ("MSMQ:", "MSMQ:somewhere", "MSMQ:DIRECT=OS:host"):
        with pytest.raises(Nonconforming, match="format name"):
            with_path(f"{ACTION}{TO}{ID}<rev><via>{via}</via></rev>")


def test_a_url_that_no_packet_can_carry() -> None:
    with pytest.raises(Nonconforming):
        with_path(f"{ACTION}<to>http://h/{'x' * 40_000}</to>{ID}")


@pytest.mark.rule("SR-140", "SR-060", "SR-064", "SR-066")
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("delivery", [False, True])
@pytest.mark.parametrize(
    "commitment", [None, "", "<positiveOnly/>", "<negativeOnly/>", "<negativeOnly/><positiveOnly/>"]
)
def test_services(durable: bool, delivery: bool, commitment: str | None) -> None:
    text = "<durable/>" * durable
    text += f"<deliveryReceiptRequest><sendTo>{URL}</sendTo></deliveryReceiptRequest>" * delivery
    if commitment is not None:
        text += f"<commitmentReceiptRequest><sendTo>{URL}2</sendTo>{commitment}</commitmentReceiptRequest>"
    message = Message.from_packet(packet_of(full(services(text))))
    assert message.delivery is (Delivery.RECOVERABLE if durable else Delivery.EXPRESS)
    wanted = Acknowledge.POSITIVE_ARRIVAL if delivery else Acknowledge.NONE
    wanted |= Acknowledge.POSITIVE_RECEIVE * ("<positiveOnly/>" in (commitment or ""))
    wanted |= Acknowledge.NEGATIVE_RECEIVE * ("<negativeOnly/>" in (commitment or ""))
    assert message.acknowledge == wanted
    admin = f"DIRECT={URL}" if delivery else f"DIRECT={URL}2" if commitment is not None else None
    assert (None if message.admin_queue is None else str(message.admin_queue)) == admin


# ---- when


@pytest.mark.rule("SR-139")
def test_the_time_to_reach_the_queue_of_the_examples() -> None:
    for name, seconds in (("simple-with-msmq", 345_600), ("simple-no-msmq", DAY)):
        wire = base64.b64decode(examples()[name]["wire_b64"])
        message = Message.from_packet(to_packet(read_text(wire), wire, NOW))
        assert message.time_to_reach_queue == seconds
        assert message.sent_time != NOW


@pytest.mark.rule("SR-139", "SR-152")
@pytest.mark.parametrize(
    ("expires", "ttrq", "reach", "receive"),
    [
        ("20070720T031140", None, DAY, INFINITE),
        ("20380119T031407", "20070720T031140", DAY, INFINITE),
        ("20070721T031140", "20070720T031140", DAY, 2 * DAY),
        ("20070720T031140", "20070721T031140", 2 * DAY, DAY),
        ("20070718T031140", "20070718T031140", 0, 0),
        ("99990101T000000", "99990101T000000", INFINITE, INFINITE),
    ],
)
def test_time_limits(expires: str, ttrq: str | None, reach: int, receive: int) -> None:
    """A-07: with Msmq, expiresAt is the time to be received, as Windows has it."""
    message = with_dates(expires, ttrq)
    assert (message.time_to_reach_queue, message.time_to_be_received) == (reach, receive)
    assert message.sent_time == SENT


def test_without_the_time_of_sending_that_of_arrival_stands_in() -> None:
    """A-09."""
    message = with_dates("20070720T031140", "20070720T031140", None)
    assert (message.sent_time, message.time_to_reach_queue) == (NOW, DAY - 5)
    assert with_dates("20070720T031140", None, "16010101T000000").sent_time == 0


# ---- streams


@pytest.mark.rule("SR-141", "SR-071", "SR-073")
def test_the_place_in_a_stream() -> None:
    for content, number, previous in (
        (f"{STREAM_ID}<current>1</current>{START}", 1, 0),
        (f"{STREAM_ID}<current>9</current>", 9, 8),
        (f"{STREAM_ID}<current>9</current><previous>4</previous>", 9, 4),
    ):
        message = Message.from_packet(packet_of(envelope(path(), properties(), stream(content), msmq())))
        place = message.transaction
        assert place is not None
        assert place.sequence_id == 4839986701558349830
        assert (place.sequence_timestamp, place.sequence_ordinal) == (0x432B1643, 6)
        assert (place.sequence_number, place.previous_number, place.final_ack) == (number, previous, False)
        assert (message.delivery, message.priority) == (Delivery.RECOVERABLE, 0)


@pytest.mark.rule("SR-142", "SR-090")
def test_the_place_in_a_transaction() -> None:
    eod = f"<DeadLetter/><Eod><First/><ConnectorId>{OTHER}</ConnectorId></Eod>"
    place = message_of(path(), properties(), stream(), msmq(eod)).transaction
    assert place is not None
    assert (place.first, place.last, place.connector_manager) == (True, False, UUID(OTHER))
    assert place.final_ack  # SR-123: its sender asked for a dead letter


# ---- Msmq


@pytest.mark.rule("SR-142")
@pytest.mark.parametrize(
    ("element", "attribute", "value", "default"),
    [
        ("<Journal/>", "journal", Journal.JOURNAL, Journal.NONE),
        ("<DeadLetter/>", "journal", Journal.DEADLETTER, Journal.NONE),
        pytest.param("<Correlation>AQAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation>", "correlation_id",
                     b"\1" + bytes(15) + b"\1\0\0\0", bytes(20), marks=pytest.mark.rule("SR-084")),
        ("<Trace/>", "trace", True, False),
        pytest.param(f"<ConnectorType>{OTHER}</ConnectorType>", "connector_type", UUID(OTHER), None,
                     marks=pytest.mark.rule("SR-086")),
        pytest.param("<App>36</App>", "app_specific", 36, 0, marks=pytest.mark.rule("SR-087")),
        pytest.param("<HashAlgorithm>32780</HashAlgorithm>", "hash_algorithm", 0x800C, 0x8004,
                     marks=pytest.mark.rule("SR-089")),
    ],
)  # fmt: skip
def test_elements_that_may_be_missing(element: str, attribute: str, value: object, default: object) -> None:
    assert getattr(message_of(path(), properties(), msmq(element)), attribute) == value
    assert getattr(message_of(path(), properties(), msmq()), attribute) == default
    assert getattr(message_of(), attribute) == default


@pytest.mark.rule("SR-142", "SR-080", "SR-081", "SR-082", "SR-088")
def test_elements_that_are_always_there() -> None:
    message = message_of(path(), properties(), msmq(Class="33024", Priority="7", BodyType="8"))
    assert (message.message_class, message.priority, message.body_type) == (0x8100, 7, 8)
    message = message_of()
    assert (message.message_class, message.priority, message.body_type) == (0, 3, 0)


@pytest.mark.rule("SR-142", "SR-091")
def test_a_provider() -> None:
    message = message_of(path(), properties(), msmq("<Provider><Type>1</Type><Name>x y</Name></Provider>"))
    assert message.security is not None
    assert parse_provider_info(message.security.provider_info) == (1, "x y")
    assert message_of().security is None


@pytest.mark.rule("SR-142", "SR-093")
def test_lists_of_queues() -> None:
    message = message_of(
        path(),
        properties(),
        msmq(
            f"<DestinationMqf>http://a/msmq/q\nhttps://b/msmq/q\t</DestinationMqf>"
            f"<AdminMqf>DIRECT=OS:c\\q nonsense MULTICAST=234.1.1.1:1</AdminMqf>"
            f"<ResponseMqf> PUBLIC={OTHER} MSMQ:PRIVATE={OTHER}\\00000001 </ResponseMqf>"
        ),
    )
    assert [str(each) for each in message.destinations] == [
        "DIRECT=http://a/msmq/q",
        "DIRECT=https://b/msmq/q",
    ]
    assert [str(each) for each in message.admin_queues] == ["DIRECT=OS:c\\q"]  # what is one, and fits
    assert [str(each) for each in message.response_queues] == [
        f"PUBLIC={OTHER}",
        f"PRIVATE={OTHER}\\00000001",
    ]


@pytest.mark.rule("SR-045")
def test_a_label_needs_its_prefix() -> None:
    assert with_path(f"<action>MSMQ:x</action>{TO}{ID}").label == "x"
    assert with_path(f"<action>Generic label</action>{TO}{ID}").label == ""


@given(envelopes(), st.binary(max_size=50))
@settings(max_examples=100, deadline=None)
def test_every_envelope_makes_a_sound_packet(envelope: Envelope, content: bytes) -> None:
    xml = write_envelope(envelope)
    raw = HEAD + xml + content
    found = Compound(envelope, xml, content, b"ext", {}, len(xml), len(xml) + len(content))
    packet = to_packet(found, raw, NOW)
    message = Message.from_packet(packet)
    assert UserMessagePacket.decode(packet)[0].encode() == packet
    assert (message.body, message.extension, message.label) == (content, b"ext", envelope.label)
    assert (message.source_machine, message.message_id) == envelope.identifier
    assert message.transactional is (envelope.stream is not None)


SEEDS = [
    full(services("<durable/>"), stream()),
    envelope(
        path(f"{ACTION}{TO}{ID}<rev><via>{URL}</via></rev>"), properties(), msmq("<AdminMqf>a</AdminMqf>")
    ),
    envelope(path(), properties(), msmq("<Provider><Type>1</Type><Name>x</Name></Provider><App>1</App>")),
]
VALUES = (
    *(b"", b" ", b"x", b"\0", b"\xff", b"\xed\xa0\x80", b"&#0;", b"&#x1F600;", b"]]>"),
    *(b"7", b"-1", b"4294967296", b"00010101T000000", b"99991231T235959", GUID.encode()),
    *(b"http://h/q", b"HTTP://", b"DIRECT=", b"MSMQ:", b"MSMQ:MULTICAST=1.2.3.4:5"),
    *(b"MSMQ:PUBLIC=", f"MSMQ:PRIVATE={GUID}\\1".encode(), b"MSMQ:" + "é".encode() * 200),
)


@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(VALUES), st.booleans()), min_size=1, max_size=3),
)
@settings(max_examples=150, deadline=None)
def test_other_values_make_a_sound_packet_or_a_refusal(
    xml: bytes, edits: list[tuple[int, bytes, bool]]
) -> None:
    for number, value, behind in edits:
        texts = [found.span(1) for found in re.finditer(rb">([^<]*)<", xml)]
        start, end = texts[number % len(texts)]
        xml = xml[: end if behind else start] + value + xml[end:]
    try:
        packet = packet_of(xml, b"content")
    except Nonconforming as problem:
        refusal = str(problem)
    else:
        refusal = ""
        assert Message.from_packet(packet).body == b"content"
    assert "\n" not in refusal
