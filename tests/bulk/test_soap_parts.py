"""soap_header and soap_body, beside what lxml reads in the same envelopes, sound and spoiled."""

from __future__ import annotations

import random
from base64 import b64decode
from typing import Any
from uuid import UUID
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from msmq_fast._native.columnmessages import MessageEncoder
from msmq_fast._native.columnrows import packets
from msmq_fast._native.columnstore import Contents
from msmq_fast._native.memorystore import MemoryTables
from msmq_fast.bulk.reader import CLASSES
from msmq_fast.packet.base import BaseHeader
from msmq_fast.packet.fields import destination_field
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.properties import MessagePropertiesHeader
from msmq_fast.packet.soap import CompoundMessageHeader, SoapHeader, SRMPEnvelopeHeader
from msmq_fast.packet.soapparts import child_of_root
from msmq_fast.packet.user import UserHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.columns import chosen
from msmq_fast.srmp.compound import read_text
from tests.support.srmp.texts import examples, full
from tests.support.worlds.cores import dicts

COLUMNS = chosen("soap_header,soap_body")
ENCODER = MessageEncoder(
    Contents(MemoryTables()), [(column.name, column.kind) for column in COLUMNS], {}, CLASSES
)
NAMESPACES = {
    None: "urn:default",
    "se": "http://schemas.xmlsoap.org/soap/envelope/",
    "a": "urn:a",
    "b": "urn:b",
}
DECLARED = "".join(f' {"xmlns:" + name if name else "xmlns"}="{uri}"' for name, uri in NAMESPACES.items())
Parts = tuple[str | None, str | None]


def packet(envelope: str | None = None, soap: SoapHeader | None = None) -> bytes:
    return UserMessagePacket(
        BaseHeader(),
        UserHeader(
            UUID(int=1),
            UUID(int=2),
            0xFFFFFFFF,
            1_700_000_000,
            1,
            destination=destination_field(parse_format_name(r"DIRECT=OS:HOST\private$\orders")),
        ),
        properties=MessagePropertiesHeader(),
        envelope=None if envelope is None else SRMPEnvelopeHeader(envelope),
        compound=None if envelope is None else CompoundMessageHeader(b"POST"),
        soap=soap,
    ).encode()


def native(*sent: bytes) -> list[Parts]:
    return [
        (row["soap_header"], row["soap_body"]) for row in dicts(COLUMNS, ENCODER.encode(packets(list(sent))))
    ]


def plain(envelope: str) -> Parts:
    return child_of_root(envelope, "Header"), child_of_root(envelope, "Body")


# ---- what lxml says


def parsed(xml: str) -> Any:
    """The root, or None where lxml refuses the text or it has a document type."""
    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, strip_cdata=False)
    try:
        root = etree.fromstring(xml.encode(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return None if root.getroottree().docinfo.doctype else root


Tree = tuple[Any, ...]


def tree(node: Any) -> Tree:
    """All that a node says: comments and instructions have functions for tags."""
    return node.tag, dict(node.attrib), node.text, [(tree(child), child.tail) for child in node]


def of_lxml(root: Any, name: str) -> Tree | None:
    for child in root:
        if isinstance(child.tag, str) and etree.QName(child).localname == name:
            return tree(child)
    return None


def reread(root: Any, part: str) -> Tree:
    """A part by itself: what stands before or behind it would be a second node, or text."""
    names = (("xmlns:" + prefix if prefix else "xmlns", uri) for prefix, uri in root.nsmap.items())
    declared = "".join(f" {name}={quoteattr(uri)}" for name, uri in names)
    whole = parsed(f"<root{declared}>{part}</root>")
    assert whole is not None, part
    assert (len(whole), whole.text, whole[0].tail) == (1, None, None), part
    return tree(whole[0])


def compare(xml: str, found: Parts) -> bool:
    """Whether lxml reads it; if so, these are the elements that it finds."""
    root = parsed(xml)
    if root is None:
        return False
    for name, part in zip(("Header", "Body"), found, strict=True):
        expected = of_lxml(root, name)
        assert (part and reread(root, part)) == expected, (name, xml)
        assert part is None or part in xml
    return True


# ---- envelopes

PREFIXES = st.sampled_from(["", "se:", "a:", "b:"])
LOCAL = st.sampled_from(["Header", "Body", "Envelope", "header", "Head", "x", "Headers", "é"])
NAMES = st.builds("{}{}".format, PREFIXES, LOCAL)
SPACE = st.sampled_from(["", " ", "\n\t ", "\r\n"])
CHARACTERS = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="<&\ufffe\uffff")
TEXT = st.text(CHARACTERS, max_size=8).map(lambda text: text.replace("]]>", ""))
PIECES = st.sampled_from(
    ["&lt;", "&#62;", "\U0001f600", "</", "<Header>", "<se:Body/>", "/>", ">", "'", '"', "--", "?>"]
)
TEXTS = st.one_of(TEXT, st.sampled_from(["&lt;se:Body>", "a>b", "&#x10FFFF;", "/>", "'\""]))
COMMENTS = st.one_of(TEXT, PIECES).map(lambda text: f"<!--{text.replace('-', '')}-->")
SECTIONS = st.one_of(TEXT, PIECES).map(lambda text: f"<![CDATA[{text}]]>")
INSTRUCTIONS = st.one_of(TEXT, PIECES).map(lambda text: f"<?pi {text.replace('?', '')}?>")
VALUES = st.one_of(TEXT, st.sampled_from(["/>", ">", "a='b'", "</se:Header>".replace("<", ""), "é"]))


@st.composite
def tags(draw: st.DrawFn, declared: str = "") -> tuple[str, str]:
    """The inside of a start tag, and the name."""
    name = draw(NAMES)
    text = name + declared
    for key in draw(st.lists(st.sampled_from(["k", "a:k", "b:k", "Header"]), unique=True, max_size=3)):
        value, quote = draw(VALUES), draw(st.sampled_from("'\""))
        space = draw(SPACE.filter(bool))
        text += f"{space}{key}{draw(SPACE)}={draw(SPACE)}{quote}{value.replace(quote, '')}{quote}"
    return text + draw(SPACE), name


def element(content: st.SearchStrategy[str], declared: str = "") -> st.SearchStrategy[str]:
    def build(tag: tuple[str, str], inside: str, space: str, *, empty: bool) -> str:
        return f"<{tag[0]}/>" if empty else f"<{tag[0]}>{inside}</{tag[1]}{space}>"

    return st.builds(
        build, tags(declared), content, SPACE, empty=st.booleans() if not declared else st.just(False)
    )


def contents(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    piece = st.one_of(TEXTS, COMMENTS, SECTIONS, INSTRUCTIONS, inner, inner)
    return st.lists(piece, max_size=5).map("".join)


ELEMENTS = st.recursive(element(TEXTS), lambda inner: element(contents(inner)), max_leaves=12)
MISC = st.lists(st.one_of(COMMENTS, INSTRUCTIONS, SPACE), max_size=3).map("".join)
DECLARATION = st.sampled_from(["", '<?xml version="1.0"?>', '\ufeff<?xml version="1.0" encoding="utf-8"?>\n'])
ENVELOPES = st.builds("{}{}{}{}".format, DECLARATION, MISC, element(contents(ELEMENTS), DECLARED), MISC)
SPOILERS = [
    "<",
    ">",
    "/",
    '"',
    "'",
    "=",
    "-->",
    "<!--",
    "]]>",
    "<![CDATA[",
    "<?",
    "?>",
    "</",
    "/>",
    " ",
    "&",
    ":",
]
SPOILERS += [
    "<Header>",
    "</Header>",
    "<!DOCTYPE a>",
    "\0",
    "\ud800",
    "\udc00",
    "\ufeff",
    "!",
    "a",
    "<se:Body/>",
]


@settings(max_examples=300, deadline=None)
@given(ENVELOPES)
def test_sound_envelopes(xml: str) -> None:
    assert compare(xml, plain(xml)), xml
    assert native(packet(xml)) == [plain(xml)]


@settings(max_examples=300, deadline=None)
@given(ENVELOPES, st.randoms(use_true_random=False))
def test_spoiled_envelopes(xml: str, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 3)):
        at, size = rng.randrange(len(xml) + 1), rng.choice((0, 0, 1, 1, 3, 20))
        xml = xml[:at] + rng.choice(["", "", *SPOILERS]) + xml[at + size :]
    kept = UserMessagePacket.decode(packet(xml))[0].envelope
    assert kept is not None
    found = plain(kept.envelope)
    (parts,) = native(packet(xml))
    assert parts == tuple(
        part and part.replace("\ud800", "\ufffd").replace("\udc00", "\ufffd") for part in found
    )
    try:
        kept.envelope.encode()
    except UnicodeEncodeError:  # no XML
        return
    compare(kept.envelope, parts)


def test_every_beginning_of_an_envelope_has_no_parts() -> None:
    xml = full().decode()
    sent = [packet(xml[:size]) for size in range(len(xml))]
    assert native(*sent) == [(None, None)] * len(sent)
    assert native(packet(xml)) != [(None, None)]


@pytest.mark.parametrize(
    "inside",
    [
        "<x></y>",
        "<x><y></x></y>",
        "</x>",
        "<x",
        "<x a=1/>",
        "<x a='1/>",
        "<x a='1'b='2'/>",
        "<x a='<'/>",
        "<x / >",
        "<x/",
        "< x/>",
        "<>",
        "</>",
        "<!-- -- -->",
        "<!-->",
        "<?>",
        "<?x",
        "<![CDATA[]]",
        "<![cdata[]]>",
        "<!x>",
    ],
)
def test_tags_that_do_not_fit(inside: str) -> None:
    xml = f"<E><Header>{inside}</Header><Body/></E>"
    assert parsed(xml) is None
    assert native(packet(xml)) == [plain(xml)] == [(None, None)]


@pytest.mark.parametrize(
    "xml",
    [
        "",
        " ",
        "x",
        "<!---->",
        "<Header/>",
        "<E/>",
        "<E><x><Header/><Body/></x></E>",
        "<E/><E><Header/><Body/></E>",
        "<E><Header/><Body/></E>x",
        "x<E><Header/><Body/></E>",
        "<![CDATA[]]><E><Header/><Body/></E>",
        "<!DOCTYPE E><E><Header/><Body/></E>",
        "<E><Header/><Body/></E></E>",
    ],
)
def test_texts_without_parts(xml: str) -> None:
    assert native(packet(xml)) == [plain(xml)] == [(None, None)]


def test_as_deep_as_it_may_be() -> None:
    for depth, found in ((510, True), (511, False), (200_000, False)):
        xml = "<E><Header>" + "<x>" * depth + "</x>" * depth + "</Header><Body/></E>"
        assert native(packet(xml)) == [plain(xml)] == [(xml[3:-11], "<Body/>") if found else (None, None)]


def test_the_first_of_several() -> None:
    xml = "<E><a:Body 1='>'/><Header>1</Header><b:Header/><Body>2</Body></E>"
    assert native(packet(xml)) == [plain(xml)] == [("<Header>1</Header>", "<a:Body 1='>'/>")]


@pytest.mark.rule("SR-135")
@pytest.mark.parametrize("name", [each for each in examples() if not each.endswith("-response")])
def test_the_examples_of_the_specification(name: str) -> None:
    xml = read_text(b64decode(examples()[name]["wire_b64"])).envelope_xml.decode()
    header, body = native(packet(xml))[0]
    assert header is not None
    assert body is not None
    assert header.startswith("<se:Header>")
    assert compare(xml, (header, body))


def test_what_a_soap_header_says() -> None:
    """Of a message that came over MS-MQQB: its texts as they are. An envelope comes before them."""
    texts = ("<h:Header>not closed", ""), ("", "<b/>é\U0001f600"), ("ab", "cd"), ("abc", "def")
    sent = [packet(soap=SoapHeader(*each)) for each in texts]
    assert native(*sent, packet()) == [*texts, (None, None)]
    both = packet("<E><Header/></E>", SoapHeader("header", "body"))
    assert native(both) == [("<Header/>", None)]


def test_a_soap_header_without_padding_between_its_sections() -> None:
    padded = packet(soap=SoapHeader("ab", "c"))  # 3 characters with the NUL
    at = padded.index("ab\0".encode("utf-16-le")) + 6
    unpadded = padded[:at] + padded[at + 2 :]
    unpadded = unpadded[: at + 8] + "c\0".encode("utf-16-le") + b"\0\0"
    assert len(unpadded) == len(padded)
    assert native(unpadded) == [("ab", "c")]
