"""SRMP envelopes that arrive: elements, namespaces, encodings and headers, and what does not conform."""

from __future__ import annotations

import pytest

from msmq_fast.srmp.reading import read_envelope
from msmq_fast.srmp.xmlbounds import MAX_ENVELOPE
from tests.srmp.reading import refused, with_path
from tests.support.srmp.texts import (
    GUID,
    ID,
    RP,
    SE,
    SENT,
    SRMP,
    TO,
    UNDERSTAND,
    envelope,
    full,
    msmq,
    path,
    properties,
    services,
    stream,
)
from tests.support.timing import processor_time


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
    with processor_time() as spent:
        refused(xml[1])
    assert spent.seconds < 0.25


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
