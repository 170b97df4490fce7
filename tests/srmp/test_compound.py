"""Whole messages: envelope and attachments, from requests and from texts that start like requests."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.srmp.compound import content_of, read_http, read_text
from msmq_fast.srmp.multipart import build
from msmq_fast.srmp.reading import read_envelope
from msmq_fast.srmp.values import Nonconforming
from tests.support.srmp.texts import GUID, OTHER, envelope, examples, fragments, full

B = "MSMQ - SOAP boundary, 26500"
TYPE = f'multipart/related; boundary="{B}"; type=text/xml'
XML = full()
SOAP = (b"text/xml; charset=UTF-8", b"", XML)
OCTETS = b"application/octet-stream"
RECEIPT = full(
    f"<deliveryReceipt><receivedAt>20070719T031140</receivedAt><id>uuid:1@{OTHER}</id></deliveryReceipt>"
)


def multipart(*parts: tuple[bytes, bytes, bytes]) -> bytes:
    return build(B.encode(), parts)


def body(content: bytes, kind: str = "body") -> tuple[bytes, bytes, bytes]:
    return OCTETS, f"{kind}@{GUID}".encode(), content


@pytest.mark.rule("SR-035", "SR-038")
def test_body_and_extension_are_attachments() -> None:
    found = read_http(TYPE, multipart(SOAP, body(b"content"), body(b"more", "extension")))
    assert (found.body, found.extension, found.attachments) == (b"content", b"more", {})
    assert found.envelope == read_envelope(XML)
    assert found.envelope_xml == XML


@pytest.mark.rule("SR-038")
def test_parts_in_any_order_and_spelling() -> None:
    parts = [body(b"more", "Extension"), (OCTETS, f"<BODY@{OTHER}>".encode(), b"x"), (OCTETS, b"a@b", b"y")]
    found = read_http(TYPE, multipart(SOAP, *parts))
    assert (found.body, found.extension, found.attachments) == (b"x", b"more", {"a@b": b"y"})
    root = (b"text/xml", b"<root>", XML)
    found = read_http(f'{TYPE}; start="<root>"', multipart(*parts, root))
    assert (found.body, found.extension, found.envelope_xml) == (b"x", b"more", XML)


@pytest.mark.rule("SR-037")
@given(st.binary(max_size=60))
def test_where_the_body_stands(noise: bytes) -> None:
    content = noise + f"--{B}\r\n".encode() + noise
    wire = multipart(SOAP, body(b"more", "extension"), body(content))
    found = read_http(TYPE, memoryview(wire))
    assert found.body == content
    assert found.size == len(wire)
    assert wire[found.body_offset : found.body_offset + len(content)] == content


def test_an_envelope_alone() -> None:
    for content_type in ("text/xml", "TEXT/XML; Charset=utf-8", 'text/xml ; charset="UTF-8"'):
        found = read_http(content_type, XML)
        assert (found.envelope_xml, found.body, found.size) == (XML, None, len(XML))


@pytest.mark.parametrize(
    "content_type",
    [
        TYPE,
        f'Multipart/Related; type="text/xml"; BOUNDARY="{B}"',
        f'multipart/related; x="; boundary=no \\" "; boundary="{B}"',
        f"multipart/related; boundary={B}",
    ],
)
def test_content_types(content_type: str) -> None:
    assert read_http(content_type, multipart(SOAP, body(b"x"))).body == b"x"


@pytest.mark.parametrize(
    ("content_type", "wire"),
    [
        ("", XML),
        ("application/soap+xml", XML),
        ("text/xml; charset=utf-16", XML),
        ("text/xml", multipart(SOAP)),
        ("multipart/related", multipart(SOAP)),
        ("multipart/related; boundary=b", multipart(SOAP)),
        (TYPE, XML),
        (TYPE, f"--{B}--".encode()),
        (TYPE, multipart((OCTETS, b"", XML), body(b"x"))),
        (TYPE, multipart((b"text/xml; charset=latin-1", b"", XML), body(b"x"))),
        (TYPE, multipart(SOAP, body(b"x"), body(b"y"))),
        (TYPE, multipart(SOAP, (OCTETS + b"\r\nContent-Transfer-Encoding: base64", b"body@x", b"eA=="))),
    ],
)
def test_what_is_no_message(content_type: str, wire: bytes) -> None:
    with pytest.raises(Nonconforming):
        read_http(content_type, wire)


@pytest.mark.rule("SR-036")
def test_receipts_have_no_payload() -> None:
    assert read_http("text/xml", RECEIPT).envelope.is_receipt
    for parts in ([body(b"x")], []):
        with pytest.raises(Nonconforming, match="receipt"):
            read_http(TYPE, multipart((SOAP[0], b"", RECEIPT), *parts))


# ---- texts


@pytest.mark.parametrize(
    "head",
    [
        f"POST /msmq/q HTTP/1.1\r\nHost: h\r\nContent-Type: {TYPE}\r\n\r\n",
        f'POST /msmq/q HTTP/1.1\r\ncontent-type: multipart/related;\r\n boundary="{B}"\r\n\r\n',
        "nonsense\r\n\r\n",
        "\x01\x02 no request line at all\nA: b\n\n",
        'POST / HTTP/1.1\r\nContent-Type: multipart/related; boundary="another"\r\n\r\n',
        "POST / HTTP/1.1\r\nContent-Type: text/xml; charset=utf-16\r\n\r\n",
        "POST / HTTP/1.1\r\nno header field at all\r\n\r\n",
    ],
)
@pytest.mark.rule("SR-007")
def test_the_head_of_a_text_does_not_matter(head: str) -> None:
    wire = head.encode("latin-1") + multipart(SOAP, body(b"content"))
    found = read_text(wire)
    assert found.body == b"content"
    assert wire[len(wire) - found.size + found.body_offset :].startswith(b"content--")


def test_a_text_without_payload() -> None:
    for head in (b"POST / HTTP/1.1\r\nContent-Type: text/xml\r\n\r\n", b"x\r\n\r\n"):
        assert read_text(head + XML).envelope_xml == XML
        assert content_of(head + XML) == (b"text/xml", XML)
    assert read_text(b"x\r\nContent-Type: image/png\r\n\r\n" + XML).envelope_xml == XML
    with pytest.raises(Nonconforming):
        read_text(XML)


@given(st.binary(max_size=200))
def test_no_noise_makes_more_than_a_refusal(noise: bytes) -> None:
    for text in (noise, b"POST / HTTP/1.1\r\n\r\n" + noise, b"x\r\n\r\n--" + noise):
        with pytest.raises(Nonconforming):
            read_text(text)


# ---- the examples of the specification


@pytest.mark.rule("SR-037", "SR-038", "SR-040")
def test_all_messages_of_the_specification() -> None:
    bodies = {
        "simple-no-msmq": b"First Message",
        "both-receipts-requested": b"Both delivery and commitment receipt requests",
        "stream-message-1": b"First Message",
        "stream-message-2": b"Message 0",
        "stream-message-3": b"Last Message",
        "pgm-multicast-message": "ardenwhite".encode("utf-16-le"),
    }
    count = 0
    for name, example in examples().items():
        wire = base64.b64decode(example["wire_b64"])
        if name.endswith("-response"):
            assert wire.startswith(b"HTTP/1.1 200")
            continue
        found = read_text(wire)
        head, _, rest = wire.partition(b"\r\n\r\n")
        assert found.size == len(rest)
        assert f"Content-Length: {len(rest)}".encode() in head
        if name.startswith(("delivery", "commitment", "stream-receipt")):
            assert found.body is None, name
        elif name == "simple-with-msmq":
            assert found.body is not None
            assert (found.body[:21], len(found.body)) == (b'<?xml version="1.0"?>', 223)
        else:
            assert found.body == bodies[name]
        count += 1
    assert count == 12
    with pytest.raises(Nonconforming):  # it is cut off in the specification
        read_text(fragments()["overview-typical-message"]["text"].encode())


def test_an_envelope_with_a_byte_order_mark() -> None:
    assert read_http("text/xml", b"\xef\xbb\xbf" + envelope()).envelope == read_envelope(envelope())
