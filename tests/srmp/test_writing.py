"""Envelopes that leave: byte for byte what receivers are used to."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from lxml import etree

from msmq_fast.srmp.model import (
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Eod,
    MsmqPart,
    Provider,
    SignaturePart,
    StreamPart,
    StreamReceipt,
)
from msmq_fast.srmp.reading import read_envelope
from msmq_fast.srmp.values import Nonconforming
from msmq_fast.srmp.writing import write_envelope
from tests.srmp.envelopes import envelopes
from tests.support.srmp.texts import DS, GUID, OTHER, SENT, URL, examples

SENDER = UUID(OTHER)
LEAST = Envelope("MSMQ:", "http://h/msmq/q", f"uuid:1@{GUID}", 0x7FFFFFFF, SENT)
EVERYTHING = replace(
    LEAST,
    action='MSMQ:a<b&c "é"',
    via=URL,
    services=True,
    durable=True,
    delivery_to=URL,
    commitment_to=URL + "2",
    positive_only=True,
    negative_only=True,
    stream=StreamPart(SENDER, 4839986701558349830, 1, 7, URL, True),
    delivery_receipt=DeliveryReceipt(SENT, f"uuid:2@{OTHER}"),
    commitment_receipt=CommitmentReceipt(SENT, False, f"uuid:2@{OTHER}"),
    stream_receipt=StreamReceipt(SENDER, 5, 3),
    msmq=MsmqPart(
        source_qm=UUID(GUID),
        ttrq=SENT,
        message_class=0xC001,
        priority=5,
        journal=True,
        deadletter=True,
        correlation=bytes(16) + b"\1\0\0\0",
        trace=True,
        connector_type=SENDER,
        app=36,
        body_type=8,
        hash_algorithm=0x8004,
        eod=Eod(True, True, SENDER),
        provider=Provider(1, "Name <x>"),
        destination_mqf=("http://a/q", "http://b/q"),
        admin_mqf=("http://c/q",),
        response_mqf=("http://d/q?e&f",),
    ),
    signature=SignaturePart(
        f"{DS}dsa", (), b"value", f'<SignedInfo><SignatureMethod Algorithm="{DS}dsa"/></SignedInfo>'.encode()
    ),
)
ALL_OF_IT = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
    '<action>MSMQ:a&lt;b&amp;c "é"</action><to>http://h/msmq/q</to>'
    f"<id>uuid:1@{GUID}</id><rev><via>{URL}</via></rev></path>"
    '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
    "<sentAt>20070719T031140</sentAt></properties>"
    '<services se:mustUnderstand="1"><durable/>'
    f"<deliveryReceiptRequest><sendTo>{URL}</sendTo></deliveryReceiptRequest>"
    f"<commitmentReceiptRequest><sendTo>{URL}2</sendTo><positiveOnly/><negativeOnly/>"
    "</commitmentReceiptRequest></services>"
    rf'<Stream se:mustUnderstand="1"><streamId>uid:{OTHER}\4839986701558349830</streamId>'
    f"<current>1</current><previous>7</previous><start><sendReceiptsTo>{URL}</sendReceiptsTo></start>"
    "</Stream>"
    rf"<streamReceipt><streamId>uid:{OTHER}\5</streamId><lastOrdinal>3</lastOrdinal></streamReceipt>"
    "<deliveryReceipt><receivedAt>20070719T031140</receivedAt>"
    f"<id>uuid:2@{OTHER}</id></deliveryReceipt>"
    "<commitmentReceipt><decidedAt>20070719T031140</decidedAt><decision>negative</decision>"
    f"<id>uuid:2@{OTHER}</id></commitmentReceipt>"
    '<Msmq xmlns="msmq.namespace.xml"><Class>49153</Class><Priority>5</Priority><Journal/><DeadLetter/>'
    "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation><Trace/>"
    f"<ConnectorType>{OTHER}</ConnectorType><App>36</App><BodyType>8</BodyType>"
    "<HashAlgorithm>32772</HashAlgorithm>"
    f"<Eod><First/><Last/><ConnectorId>{OTHER}</ConnectorId></Eod>"
    "<Provider><Type>1</Type><Name>Name &lt;x&gt;</Name></Provider>"
    f"<SourceQmGuid>{GUID}</SourceQmGuid>"
    "<DestinationMqf>http://a/q http://b/q </DestinationMqf><AdminMqf>http://c/q </AdminMqf>"
    "<ResponseMqf>http://d/q?e&amp;f </ResponseMqf><TTrq>20070719T031140</TTrq></Msmq>"
    f'<Signature xmlns="{DS}"><SignedInfo><SignatureMethod Algorithm="{DS}dsa"/></SignedInfo>'
    "<SignatureValue>dmFsdWU=</SignatureValue></Signature>"
    "</se:Header><se:Body></se:Body></se:Envelope>"
)


@pytest.mark.rule("SR-202", "SR-041", "SR-034", "SR-001")
def test_everything_in_its_order() -> None:
    assert write_envelope(EVERYTHING).decode() == ALL_OF_IT


@pytest.mark.rule("SR-202")
def test_what_is_not_there_is_not_written() -> None:
    assert write_envelope(LEAST).decode() == (
        ALL_OF_IT[: ALL_OF_IT.index("<action>")]
        + f"<action>MSMQ:</action><to>http://h/msmq/q</to><id>uuid:1@{GUID}</id></path>"
        + ALL_OF_IT[ALL_OF_IT.index("<properties") : ALL_OF_IT.index("<services")]
        + "</se:Header><se:Body></se:Body></se:Envelope>"
    )


def test_the_stream_as_the_text_of_the_specification_spells_it() -> None:
    """A-05."""
    text = write_envelope(EVERYTHING, stream_name="stream").decode()
    assert text == ALL_OF_IT.replace("<Stream ", "<stream ").replace("</Stream>", "</stream>")


def test_certificates_go_along_where_they_are_given() -> None:
    assert EVERYTHING.signature is not None
    with_key = replace(EVERYTHING.signature, certificates=(b"der",))
    found = read_envelope(write_envelope(replace(EVERYTHING, signature=with_key))).signature
    assert found is not None
    assert found.certificates == (b"der",)


@pytest.mark.rule("SR-041", "SR-202")
@given(envelopes())
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_again(envelope: Envelope) -> None:
    assert read_envelope(write_envelope(envelope)) == envelope


@given(envelopes())
@settings(max_examples=50, deadline=None)
def test_no_white_space_between_elements(envelope: Envelope) -> None:
    for element in etree.fromstring(write_envelope(envelope)).iter():
        assert element.tail is None
        assert element.text is None or not len(element)


@pytest.mark.parametrize("bad", ["\0", "\x1f", "\ud800", "\ufffe", "\x0b"])
def test_what_xml_cannot_carry(bad: str) -> None:
    with pytest.raises(Nonconforming, match="XML"):
        write_envelope(replace(LEAST, action=f"MSMQ:{bad}"))


@pytest.mark.rule("SR-202")
@pytest.mark.parametrize("name", ["simple-with-msmq", "pgm-multicast-message", "stream-message-2"])
def test_the_envelopes_that_windows_made(name: str) -> None:
    """4.2, 4.5, and 4.4 as far as its elements are defined: not one byte is different."""
    xml = _envelope(name)
    assert write_envelope(read_envelope(xml)) == xml


@pytest.mark.parametrize("name", ["delivery-receipt", "commitment-receipt-positive", "stream-receipt-1"])
def test_the_receipts_that_windows_made(name: str) -> None:
    """Not one byte is different, but for the place of rev (A-81)."""
    xml = _envelope(name)
    swapped = re.sub(rb"(<rev>.*</rev>)(<id>.*?</id>)", rb"\2\1", xml, count=1)
    assert write_envelope(read_envelope(xml)) == swapped != xml


def _envelope(name: str) -> bytes:
    wire = base64.b64decode(examples()[name]["wire_b64"])
    return wire[wire.index(b"<se:Envelope") : wire.index(b"</se:Envelope>") + 14]
