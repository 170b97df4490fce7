"""Messages that leave: the request that is sent for a packet, byte for byte."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.packet.acks import ORDERING_LABEL, FinalAck
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.packet.user import SecurityHeader, TransactionHeader, provider_info
from msmq_fast.protocol.errors import IllegalPropertyValue
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.identity.signing import prepare
from msmq_fast.srmp.compose import Spelling
from msmq_fast.srmp.compound import Compound, read_http, read_text
from msmq_fast.srmp.incoming import to_packet
from msmq_fast.srmp.model import CommitmentReceipt, DeliveryReceipt, SignaturePart, StreamReceipt
from msmq_fast.srmp.outgoing import Request, Requests
from msmq_fast.srmp.urls import parse_url
from msmq_fast.srmp.values import Nonconforming
from tests.support.srmp.texts import DS, GUID, OTHER, SENT, URL, examples
from tests.support.worlds.queue_manager import World

DESTINATION = "http://machine2/msmq/private$/q"
TO = parse_url(DESTINATION)
ORDER_QUEUE = "http://me.example/MSMQ/PRIVATE$/order_queue$"
ADMIN = parse_format_name(f"DIRECT={URL}")
SEQUENCE = 4839986701558349830
DAY = 86_400

PLAIN = Message(
    body=b"content",
    label="hello",
    destination=parse_format_name(f"DIRECT={DESTINATION}"),
    source_machine=UUID(GUID),
    message_id=20503,
    sent_time=SENT,
)


def requests(**settings: object) -> Requests:
    return Requests(lambda to: ORDER_QUEUE if to == DESTINATION else "", **settings)  # type: ignore[arg-type]


def sent(message: Message = PLAIN, place: tuple[int, int, int] = (0, 0, 0), **settings: object) -> Request:
    return requests(**settings)(message.to_packet(), TO, place)


def read(request: Request) -> Compound:
    headers = {name.lower(): value for name, value in request.headers}
    return read_http(headers[b"content-type"].decode(), request.body)


def text_of(request: Request) -> str:
    return read(request).envelope_xml.decode()


def with_(**values: object) -> Message:
    return replace(PLAIN, **values)  # type: ignore[arg-type]


def http(name: str) -> FormatName:
    return parse_format_name(f"DIRECT={name}")


# ---- the request


@pytest.mark.rule("SR-195", "SR-035", "SR-037", "SR-038", "SR-039", "SR-001")
def test_a_request_to_the_last_byte() -> None:
    request = sent(with_(extension=b"more"))
    xml = text_of(request)
    assert request.text.decode() == (
        "POST /msmq/private$/q HTTP/1.1\r\n"
        "Host: machine2\r\n"
        'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 20503"; type=text/xml\r\n'
        f"Content-Length: {len(request.body)}\r\n"
        'SOAPAction: "MSMQMessage"\r\n'
        "Proxy-Accept: NonInteractiveClient\r\n"
        "\r\n"
        "--MSMQ - SOAP boundary, 20503\r\n"
        "Content-Type: text/xml; charset=UTF-8\r\n"
        f"Content-Length: {len(xml)}\r\n"
        "\r\n"
        f"{xml}--MSMQ - SOAP boundary, 20503\r\n"
        "Content-Type: application/octet-stream\r\n"
        "Content-Length: 7\r\n"
        f"Content-Id: body@{GUID}\r\n"
        "\r\n"
        "content--MSMQ - SOAP boundary, 20503\r\n"
        "Content-Type: application/octet-stream\r\n"
        "Content-Length: 4\r\n"
        f"Content-Id: extension@{GUID}\r\n"
        "\r\n"
        "more--MSMQ - SOAP boundary, 20503--\r\n"
    )
    assert f"<id>uuid:20503@{GUID}</id>" in xml
    assert "<se:Body></se:Body>" in xml
    assert request.host == "machine2"


@pytest.mark.rule("SR-039")
def test_a_message_without_body_is_an_envelope() -> None:
    request = sent(with_(body=b""))
    assert dict(request.headers)[b"Content-Type"] == b"text/xml"
    assert request.body.startswith(b"<se:Envelope")
    assert read(sent(with_(body=b"", extension=b"x"))).extension == b"x"


@pytest.mark.rule("SR-202")
@pytest.mark.parametrize("name", ["simple-with-msmq", "pgm-multicast-message"])
def test_the_messages_that_windows_made(name: str) -> None:
    """4.2 and 4.5, but for Correlation and App, which are sent where they are not zero (A-80)."""
    wire = base64.b64decode(examples()[name]["wire_b64"])
    original = read_text(wire)
    msmq, (source, number) = original.envelope.msmq, original.envelope.identifier
    assert msmq is not None
    assert original.body is not None
    message = Message(
        body=original.body,
        label=original.envelope.label,
        body_type=msmq.body_type,
        source_machine=source,
        message_id=number,
        sent_time=original.envelope.sent_at or 0,
        time_to_reach_queue=4 * DAY,
    )
    if original.envelope.multicast is not None:
        ours = requests().apdu(message.to_packet(), original.envelope.multicast)
    else:
        ours = requests()(message.to_packet(), parse_url(original.envelope.to)).text
    printed = wire.replace(b"<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App>", b"")
    masked = (rb"boundary, \d+", rb"Content-Length: \d+", rb"^POST \S+")
    for pattern in masked:
        ours, printed = (re.sub(pattern, b"?", each, flags=re.IGNORECASE) for each in (ours, printed))
    assert ours == printed


@pytest.mark.rule("SR-008")
def test_what_is_multicast_starts_like_a_request() -> None:
    apdu = requests().apdu(PLAIN.to_packet(), "234.1.1.1:8001")
    assert apdu.startswith(
        b"POST 234.1.1.1:8001 HTTP/1.1\r\nHost: 234.1.1.1:8001\r\nContent-Type: multipart/"
    )
    found = read_text(apdu)
    assert (found.envelope.multicast, found.body) == ("234.1.1.1:8001", b"content")


def test_targets_and_hosts() -> None:
    for url, target, host in (
        ("http://h:8080/msmq/q", b"/msmq/q", "h:8080"),
        ("HTTPS://H:443/msmq\\private$\\q?a=b", b"/msmq/private$/q?a=b", "h"),
        ("http://[::1]:99/msmq/q", b"/msmq/q", "[::1]:99"),
    ):
        request = requests()(PLAIN.to_packet(), parse_url(url))
        assert (request.target, request.host) == (target, host)
        assert read(request).envelope.to == re.sub("^HTTPS", "https", url)


@given(st.binary(max_size=60))
@settings(max_examples=50, deadline=None)
def test_the_boundary_is_in_no_part(noise: bytes) -> None:
    body = noise + b"MSMQ - SOAP boundary, 20503" + noise
    request = sent(with_(body=body, extension=b"MSMQ - SOAP boundary, 20504"))
    assert b'boundary="MSMQ - SOAP boundary, 20505"' in request.text
    assert read(request).body == body


def test_the_same_packet_makes_the_same_request() -> None:
    packet, make = with_(extension=b"x").to_packet(), requests()
    assert make(packet, TO) == make(packet, TO)


def test_a_message_that_passes_through_is_not_touched() -> None:
    """A-53."""
    for name in ("both-receipts-requested", "stream-message-1", "delivery-receipt"):
        wire = base64.b64decode(examples()[name]["wire_b64"])
        head, _, body = wire.partition(b"\r\n\r\n")
        packet = to_packet(read_text(wire), wire, SENT)
        request = requests()(packet, parse_url("https://inner:8443/msmq/other"))
        assert request.body == body
        assert (request.target, request.host) == (b"/msmq/other", "inner:8443")
        content_type = dict(request.headers)[b"Content-Type"]
        assert b"Content-Type: " + content_type in head
    bare = b"x\r\n\r\n" + body
    request = requests()(to_packet(read_text(bare), bare, SENT), TO)
    assert dict(request.headers)[b"Content-Type"] == b"text/xml"


def test_what_cannot_be_said_is_not_sent() -> None:
    with pytest.raises(Nonconforming, match="XML"):
        sent(with_(label="a\x01b"))
    with pytest.raises(Nonconforming, match="36"):
        sent(with_(message_class=255, body=b"short"))


# ---- path and properties


@pytest.mark.rule("SR-044", "SR-041")
def test_labels() -> None:
    for label in ("", "hello", 'a<b&c "é" \U0001f600', "line\r\nline\rend ", "MSMQ:", " blanks "):
        assert read(sent(with_(label=label))).envelope.label == label
    assert "<action>MSMQ:</action>" in text_of(sent(with_(label="")))


@pytest.mark.rule("SR-053", "SR-054")
def test_response_queues() -> None:
    for name, via in (
        (f"DIRECT={URL}", URL),
        ("DIRECT=HTTPS://h/msmq/q", "https://h/msmq/q"),
        (r"DIRECT=OS:h\private$\q", r"MSMQ:DIRECT=OS:h\private$\q"),
        (f"PRIVATE={OTHER}\\0000000a", f"MSMQ:PRIVATE={OTHER}\\0000000a"),
    ):
        assert read(sent(with_(response_queue=parse_format_name(name)))).envelope.via == via
    text = text_of(sent())
    assert not re.search("<(rev|fwd|from|relatesTo|fault|inReplyTo)", text)


@pytest.mark.rule("SR-203", "SR-056", "SR-094")
@pytest.mark.parametrize(
    ("reach", "receive", "ttrq", "expires", "literal"),
    [
        (4 * DAY, INFINITE, "20070723T031140", "20380119T031407", "20070723T031140"),
        (4 * DAY, 8 * DAY, "20070723T031140", "20070727T031140", "20070723T031140"),
        (INFINITE, DAY, "20380119T031407", "20070720T031140", "20380119T031407"),
        (0xFFFFFFFE, 0xFFFFFFFE, "20380119T031407", "20380119T031407", "20380119T031407"),
        (0, 0, "20070719T031140", "20070719T031140", "20070719T031140"),
    ],
)
def test_time_limits(reach: int, receive: int, ttrq: str, expires: str, literal: str) -> None:
    """A-07: expiresAt as Windows sends it, or, if so told, as the specification says."""
    message = with_(time_to_reach_queue=reach, time_to_be_received=receive)
    text = text_of(sent(message))
    assert f"<expiresAt>{expires}</expiresAt><sentAt>20070719T031140</sentAt>" in text
    assert f"<TTrq>{ttrq}</TTrq>" in text
    text = text_of(sent(message, spelling=Spelling(literal_expiry=True)))
    assert f"<expiresAt>{literal}</expiresAt>" in text
    assert f"<TTrq>{literal}</TTrq>" in text


# ---- services


@pytest.mark.rule("SR-204", "SR-060", "SR-064", "SR-066")
@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize("arrival", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("negative", [False, True])
def test_services(recoverable: bool, arrival: bool, positive: bool, negative: bool) -> None:
    wishes = Acknowledge.POSITIVE_ARRIVAL * arrival | Acknowledge.POSITIVE_RECEIVE * positive
    wishes |= Acknowledge.NEGATIVE_RECEIVE * negative | Acknowledge.NEGATIVE_ARRIVAL
    delivery = Delivery.RECOVERABLE if recoverable else Delivery.EXPRESS
    message = with_(delivery=delivery, acknowledge=Acknowledge(wishes), admin_queue=ADMIN)
    text = text_of(sent(message))
    expected = "<durable/>" * recoverable
    expected += f"<deliveryReceiptRequest><sendTo>{URL}</sendTo></deliveryReceiptRequest>" * arrival
    if positive or negative:
        expected += f"<commitmentReceiptRequest><sendTo>{URL}</sendTo>"
        expected += "<positiveOnly/>" * positive + "<negativeOnly/>" * negative
        expected += "</commitmentReceiptRequest>"
    if expected:
        assert f'<services se:mustUnderstand="1">{expected}</services>' in text
    else:
        assert "<services" not in text


@pytest.mark.rule("SR-064", "SR-066")
def test_receipts_can_go_to_urls_only() -> None:
    wishes = Acknowledge.POSITIVE_ARRIVAL | Acknowledge.POSITIVE_RECEIVE
    for admin in (None, parse_format_name(r"DIRECT=OS:h\private$\q")):
        assert "services" not in text_of(sent(with_(acknowledge=wishes, admin_queue=admin)))


# ---- streams


@pytest.mark.rule("SR-205", "SR-061", "SR-073", "SR-074", "SR-075", "SR-076", "SR-206", "SR-071")
def test_streams() -> None:
    place = TransactionHeader(1, 2, 3)
    message = with_(transaction=place, delivery=Delivery.RECOVERABLE)
    start = f"<start><sendReceiptsTo>{ORDER_QUEUE}</sendReceiptsTo></start>"
    for current, previous, expected in (
        (1, 0, f"<current>1</current>{start}"),
        (2, 1, "<current>2</current><previous>1</previous>"),
        (9, 0, "<current>9</current>"),
    ):
        text = text_of(sent(message, (SEQUENCE, current, previous)))
        assert (
            '<services se:mustUnderstand="1"><durable/></services><Stream se:mustUnderstand="1">'
            rf"<streamId>uid:{GUID}\{SEQUENCE}</streamId>{expected}</Stream><Msmq"
        ) in text
    assert "tream" not in text_of(sent())
    text = text_of(sent(message, (SEQUENCE, 2, 1), spelling=Spelling(stream="stream")))
    assert "<stream se:" in text
    assert "</stream>" in text


@pytest.mark.rule("SR-090")
def test_the_place_in_a_transaction() -> None:
    for first, last, expected in (
        (True, False, "<Eod><First/></Eod>"),
        (False, True, "<Eod><Last/></Eod>"),
        (True, True, "<Eod><First/><Last/></Eod>"),
    ):
        place = TransactionHeader(1, 2, 3, first=first, last=last)
        assert expected in text_of(sent(with_(transaction=place), (SEQUENCE, 1, 0)))
    place = TransactionHeader(1, 2, 3, connector_manager=UUID(OTHER))
    expected = f"<Eod><ConnectorId>{OTHER}</ConnectorId></Eod>"
    assert expected in text_of(sent(with_(transaction=place), (SEQUENCE, 1, 0)))
    assert "Eod" not in text_of(sent(with_(transaction=TransactionHeader(1, 2, 3)), (SEQUENCE, 1, 0)))


# ---- Msmq


@pytest.mark.rule("SR-080", "SR-081", "SR-082", "SR-088", "SR-092", "SR-202", "SR-030")
def test_msmq_is_always_sent() -> None:
    assert (
        '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority><BodyType>0</BodyType>'
        f"<HashAlgorithm>32772</HashAlgorithm><SourceQmGuid>{GUID}</SourceQmGuid>"
        "<TTrq>20070723T031140</TTrq></Msmq></se:Header>"
    ) in text_of(sent())
    text = text_of(sent(with_(message_class=0x100, priority=7, body_type=8, hash_algorithm=0)))
    assert "<Class>256</Class><Priority>7</Priority><BodyType>8</BodyType><SourceQmGuid>" in text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"journal": Journal.JOURNAL}, "<Journal/>", marks=pytest.mark.rule("SR-083")),
        pytest.param({"journal": Journal.DEADLETTER}, "<DeadLetter/>", marks=pytest.mark.rule("SR-083")),
        pytest.param(
            {"correlation_id": bytes(16) + b"\1\0\0\0"},
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation>",
            marks=pytest.mark.rule("SR-084"),
        ),
        pytest.param({"trace": True}, "<Trace/>", marks=pytest.mark.rule("SR-085")),
        pytest.param(
            {"connector_type": UUID(OTHER)},
            f"<ConnectorType>{OTHER}</ConnectorType>",
            marks=pytest.mark.rule("SR-086"),
        ),
        pytest.param({"app_specific": 36}, "<App>36</App>", marks=pytest.mark.rule("SR-087")),
        pytest.param(
            {"hash_algorithm": 0x800C},
            "<HashAlgorithm>32780</HashAlgorithm>",
            marks=pytest.mark.rule("SR-089"),
        ),
        pytest.param(
            {"security": SecurityHeader(provider_info=provider_info(1, "A <b>"))},
            "<Provider><Type>1</Type><Name>A &lt;b&gt;</Name></Provider>",
            marks=pytest.mark.rule("SR-091"),
        ),
        pytest.param(
            {"destinations": (http("http://a/msmq/q"), parse_format_name(r"DIRECT=OS:b\q"))},
            r"<DestinationMqf>http://a/msmq/q DIRECT=OS:b\q </DestinationMqf>",
            marks=pytest.mark.rule("SR-093"),
        ),
        pytest.param(
            {"admin_queues": (http("HTTP://a/msmq/q"),)},
            "<AdminMqf>http://a/msmq/q </AdminMqf>",
            marks=pytest.mark.rule("SR-093"),
        ),
        pytest.param(
            {"response_queues": (parse_format_name(f"PUBLIC={OTHER}"),)},
            f"<ResponseMqf>PUBLIC={OTHER} </ResponseMqf>",
            marks=pytest.mark.rule("SR-093"),
        ),
    ],
)
def test_what_msmq_may_have(values: dict[str, object], expected: str) -> None:
    assert expected in text_of(sent(with_(**values)))
    assert expected not in text_of(sent())


# ---- receipts


def receipt(message_class: int, **values: object) -> Message:
    return with_(
        body=b"",
        message_class=message_class,
        correlation_id=UUID(OTHER).bytes_le + (7).to_bytes(4, "little"),
        response_queue=http("http://machine2/msmq/q"),
        **values,
    )


@pytest.mark.rule("SR-077", "SR-036")
def test_delivery_receipts() -> None:
    found = read(sent(receipt(2, delivery=Delivery.RECOVERABLE)))
    assert found.envelope.delivery_receipt == DeliveryReceipt(SENT, f"uuid:7@{OTHER}")
    assert (found.envelope.commitment_receipt, found.envelope.stream_receipt) == (None, None)
    assert found.envelope.via == "http://machine2/msmq/q"
    assert not found.envelope.services  # no receipts for receipts


@pytest.mark.rule("SR-046")
def test_receipts_have_the_label_of_their_original() -> None:
    for label, action in (("hello", "MSMQ:hello"), ("", "MSMQ:")):
        for message_class in (2, 0x4000):
            assert read(sent(receipt(message_class, label=label))).envelope.action == action


@pytest.mark.rule("SR-078", "SR-036")
@pytest.mark.parametrize("message_class", [0x4000, 0x8001, 0xC000, 0xC001, 0xC002, 0xC004])
def test_commitment_receipts(message_class: int) -> None:
    """Also where the message that is acknowledged came back as the body."""
    wishes = Acknowledge.POSITIVE_ARRIVAL
    message = receipt(message_class, acknowledge=wishes, admin_queue=ADMIN, extension=b"more")
    message.body = b"the original"
    request = sent(message)
    found = read(request)
    assert dict(request.headers)[b"Content-Type"] == b"text/xml"
    assert (found.body, found.extension) == (None, None)
    expected = CommitmentReceipt(SENT, message_class == 0x4000, f"uuid:7@{OTHER}")
    assert found.envelope.commitment_receipt == expected
    assert found.envelope.stream_receipt is None
    assert found.envelope.delivery_to is None


ACK = FinalAck(6, 0x432B1643, 3, 2, UUID(OTHER), 7)


@pytest.mark.rule("SR-079", "SR-047", "SR-036")
def test_stream_receipts() -> None:
    message = receipt(255, label=ORDERING_LABEL)
    message.body = ACK.encode_body()
    found = read(sent(message))
    assert found.envelope.action == "MSMQ:QM Ordering Ack"
    assert found.envelope.stream_receipt == StreamReceipt(UUID(OTHER), SEQUENCE, 3)
    assert (found.envelope.commitment_receipt, found.body) == (None, None)


@pytest.mark.rule("SR-078", "SR-079")
def test_final_stream_receipts() -> None:
    message = receipt(0xC001, label=ORDERING_LABEL)
    message.body = ACK.encode_body()
    text = text_of(sent(message))
    assert (
        rf"<streamReceipt><streamId>uid:{OTHER}\{SEQUENCE}</streamId><lastOrdinal>3</lastOrdinal>"
        "</streamReceipt><commitmentReceipt><decidedAt>20070719T031140</decidedAt>"
        f"<decision>negative</decision><id>uuid:7@{OTHER}</id></commitmentReceipt><Msmq"
    ) in text


@pytest.mark.rule("SR-036")
def test_the_receipts_that_windows_made() -> None:
    """4.3: the same bytes, but for the order of rev and id and for zeros, which are not sent."""
    for name, message_class, seconds in (
        ("delivery-receipt", 2, 3),
        ("commitment-receipt-positive", 0x4000, 0),
    ):
        wire = base64.b64decode(examples()[name]["wire_b64"])
        original = read_text(wire)
        source, number = original.envelope.identifier
        made = Message(
            message_class=message_class,
            correlation_id=bytes(16) + b"\1\0\0\0",
            response_queue=http("http://machine2/msmq/private$/simpleq"),
            hash_algorithm=0,
            source_machine=source,
            message_id=number,
            sent_time=(original.envelope.sent_at or 0) + seconds,
            time_to_reach_queue=4 * DAY - seconds,
        )
        request = requests()(made.to_packet(), parse_url(original.envelope.to))
        printed = original.envelope_xml.replace(b"<App>0</App>", b"")
        printed = printed.replace(b"<HashAlgorithm>0</HashAlgorithm>", b"")
        printed = re.sub(rb"(<rev>.*</rev>)(<id>.*?</id>)", rb"\2\1", printed, count=1)
        printed = printed.replace(b"<sentAt>20070719T032451", b"<sentAt>20070719T032454")
        assert request.body == printed


# ---- signatures


@pytest.mark.rule("SR-095", "SR-202")
def test_signatures_come_last() -> None:
    info = f'<SignedInfo><SignatureMethod Algorithm="{DS}dsa"></SignatureMethod></SignedInfo>'
    made = SignaturePart(f"{DS}dsa", (), b"value", info.encode())
    message = with_(security=SecurityHeader(certificate=b"der"))
    text = text_of(sent(message, sign=lambda packet: made))
    assert f'</Msmq><Signature xmlns="{DS}">{info}<SignatureValue>' in text
    assert "Signature" not in text_of(sent(message))
    assert "Signature" not in text_of(sent(sign=lambda packet: made))


# ---- at the call that sends


@pytest.mark.parametrize("name", [f"DIRECT={DESTINATION}", "MULTICAST=234.1.1.1:8001"])
def test_a_label_that_xml_cannot_carry_is_refused_when_it_is_sent(name: str) -> None:
    """A-89."""
    world = World(http=True, multicast=True)
    handle = world.manager.open(name, Access.SEND)
    for label in ("a\tb\r\né<&>", "bell \x07", "half a pair \ud800", "no character \uffff"):
        message = Message(body=b"a", label=label)
        handle.stamp(message)
        message.destination = None
        if label.startswith("a"):
            prepare(None, handle.queue, message.to_packet(), None, None)
            continue
        with pytest.raises(IllegalPropertyValue, match="label"):
            prepare(None, handle.queue, message.to_packet(), None, None)
