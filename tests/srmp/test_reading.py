"""Envelopes that come: what each element means, and what does not conform."""

from __future__ import annotations

import base64
import re
import time
from uuid import UUID

import pytest
from lxml import etree

from msmq_fast.srmp.model import (
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Eod,
    Provider,
    Reference,
    StreamReceipt,
)
from msmq_fast.srmp.reading import read_envelope
from msmq_fast.srmp.values import Nonconforming
from msmq_fast.srmp.xmlbounds import MAX_ENVELOPE
from tests.support.srmp.texts import (
    ACTION,
    DATES,
    DS,
    GUID,
    ID,
    OTHER,
    RP,
    SE,
    SENT,
    SRMP,
    START,
    STREAM_ID,
    TO,
    UNDERSTAND,
    URL,
    envelope,
    examples,
    fragments,
    full,
    msmq,
    path,
    properties,
    services,
    stream,
)

REV = f"<rev><via>{URL}</via></rev>"
DAY = 86_400


def refused(xml: bytes, why: str = "") -> None:
    with pytest.raises(Nonconforming, match=why or None):
        read_envelope(xml)


def read(*headers: str) -> Envelope:
    return read_envelope(envelope(*headers))


def with_path(content: str) -> Envelope:
    return read(path(content), properties(), msmq())


# ---- SOAP


def test_the_least_envelope() -> None:
    found = read_envelope(envelope())
    assert (found.label, found.to, found.id) == (
        "hello",
        "http://machine2/msmq/private$/q",
        f"uuid:20503@{GUID}",
    )
    assert (found.expires_at, found.sent_at, found.msmq, found.via) == (0x7FFFFFFF, SENT, None, None)
    assert (found.services, found.durable, found.is_receipt) == (False, False, False)


@pytest.mark.rule("SR-033")
@pytest.mark.parametrize(
    "xml",
    [
        envelope(body=""),
        envelope().replace(b"<se:Header>", b"<se:Body></se:Body><se:Header>"),
        envelope().replace(b"se:Envelope", b"se:Letter"),
        envelope().replace(b"se:Header", b"se:Head"),
        envelope().replace(b"se:Body", b"se:Content"),
        envelope(body="<x/><se:Body/>"),
        envelope().replace(SE.encode(), SE[:-1].encode()),
        f'<se:Envelope xmlns:se="{SE}"><se:Body/></se:Envelope>'.encode(),
        b"<Envelope/>",
    ],
)
def test_header_and_body_stand_where_they_must(xml: bytes) -> None:
    refused(xml, "se:Envelope")


@pytest.mark.rule("SR-034")
def test_content_of_the_body_is_not_seen() -> None:
    body = f"<se:Body><path xmlns='{RP}'><to>ftp://x</to></path>text</se:Body>"
    assert read_envelope(envelope(body=body)) == read_envelope(envelope())


@pytest.mark.rule("SR-040")
def test_namespaces_by_whatever_prefix() -> None:
    prefixed = f"""<?xml version="1.0" encoding="utf-8"?>
        <S:Envelope xmlns:S="{SE}" xmlns:r="{RP}" xmlns:s="{SRMP}" xmlns:m="msmq.namespace.xml">
          <S:Header>
            <s:properties S:mustUnderstand="1"><s:sentAt> 20070719T031140 </s:sentAt>
              <s:expiresAt>20380119T031407</s:expiresAt></s:properties>
            <m:Msmq><m:TTrq>20070723T031140</m:TTrq><m:SourceQmGuid>{GUID.upper()}</m:SourceQmGuid>
              <m:BodyType>0</m:BodyType><m:Priority> 3 </m:Priority><m:Class>0</m:Class></m:Msmq>
            <r:path S:mustUnderstand="1"><!-- any order --><r:id> {ID[4:-5]}
              </r:id><r:to>{TO[4:-5]}</r:to><r:action>MSMQ:hello</r:action></r:path>
          </S:Header>
          <S:Body/>
        </S:Envelope>""".encode()
    assert read_envelope(prefixed.strip()) == read_envelope(full())


@pytest.mark.rule("SR-040")
def test_other_namespaces_are_other_elements() -> None:
    xml = full().decode()
    for space in (RP, SRMP):
        refused(xml.replace(space, space[:-1]).encode())  # with the slash at the end
    other = xml.replace("msmq.namespace.xml", "msmq.namespace")
    assert read_envelope(other.encode()).msmq is None


@pytest.mark.rule("SR-041")
def test_text_is_utf_8_and_unescaped() -> None:
    found = with_path('<action>MSMQ:a&lt;b&amp;c "é" &#x1F600;<![CDATA[<d>]]></action>' + TO + ID)
    assert found.label == 'a<b&c "é" \U0001f600<d>'
    refused(full().replace(b"hello", b"h\xe9llo"), "UTF-8")
    refused(full().decode().encode("utf-16"), "UTF-8")


@pytest.mark.rule("SR-042")
@pytest.mark.parametrize(
    "before",
    [
        b"<!DOCTYPE x>",
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd">',
        b'<!DOCTYPE x [<!ENTITY hello SYSTEM "file:///etc/passwd">]>',
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        b'<?xml version="1.0"?>\n<!DOCTYPE x>',
    ],
)
def test_no_document_type(before: bytes) -> None:
    refused(before + full().replace(b"hello", b"&hello;"), "document type")


@pytest.mark.rule("SR-042")
def test_no_processing_instructions_and_no_entities() -> None:
    for xml in (
        b"<?php x?>" + full(),
        full() + b"<?php x?>",
        full().replace(b"<path", b"<?php x?><path"),
        full().replace(b"hello", b"he<?php x?>llo"),
    ):
        refused(xml, "processing instruction")
    refused(full().replace(b"hello", b"&hello;"), "well-formed")
    assert read_envelope(full().replace(b"hello", b"<![CDATA[<?php x?>]]>")).label == "<?php x?>"


@pytest.mark.parametrize(
    "xml",
    {
        "a large one": b"<a>" + b" " * MAX_ENVELOPE + b"</a>",
        "a million attributes": b"<a " + b"".join(b'a%d=""' % at for at in range(1_000_000)) + b"/>",
        "many attributes": b"<a " + b"".join(b' a%d=""' % at for at in range(20_000)) + b"/>",
        "many elements": b"<a>" + b"<b/>" * 20_000 + b"</a>",
        "a deep one": b"<a>" * 4_000 + b"</a>" * 4_000,
        "nothing": b"",
        "no XML": b"POST / HTTP/1.1",
        "a NUL": envelope().replace(b"hello", b"h\0"),
        "half a document": envelope()[:-9],
        "two documents": envelope() + envelope(),
    }.items(),
    ids=lambda item: item[0],
)
def test_what_is_refused_before_anything_is_built(xml: tuple[str, bytes]) -> None:
    begun = time.process_time()
    refused(xml[1])
    assert time.process_time() - begun < 0.25


def test_an_unknown_header_that_must_be_understood() -> None:
    """A-04: no fault, but a refusal."""
    strange = '<x:y xmlns:x="urn:x" {}/>'
    assert read_envelope(full(strange.format(""))) == read_envelope(full())
    assert read_envelope(full(strange.format('se:mustUnderstand="0"'))) == read_envelope(full())
    refused(full(strange.format(UNDERSTAND)), "mustUnderstand")
    refused(full(strange.format(f'se:actor="http://schemas.xmlsoap.org/soap/actor/next" {UNDERSTAND}')))
    assert read_envelope(full(strange.format(f'se:actor="urn:other" {UNDERSTAND}'))) == read_envelope(full())


@pytest.mark.parametrize(
    "header", [path(), properties(), services("<durable/>"), stream(), msmq()], ids=lambda text: text[:8]
)
def test_no_header_twice(header: str) -> None:
    first = "" if header.startswith(("<path", "<prop", "<Msmq")) else header
    refused(full(first, header), "twice")


# ---- path


@pytest.mark.rule("SR-043")
@pytest.mark.parametrize(
    "header",
    [
        "",
        path(attributes=""),
        path(attributes='mustUnderstand="1"'),
        path(attributes='se:mustUnderstand="0"'),
        path().replace(RP, RP[:-1]),
        path().replace(RP, SRMP),
    ],
)
def test_a_path_must_be_there(header: str) -> None:
    refused(envelope(header, properties()))


@pytest.mark.rule("SR-044", "SR-048", "SR-049")
@pytest.mark.parametrize("missing", [ACTION, TO, ID])
def test_what_a_path_must_have(missing: str) -> None:
    refused(envelope(path((ACTION + TO + ID).replace(missing, "")), properties()), "missing")
    refused(envelope(path(ACTION + TO + ID + missing), properties()), "twice")


@pytest.mark.rule("SR-044", "SR-045")
@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("MSMQ:mqsender label", "mqsender label"),
        ("MSMQ:", ""),
        ("", ""),
        ("Generic label", ""),
        ("msmq:x", ""),
        (" \n MSMQ:indented", "indented"),
        ("MSMQ: blanks are kept ", " blanks are kept "),
        ("MSMQ:MSMQ:x", "MSMQ:x"),
    ],
)
def test_labels(action: str, label: str) -> None:
    assert with_path(f"<action>{action}</action>{TO}{ID}").label == label


def test_labels_have_a_size() -> None:
    long = "\U0001f600" * 124 + "x"
    assert with_path(f"<action>MSMQ:{long}</action>{TO}{ID}").label == long
    refused(envelope(path(f"<action>MSMQ:{long}x</action>{TO}{ID}"), properties()), "249")
    assert with_path(f"<action>{'y' * 1000}</action>{TO}{ID}").label == ""


@pytest.mark.rule("SR-048")
def test_destinations() -> None:
    for to in ("http://h/msmq/q", "HTTPS://h:8443/msmq/private$/q", "http://h\\msmq\\q"):
        found = with_path(f"{ACTION}<to>\n{to} </to>{ID}")
        assert (found.to, found.multicast, found.destination_name) == (to, None, f"DIRECT={to}")
    found = with_path(f"{ACTION}<to>MSMQ:MULTICAST=234.1.1.1:8001</to>{ID}")
    assert found.multicast == "234.1.1.1:8001"
    assert found.destination_name == "MULTICAST=234.1.1.1:8001"
    for to in ("ftp://h/q", "", "MSMQ:DIRECT=OS:h\\q", "h/msmq/q", "MULTICAST=234.1.1.1:8001", "file:///x"):
        refused(envelope(path(f"{ACTION}<to>{to}</to>{ID}"), properties()), "to holds neither")


@pytest.mark.rule("SR-049", "SR-050")
@pytest.mark.parametrize("text", ["", "anything", "uuid:1", f"uuid:x@{GUID}", f"uuid:1@{{{GUID}}}"])
def test_identifiers_count_with_msmq_only(text: str) -> None:
    headers = path(f"{ACTION}{TO}<id>{text}</id>") + properties()
    assert read(headers).identifier == (UUID(int=0), 1)
    refused(envelope(headers, msmq()), "identifier")


@pytest.mark.rule("SR-051")
def test_the_guid_of_msmq_wins() -> None:
    found = with_path(f"{ACTION}{TO}<id>uuid:8@{OTHER}</id>")
    assert found.identifier == (UUID(GUID), 8)


@pytest.mark.rule("SR-052", "SR-053")
@pytest.mark.parametrize(
    ("rev", "via"),
    [
        ("", None),
        ("<rev><via/></rev>", None),
        ("<rev><via></via></rev>", None),
        ("<rev><via> \n </via></rev>", None),
        (REV, URL),
        ("<rev><via>https://h/msmq/q</via></rev>", "https://h/msmq/q"),
        (f"<rev><via>MSMQ:PRIVATE={GUID}\\00000007</via></rev>", f"MSMQ:PRIVATE={GUID}\\00000007"),
    ],
)
def test_reverse_paths(rev: str, via: str | None) -> None:
    assert with_path(ACTION + TO + rev + ID).via == via


@pytest.mark.rule("SR-052", "SR-053")
@pytest.mark.parametrize(
    "rev",
    ["<rev/>", f"<rev><via>{URL}</via><via>{URL}</via></rev>", REV + REV, "<rev><via>ftp://h/q</via></rev>"],
)
def test_reverse_paths_that_are_none(rev: str) -> None:
    refused(envelope(path(ACTION + TO + ID + rev), properties()), "via|twice")


@pytest.mark.rule("SR-054")
def test_what_a_path_may_have_besides() -> None:
    others = f"<fwd><via>{URL}</via></fwd><from>x</from><relatesTo>a</relatesTo><relatesTo/><fault/><fault/>"
    assert with_path(others + ACTION + TO + ID) == with_path(ACTION + TO + ID)


# ---- properties, services


@pytest.mark.rule("SR-055")
def test_properties_must_be_there() -> None:
    refused(envelope(path()), "properties")
    refused(envelope(path(), properties(attributes="")), "properties")


@pytest.mark.rule("SR-056")
def test_dates_of_a_message() -> None:
    for content in ("", "<sentAt>20070719T031140</sentAt>", "<expiresAt/>", DATES + DATES):
        refused(envelope(path(), properties(content)))
    refused(envelope(path(), properties("<expiresAt>2007-06-19T21:06:54Z</expiresAt>")), "date")
    refused(envelope(path(), properties("<expiresAt>20380119T031407</expiresAt><sentAt/>")), "date")
    assert read(path(), properties("<expiresAt>20070720T031140</expiresAt>")).sent_at is None


@pytest.mark.rule("SR-059")
def test_in_reply_to_is_ignored() -> None:
    assert read(path(), properties(DATES + "<inReplyTo>x</inReplyTo>" * 2)) == read_envelope(envelope())


@pytest.mark.rule("SR-060")
def test_services() -> None:
    refused(full(services("<durable/>", "")), "services without")
    assert read_envelope(full(services(""))).services
    found = read_envelope(full(services("<durable/>")))
    assert (found.services, found.durable, found.recoverable) == (True, True, True)


@pytest.mark.rule("SR-064", "SR-066")
@pytest.mark.parametrize("request_", ["deliveryReceiptRequest", "commitmentReceiptRequest"])
@pytest.mark.parametrize(
    "content",
    [
        "",
        "<sendTo/>",
        "<sendTo>MSMQ:PRIVATE=x</sendTo>",
        "<sendTo>ftp://x</sendTo>",
        f"<sendTo>{URL}</sendTo>" * 2,
    ],
)
def test_receipts_need_a_place_to_go(request_: str, content: str) -> None:
    refused(full(services(f"<{request_}>{content}</{request_}>")), "sendTo")


@pytest.mark.rule("SR-064", "SR-066")
def test_receipts_that_are_asked_for() -> None:
    found = read_envelope(
        full(
            services(
                f"<commitmentReceiptRequest><negativeOnly/><sendTo> {URL}2 </sendTo>"
                "</commitmentReceiptRequest>"
                f"<deliveryReceiptRequest>\n<sendTo>{URL}</sendTo></deliveryReceiptRequest>"
            )
        )
    )
    assert (found.delivery_to, found.commitment_to) == (URL, f"{URL}2")
    assert (found.positive_only, found.negative_only, found.durable) == (False, True, False)


# ---- streams


@pytest.mark.rule("SR-071")
def test_a_stream_needs_msmq_and_must_be_understood() -> None:
    refused(envelope(path(), properties(), stream()), "needs the Msmq element")
    refused(full(stream(attributes="")), "stream without")


@pytest.mark.rule("SR-073", "SR-074", "SR-075", "SR-076")
def test_the_parts_of_a_stream() -> None:
    part = read_envelope(full(stream())).stream
    assert part is not None
    assert (part.sender, part.sequence) == (UUID(OTHER), 4839986701558349830)
    assert (part.current, part.previous, part.before, part.start) == (1, None, 0, True)
    assert part.receipts_to == URL
    part = read_envelope(full(stream(f"{STREAM_ID}<previous>4</previous><current>9</current>"))).stream
    assert part is not None
    assert (part.current, part.previous, part.before, part.start, part.receipts_to) == (9, 4, 4, False, None)
    assert read_envelope(full(stream())).recoverable  # also without durable


@pytest.mark.rule("SR-071")
def test_a_stream_in_either_spelling() -> None:
    other = stream().replace("Stream se", "stream se").replace("</Stream>", "</stream>")
    assert read_envelope(full(other)) == read_envelope(full(stream()))
    refused(full(stream(), other), "twice")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"<current>1</current>{START}", marks=pytest.mark.rule("SR-073")),
        pytest.param(
            f"<streamId>uid:{OTHER}/1</streamId><current>1</current>{START}",
            marks=pytest.mark.rule("SR-073"),
        ),
        pytest.param(STREAM_ID + START, marks=pytest.mark.rule("SR-074")),
        pytest.param(f"{STREAM_ID}<current>0</current>", marks=pytest.mark.rule("SR-074")),
        pytest.param(f"{STREAM_ID}<current>-1</current>", marks=pytest.mark.rule("SR-032")),
        pytest.param(f"{STREAM_ID}<current>{1 << 32}</current>", marks=pytest.mark.rule("SR-074", "SR-115")),
        pytest.param(f"{STREAM_ID}<current>{1 << 64}</current>", marks=pytest.mark.rule("SR-032")),
        pytest.param(
            f"{STREAM_ID}<current>2</current><previous>x</previous>", marks=pytest.mark.rule("SR-075")
        ),
        pytest.param(f"{STREAM_ID}<current>1</current>", marks=pytest.mark.rule("SR-076")),
        pytest.param(f"{STREAM_ID}<current>2</current>{START}", marks=pytest.mark.rule("SR-076")),
        pytest.param(f"{STREAM_ID}<current>1</current><start/>", marks=pytest.mark.rule("SR-076")),
        pytest.param(
            f"{STREAM_ID}<current>1</current><start><sendReceiptsTo>MSMQ:x</sendReceiptsTo></start>",
            marks=pytest.mark.rule("SR-076"),
        ),
    ],
)  # fmt: skip
def test_streams_that_are_none(content: str) -> None:
    refused(full(stream(content)))


# ---- receipts

RECEIPT_ID = f"<id>uuid:32852@{OTHER}</id>"
RECEIVED = "<receivedAt>20070719T031140</receivedAt>"
DECIDED = "<decidedAt>20070719T031140</decidedAt>"
POSITIVE = "<decision>positive</decision>"
LAST = "<lastOrdinal>3</lastOrdinal>"


@pytest.mark.rule("SR-077", "SR-078", "SR-079")
def test_what_receipts_say() -> None:
    found = read_envelope(full(f"<deliveryReceipt>{RECEIVED}{RECEIPT_ID}</deliveryReceipt>"))
    assert found.delivery_receipt == DeliveryReceipt(SENT, f"uuid:32852@{OTHER}")
    assert found.is_receipt
    negative = POSITIVE.replace("posi", "nega")
    found = read_envelope(full(f"<commitmentReceipt>{DECIDED}{negative}{RECEIPT_ID}</commitmentReceipt>"))
    assert found.commitment_receipt == CommitmentReceipt(SENT, False, f"uuid:32852@{OTHER}")
    found = read_envelope(full(f"<streamReceipt>{STREAM_ID}{LAST}</streamReceipt>"))
    assert found.stream_receipt == StreamReceipt(UUID(OTHER), 4839986701558349830, 3)


@pytest.mark.parametrize(
    "receipt",
    [
        *(
            pytest.param(f"<deliveryReceipt>{parts}</deliveryReceipt>", marks=pytest.mark.rule("SR-077"))
            for parts in (RECEIVED, RECEIPT_ID, RECEIVED + "<id>x</id>", RECEIVED * 2 + RECEIPT_ID)
        ),
        *(
            pytest.param(f"<commitmentReceipt>{parts}</commitmentReceipt>", marks=pytest.mark.rule("SR-078"))
            for parts in (
                *(DECIDED + POSITIVE, DECIDED + RECEIPT_ID, POSITIVE + RECEIPT_ID),
                DECIDED + RECEIPT_ID + "<decision>maybe</decision>",
            )
        ),
        *(
            pytest.param(f"<streamReceipt>{parts}</streamReceipt>", marks=pytest.mark.rule("SR-079"))
            for parts in (STREAM_ID, LAST, STREAM_ID + "<lastOrdinal>-1</lastOrdinal>")
        ),
    ],
)
def test_receipts_that_say_too_little(receipt: str) -> None:
    refused(full(receipt))


# ---- Msmq


@pytest.mark.rule("SR-080")
def test_without_msmq_there_are_defaults() -> None:
    found = read_envelope(envelope())
    assert (found.msmq, found.message_class, found.identifier) == (None, 0, (UUID(int=0), 1))


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param("Class", marks=pytest.mark.rule("SR-081")),
        pytest.param("Priority", marks=pytest.mark.rule("SR-082")),
        pytest.param("BodyType", marks=pytest.mark.rule("SR-088")),
        pytest.param("SourceQmGuid", marks=pytest.mark.rule("SR-092")),
        pytest.param("TTrq", marks=pytest.mark.rule("SR-094")),
    ],
)
def test_what_msmq_must_have(missing: str) -> None:
    refused(envelope(path(), properties(), msmq(**{missing: None})), f"{missing} is missing")
    refused(envelope(path(), properties(), msmq(**{missing: ""})))
    refused(envelope(path(), properties(), msmq(**{missing: "?"})))


@pytest.mark.parametrize(
    ("element", "attribute", "value"),
    [
        pytest.param("<Journal/>", "journal", True, marks=pytest.mark.rule("SR-083")),
        pytest.param("<DeadLetter></DeadLetter>", "deadletter", True, marks=pytest.mark.rule("SR-083")),
        pytest.param(
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation>",
            "correlation",
            bytes(16) + b"\1\0\0\0",
            marks=pytest.mark.rule("SR-084"),
        ),
        pytest.param("<Trace/>", "trace", True, marks=pytest.mark.rule("SR-085")),
        pytest.param(
            f"<ConnectorType>{OTHER}</ConnectorType>", "connector_type", UUID(OTHER),
            marks=pytest.mark.rule("SR-086"),
        ),
        pytest.param("<App>36</App>", "app", 36, marks=pytest.mark.rule("SR-087")),
        pytest.param(
            "<HashAlgorithm>32772</HashAlgorithm>", "hash_algorithm", 0x8004, marks=pytest.mark.rule("SR-089")
        ),
        pytest.param("<Eod/>", "eod", Eod(), marks=pytest.mark.rule("SR-090")),
        pytest.param("<Eod><First/></Eod>", "eod", Eod(first=True), marks=pytest.mark.rule("SR-090")),
        pytest.param(
            f"<Eod><Last/><ConnectorId>{OTHER}</ConnectorId></Eod>", "eod", Eod(False, True, UUID(OTHER)),
            marks=pytest.mark.rule("SR-090"),
        ),
        pytest.param(
            "<Provider><Name> ProviderName</Name><Type>1234</Type></Provider>",
            "provider",
            Provider(1234, "ProviderName"),
            marks=pytest.mark.rule("SR-091"),
        ),
        *(
            pytest.param(
                f"<{name}Mqf>\nhttp://a/msmq/q\t{URL}  DIRECT=OS:b\\q\r\n</{name}Mqf>",
                f"{name.lower()}_mqf",
                ("http://a/msmq/q", URL, "DIRECT=OS:b\\q"),
                marks=pytest.mark.rule("SR-093"),
            )
            for name in ("Destination", "Admin", "Response")
        ),
    ],
)  # fmt: skip
def test_what_msmq_may_have(element: str, attribute: str, value: object) -> None:
    plain = read_envelope(full()).msmq
    found = read(path(), properties(), msmq(element)).msmq
    assert getattr(found, attribute) == value
    assert getattr(plain, attribute) in (None, False, ())
    refused(envelope(path(), properties(), msmq(element * 2)), "twice")


@pytest.mark.parametrize(
    ("element", "values"),
    [
        pytest.param("Class", ["65536", "-1"], marks=pytest.mark.rule("SR-081")),
        pytest.param("Priority", ["8", "-1"], marks=pytest.mark.rule("SR-082")),
        pytest.param("BodyType", ["4294967296"], marks=pytest.mark.rule("SR-088")),
        pytest.param("SourceQmGuid", [f"{{{GUID}}}"], marks=pytest.mark.rule("SR-092", "SR-030")),
        pytest.param("TTrq", ["2007-06-19T21:06:54Z"], marks=pytest.mark.rule("SR-094", "SR-031")),
        pytest.param("Correlation", ["AAAA", "?", ""], marks=pytest.mark.rule("SR-084")),
        pytest.param("ConnectorType", ["x", ""], marks=pytest.mark.rule("SR-086")),
        pytest.param("App", ["-1", "4294967296", ""], marks=pytest.mark.rule("SR-087")),
        pytest.param("HashAlgorithm", ["sha1"], marks=pytest.mark.rule("SR-089")),
        pytest.param("Eod", ["<ConnectorId>x</ConnectorId>"], marks=pytest.mark.rule("SR-090")),
        pytest.param("Provider", ["<Type>1</Type>", "<Name>x</Name>", ""], marks=pytest.mark.rule("SR-091")),
    ],
)
def test_values_that_msmq_may_not_have(element: str, values: list[str]) -> None:
    for value in values:
        known = element in ("Class", "Priority", "BodyType", "SourceQmGuid", "TTrq")
        text = msmq(**{element: value}) if known else msmq(f"<{element}>{value}</{element}>")
        refused(envelope(path(), properties(), text))


# ---- signatures

SIGNED_INFO = (
    f'<SignedInfo><SignatureMethod Algorithm="{DS}dsa"></SignatureMethod>'
    f'<Reference URI="cid:body@{GUID}"><DigestMethod Algorithm="{DS}sha1"></DigestMethod>'
    "<DigestValue>XU9yAzfwEPuP7L5iOcQY9XRNEWM=</DigestValue></Reference></SignedInfo>"
)
VALUE = "<SignatureValue>ZxvFMInWLSb1+iNj5xA/OhPHE4uzIx4nXOCmoOyGSSw=</SignatureValue>"


def signed(content: str = SIGNED_INFO + VALUE) -> str:
    return f'<Signature xmlns="{DS}">{content}</Signature>'


@pytest.mark.rule("SR-095", "SR-096")
def test_a_signature_as_it_came() -> None:
    found = read(path(), properties(), msmq(), signed()).signature
    assert found is not None
    assert found.method == f"{DS}dsa"
    assert found.references == (Reference(f"cid:body@{GUID}", f"{DS}sha1", "XU9yAzfwEPuP7L5iOcQY9XRNEWM="),)
    assert found.value == base64.b64decode(VALUE[16:-17])
    assert found.signed_info == SIGNED_INFO.encode()


def test_a_signature_with_prefixes_and_certificates() -> None:
    der = base64.b64encode(b"certificate").decode()
    text = re.sub(r"(</?)(\w)", r"\1d:\2", SIGNED_INFO + VALUE)
    later = DS.replace("2000/02", "2000/09")
    keys = (
        f'<KeyInfo xmlns="{later}"><X509Data><X509Certificate> {der}\n</X509Certificate></X509Data></KeyInfo>'
    )
    found = read(path(), properties(), msmq(), f'<d:Signature xmlns:d="{DS}">{text}{keys}</d:Signature>')
    assert found.signature is not None
    assert found.signature.signed_info == re.sub(r"(</?)(\w)", r"\1d:\2", SIGNED_INFO).encode()
    assert found.signature.certificates == (b"certificate",)


@pytest.mark.rule("SR-096")
@pytest.mark.parametrize(
    "content",
    [
        *("", SIGNED_INFO, VALUE, SIGNED_INFO * 2 + VALUE, SIGNED_INFO + VALUE * 2),
        SIGNED_INFO.replace("SignatureMethod", "Method") + VALUE,
        SIGNED_INFO + VALUE.replace("Zxv", "Z?v"),
        SIGNED_INFO + VALUE + "<!-- <SignedInfo> -->",
    ],
)
def test_signatures_that_are_none(content: str) -> None:
    refused(envelope(path(), properties(), msmq(), signed(content)))


# ---- the examples of the specification


def test_all_envelopes_of_the_specification() -> None:
    count = 0
    for name, example in examples().items():
        wire = base64.b64decode(example["wire_b64"])
        at = wire.find(b"<se:Envelope")
        if at < 0:
            continue
        xml = wire[at : wire.index(b"</se:Envelope>") + 14]
        found = read_envelope(xml)
        tree = etree.fromstring(xml)
        assert found.to == tree.findtext(f".//{{{RP}}}to"), name
        assert found.is_receipt == ("receipt" in name and "request" not in name), name
        assert (found.stream is not None) == name.startswith("stream-message"), name
        count += 1
    text = fragments()["overview-typical-message"]["text"]
    cut = text[text.index("<se:Envelope") : text.index("</se:Envelope>") + 14]
    assert read_envelope(cut.encode()) == read_envelope(_example("simple-with-msmq"))
    assert count + 1 == 13


def _example(name: str) -> bytes:
    wire = base64.b64decode(examples()[name]["wire_b64"])
    return wire[wire.index(b"<se:Envelope") : wire.index(b"</se:Envelope>") + 14]


def _placed(name: str, text: str) -> bytes:
    """An element of sections 2.2.4 to 2.2.7 in an envelope that is otherwise sound."""
    tag = re.match(r"<(\w+)", text)
    assert tag is not None
    kept = {"action": ACTION, "to": TO, "id": ID}
    dates = {"expiresAt": DATES[:38], "sentAt": DATES[38:]}
    match tag[1]:
        case "action" | "to" | "id" as element:
            return envelope(path("".join((kept | {element: text}).values())), properties(), msmq())
        case "rev":
            return envelope(path(ACTION + TO + ID + text), properties(), msmq())
        case "expiresAt" | "sentAt" as element:
            return envelope(path(), properties("".join((dates | {element: text}).values())), msmq())
        case "durable" | "deliveryReceiptRequest" | "commitmentReceiptRequest":
            return full(services(text))
        case "streamId" | "start":
            other = START if tag[1] == "streamId" else STREAM_ID
            return full(stream(f"{text}<current>1</current>{other}"))
        case "current" | "previous":
            return full(stream(STREAM_ID + text + ("<current>42</current>" if tag[1] == "previous" else "")))
        case "deliveryReceipt" | "commitmentReceipt" | "streamReceipt":
            return full(text)
        case "Class" | "Priority" | "BodyType" | "SourceQmGuid" | "TTrq" as element:
            value = etree.fromstring(text).text
            return envelope(path(), properties(), msmq(**{element: value}))
        case "SignatureMethod" | "DigestMethod" | "DigestValue" as element:
            return envelope(
                path(),
                properties(),
                msmq(),
                signed(re.sub(rf"<{element}.*?</{element}>", text, SIGNED_INFO) + VALUE),
            )
        case "SignatureValue":
            return envelope(path(), properties(), msmq(), signed(SIGNED_INFO + text))
        case _:
            return envelope(path(), properties(), msmq(text))


def test_all_elements_of_the_specification() -> None:
    count = 0
    for name, fragment in fragments().items():
        if not name.startswith("element-"):
            continue
        count += 1
        xml = _placed(name, fragment["text"])
        found = repr(read_envelope(xml))
        for value in etree.fromstring(fragment["text"]).itertext():
            for word in value.split():
                if not re.fullmatch(r"\d{8}T\d{6}|positive|[A-Za-z0-9+/]{27,}=+", word):
                    assert repr(word.removeprefix("MSMQ:")).strip("'") in found or _number(word) in found, (
                        name
                    )
    assert count == 41


def _number(word: str) -> str:
    """What becomes of a stream identifier."""
    return word.rpartition("\\")[2]
