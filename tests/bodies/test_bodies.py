"""What bodies and extensions hold, against bytes made by hand from the public documents."""

from __future__ import annotations

import contextlib
import json
import struct
import tracemalloc
from collections.abc import Callable
from uuid import UUID
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.bodies import kind
from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.framing import framing
from msmq_fast.bodies.headers import extension_headers
from msmq_fast.bodies.identifiers import guid
from msmq_fast.bodies.netbinary import NetBinary, net_binary
from msmq_fast.bodies.text import text, xml

pytestmark = pytest.mark.smoke

PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), max_size=60)
XML_TEXT = st.text(
    st.characters(min_codepoint=32, codec="utf-8", exclude_characters="\ufffe\uffff\x7f"), max_size=60
)


# -- text


@given(PLAIN, st.sampled_from([8, 31]), st.booleans())
def test_wide_texts(content: str, body_type: int, ended: bool) -> None:
    assert text((content + "\0" * ended).encode("utf-16-le"), body_type) == content


@given(PLAIN, st.sampled_from(["utf-8-sig", "utf-16", "utf-8"]))
def test_texts_without_a_type(content: str, encoding: str) -> None:
    assert text(content.encode(encoding), 0) == content


def test_ansi_text() -> None:
    assert text("Größe\0".encode("windows-1252"), 30) == "Größe"
    assert text("Größe".encode(), 30) == "Größe"


def test_what_is_no_text() -> None:
    with pytest.raises(BodyError, match="byte 2 is not utf-16-le"):
        text(b"a\0b", 8)
    with pytest.raises(BodyError, match="byte 0 is not utf-8"):
        text(b"\xff\x00", None)


@given(XML_TEXT)
def test_xml_in_every_encoding(content: str) -> None:
    document = f"<a>{escape(content)}</a>"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
        assert xml(document.encode(encoding)) == document


def test_the_declared_encoding_counts() -> None:
    document = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'
    assert xml(document.encode("latin-1")) == document
    # What .NET's StringWriter says of text that is UTF-8 in the end.
    assert xml(b'<?xml version="1.0" encoding="utf-16"?><a>\xc3\xa9</a>').endswith("<a>é</a>")
    with pytest.raises(BodyError, match="the encoding rot13 that the document declares is not known"):
        xml(b'<?xml version="1.0" encoding="rot13"?><a/>')
    with pytest.raises(BodyError, match="does not begin with <"):
        xml(b"plain")


# -- kinds


@pytest.mark.parametrize(
    ("body_type", "body", "expected"),
    [
        (0, b"", "empty"),
        (8, b"a\0", "text"),
        (31, b"a\0", "text"),
        (30, b"a", "ansi_text"),
        (3, bytes(4), "number"),
        (3, bytes(5), "binary"),
        (72, bytes(16), "guid"),
        (68, b"x", "ole_object"),
        (0, b"<?xml version='1.0'?>", "xml"),
        (0, "\ufeff<a/>".encode("utf-16-le"), "xml"),
        (0x2011, b' {"a": 1}', "json"),
        (0, "[1]".encode("utf-8-sig"), "json"),
        (0x300, b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0\x0b", "net_binary"),
        (0, b"\0\1\0\1\4\2\0", "net_framing"),
        (0x2011, b"\x89PNG", "binary"),
        (None, b"\0\0", "binary"),
    ],
)
def test_kinds(body_type: int | None, body: bytes, expected: str) -> None:
    assert kind.body_kind(body, body_type) == expected
    assert expected in kind.KINDS


@given(st.binary(max_size=80), st.none() | st.integers(0, 0xFFFF))
def test_every_body_has_a_kind(body: bytes, body_type: int | None) -> None:
    assert kind.body_kind(body, body_type) in kind.KINDS


# -- identifiers


@given(st.uuids(), st.integers(0, 2**32 - 1))
def test_identifiers(value: UUID, ordinal: int) -> None:
    assert guid(value.bytes_le) == str(value)
    assert guid(value.bytes_le + struct.pack("<I", ordinal)) == f"{{{value}}}\\{ordinal}"


def test_identifiers_of_other_sizes() -> None:
    with pytest.raises(BodyError, match="not 3"):
        guid(b"abc")


# -- framing (MC-NMF 2.2.3)


def _counted(data: bytes) -> bytes:
    size, out = len(data), b""
    while size > 0x7F:
        out, size = out + bytes([size & 0x7F | 0x80]), size >> 7
    return out + bytes([size]) + data


def test_the_framing_of_a_queued_message() -> None:
    via = "net.msmq://host/private/" + "x" * 200
    head = b"\0\1\0" + b"\1\4" + b"\2" + _counted(via.encode()) + b"\3\7"
    found = framing(head + b"\x0cenvelope")  # 12 would be the end of a preamble elsewhere
    assert found == ("1.0", "singleton_sized", via, "application/soap+msbin1", len(head), 9)


def test_other_framings() -> None:
    duplex = b"\0\1\0\1\2\2\1a\3\2\x0c\x06\x03abc"
    assert framing(duplex) == ("1.0", "duplex", "a", "text/xml; charset=unicode-le", len(duplex) - 3, 3)
    assert framing(b"\0\1\1\1\1\4\x04mine\x0c\x05rest")[3:] == ("mine", 13, None)
    assert framing(b"\0\1\0\1\3").mode == "simplex"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "must begin with a version record"),
        (b"\1\4", "must begin with a version record"),
        (b"\0\1", "2 bytes are needed at byte 1, but the data ends at byte 2"),
        (b"\0\1\0\1\x09", "mode 9 is not known"),
        (b"\0\1\0\3\x20", "encoding 32 is not known"),
        (b"\0\1\0\x2a", "record 42 is not known"),
        (b"\0\1\0\2\x05ab", "5 bytes are needed"),
        (b"\0\1\0\2\xff\xff\xff\xff\xff", "longer than 31 bits"),
        (b"\0\1\0\2\1\xff", "not UTF-8"),
        (b"\0\1\0\x08\x05oops\n", r"the fault 'oops\\n'"),
    ],
)
def test_damaged_framings(body: bytes, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        framing(body)


# -- BinaryFormatter streams (MS-NRBF)


def _text(value: str) -> bytes:
    return _counted(value.encode())


def _i(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


HEAD = b"\0" + _i(1, -1, 1, 0)
LIBRARY = b"\x0c" + _i(2) + _text("Shop, Version=1.0.0.0")
ORDER = (
    b"\x05" + _i(1) + _text("Shop.Order") + _i(4)
    + _text("id") + _text("customer") + _text("lines") + _text("when")
    + b"\x00\x01\x04\x00" + b"\x08" + _text("Shop.Line[]") + _i(2) + b"\x0d" + _i(2)
)  # fmt: skip
STREAM = (
    HEAD + LIBRARY + ORDER
    + _i(7) + b"\x06" + _i(3) + _text("Ann") + b"\x09" + _i(4) + bytes(8)
    # two lines and three nulls, in an array of a class
    + b"\x07" + _i(4) + b"\0" + _i(1, 5) + b"\x04" + _text("Shop.Line") + _i(2)
    + b"\x05" + _i(5) + _text("Shop.Line") + _i(2) + _text("sku") + _text("price")
    + b"\0\0" + b"\x03\x05" + _i(2)
    + "ß".encode() + _text("9.95")
    + b"\x01" + _i(6, 5) + "€".encode() + _text("1")
    + b"\x0d\x03"
    + b"\x0b"
)  # fmt: skip


def test_type_names_of_a_stream() -> None:
    assert net_binary(STREAM) == NetBinary(
        "Shop.Order", ["Shop.Order", "Shop.Line[]", "Shop.Line"], ["Shop, Version=1.0.0.0"], 10, True
    )


@pytest.mark.parametrize(
    ("records", "root"),
    [
        (b"\x06" + _i(1) + _text("x"), "System.String"),
        (b"\x0f" + _i(1, 3) + b"\x02abc", "System.Byte[]"),
        (b"\x0f" + _i(1, 2) + b"\x03" + "a€".encode(), "System.Char[]"),
        (b"\x0f" + _i(1, 1) + b"\x05" + _text("1.5"), "System.Decimal[]"),
        (b"\x11" + _i(1, 3) + b"\x0d\x02" + b"\x06" + _i(2) + _text("x"), "System.String[]"),
        (b"\x10" + _i(1, 2) + b"\x08\x08" + _i(5) + b"\x0e" + _i(1), "System.Object[]"),
        (b"\x07" + _i(1) + b"\2" + _i(2, 2, 3) + b"\0\x08" + bytes(24), "System.Int32[,]"),
        (b"\x07" + _i(1) + b"\3" + _i(1, 1, 9) + b"\7\2" + b"\x09" + _i(8), "System.Byte[][]"),
        (b"\x04" + _i(1) + _text("System.Guid") + _i(1) + _text("a") + b"\0\x08" + _i(1), "System.Guid"),
    ],
)
def test_roots(records: bytes, root: str) -> None:
    found = net_binary(HEAD + records + b"\x0b")
    assert (found.root, found.complete) == (root, True)


def test_a_class_without_types_ends_the_walk() -> None:
    found = net_binary(HEAD + b"\x02" + _i(1) + _text("System.Old") + _i(1) + _text("a") + b"\x99")
    assert found == NetBinary("System.Old", ["System.Old"], [], 2, False)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (b"", "1 bytes are missing"),
        (b"\x63", "record type 99"),
        (b"\x10" + _i(1, 1) + b"\x0b", "ends inside an object"),
        (b"\x10" + _i(1, 1) + b"\x0d\x02", "2 nulls"),
        (b"\x10" + _i(1, 1) + b"\x0e" + _i(-1), "-1 nulls"),
        (b"\x0d\x01", "1 nulls"),
        (b"\x0f" + _i(1, 1 << 30) + b"\x08", "are missing"),
        (b"\x0f" + _i(1, 1 << 30) + b"\x11", "primitive type 17"),
        (b"\x0f" + _i(1, -1) + b"\x08", "negative"),
        (b"\x01" + _i(1, 99), "refers to a class"),
        (b"\x07" + _i(1) + b"\0" + _i(33), "33 dimensions"),
        (b"\x05" + _i(1) + _text("A") + _i(1 << 30), "1073741824 members"),
    ],
)
def test_damaged_streams(records: bytes, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        net_binary(HEAD + records)


def test_many_objects_of_a_large_class_do_not_fill_the_memory() -> None:
    members = 20_000
    large = b"\x04" + _i(1) + _text("Large") + _i(members) + bytes(members) + b"\x02" * members
    within = b"".join(b"\x01" + _i(number) + _i(1) for number in range(2, 2000))
    tracemalloc.start()
    try:
        with pytest.raises(BodyError, match="cut"):
            net_binary(HEAD + large + within)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_every_cut_of_a_stream_is_an_error() -> None:
    for size in range(len(STREAM)):
        with pytest.raises(BodyError):
            net_binary(STREAM[:size])


def _reason(function: Callable[[bytes], object], body: bytes) -> str | None:
    try:
        function(body)
    except BodyError as problem:
        return str(problem)
    return None


@given(st.data())
def test_changed_streams_never_do_worse(data: st.DataObject) -> None:
    stream = bytearray(STREAM)
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    _reason(net_binary, bytes(stream))


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_an_error(body: bytes) -> None:
    for function in (framing, net_binary, xml, extension_headers, guid):
        for given_body in (body, HEAD + body, b"\0\1\0" + body, b"<" + body, b"{" + body):
            assert "\n" not in (_reason(function, given_body) or "one line")


# -- headers in extensions

HEADERS = st.dictionaries(XML_TEXT.map(str.strip).filter(bool), XML_TEXT, max_size=8)


def _nservicebus(headers: dict[str, str]) -> str:
    items = "".join(
        f"<HeaderInfo><Key>{escape(key)}</Key><Value>{escape(value)}</Value></HeaderInfo>\r\n"
        for key, value in headers.items()
    )
    spaces = (
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
    )
    return f'<?xml version="1.0"?>\r\n<ArrayOfHeaderInfo {spaces}>{items}</ArrayOfHeaderInfo>'


@given(HEADERS, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.integers(0, 3))
def test_nservicebus_headers(headers: dict[str, str], encoding: str, zeros: int) -> None:
    assert extension_headers(_nservicebus(headers).encode(encoding) + bytes(zeros)) == headers


@given(HEADERS)
def test_rebus_headers(headers: dict[str, str]) -> None:
    assert extension_headers(json.dumps(headers).encode()) == headers
    pairs = [{"Key": key, "Value": value} for key, value in headers.items()]
    assert extension_headers(json.dumps(pairs).encode()) == headers


def test_halves_of_characters_and_deep_lists_end_no_query() -> None:
    """What a stranger has sent must be a value or an error of this function."""
    assert extension_headers(rb'{"a\ud800": "\udfff", "b": 1}') == {"a?": "?", "b": "1"}
    for depth in (*range(900, 1000), 100_000):
        lists = b"[" * depth + b"]" * depth
        with contextlib.suppress(BodyError):
            assert extension_headers(b'{"a":' + lists + b"}")


def test_empty_values_and_numbers() -> None:
    document = "<ArrayOfHeaderInfo><HeaderInfo><Key>a</Key><Value /></HeaderInfo></ArrayOfHeaderInfo>"
    assert extension_headers(document.encode()) == {"a": ""}
    assert extension_headers(b'{"a": 1, "b": null}') == {"a": "1", "b": ""}
    assert extension_headers(b"") == extension_headers(bytes(4)) == {}


@pytest.mark.parametrize(
    ("extension", "reason"),
    [
        (b"\x01\x02", "neither XML nor JSON"),
        (b"<Other/>", "an XML document Other, not ArrayOfHeaderInfo"),
        (b"<ArrayOfHeaderInfo>", "not XML"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><ArrayOfHeaderInfo/>', "have a document type declaration"),
        (b"{", "not JSON"),
        (b"[1]", "do not have Key and Value"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_header(extension: bytes, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        extension_headers(extension)
