"""Values into bodies and back: which types are chosen, what is refused and how, and that reading never
raises.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.bodies import FORMATTERS, BodyError, Decoded, decode, encode
from msmq_fast.bodies.kind import KINDS

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**14), max_value=10**14, places=4)
TIMES = st.datetimes(min_value=datetime(100, 1, 1), timezones=st.none() | st.just(UTC)).map(
    lambda time: time.replace(fold=0)
)
TEXTS = st.text(
    st.characters(min_codepoint=32, codec="utf-8", exclude_characters="\ufffe\uffff"), max_size=60
)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | TEXTS
    | DECIMALS
    | TIMES
    | st.uuids()
)


@given(SCALARS | st.binary(min_size=1, max_size=50), st.sampled_from(["xml", "binary"]))
def test_scalars_survive_xml_and_binary(value: Any, formatter: str) -> None:
    found = decode(*encode(value, formatter))
    assert (found.value, found.error, found.notes) == (value, None, ())
    assert type(found.value) is type(value)


@given(st.sampled_from(["xml", "binary"]), st.data())
def test_lists_survive_xml_and_binary(formatter: str, data: st.DataObject) -> None:
    one = data.draw(
        st.sampled_from([st.booleans(), st.integers(-5, 2**40), st.floats(), TEXTS, DECIMALS, TIMES])
    )
    items = data.draw(st.lists(one, min_size=1, max_size=12))
    assert repr(decode(*encode(items, formatter)).value) == repr(items)


@given(st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | DECIMALS | st.uuids())
def test_scalars_survive_activex(value: Any) -> None:
    assert decode(*encode(value, "activex")) == Decoded(
        "guid" if isinstance(value, UUID) else "number", value
    )


@given(st.datetimes(min_value=datetime(100, 1, 1)))
def test_dates_survive_activex_to_the_millisecond(value: datetime) -> None:
    found = decode(*encode(value, "activex")).value
    assert abs(found - value.replace(microsecond=value.microsecond // 1000 * 1000)) <= timedelta(0)


@given(TEXTS.filter(bool))
def test_texts_survive_activex(value: str) -> None:
    for kind in ("bstr", "lpwstr"):
        assert decode(*encode(value, "activex", type=kind)) == Decoded("text", value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXTS,
        lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
        max_leaves=20,
    )
)
def test_json_survives(value: Any) -> None:
    if isinstance(value, dict | list):
        assert decode(*encode(value, "json")) == Decoded("json", value)


@pytest.mark.parametrize(
    ("value", "formatter", "body"),
    [
        (1, "xml", b"<int>1</int>"),
        (2**31, "xml", b"<long>2147483648</long>"),
        (2**63, "xml", b"<unsignedLong>9223372036854775808</unsignedLong>"),
        (True, "xml", b"<boolean>true</boolean>"),
        (Decimal("1E+3"), "xml", b"<decimal>1000</decimal>"),
        (Decimal("-0.00"), "xml", b"<decimal>0.00</decimal>"),
        (-0.0, "xml", b"<double>-0</double>"),
        (datetime(2026, 1, 1, tzinfo=timezone(-timedelta(minutes=90))), "xml", b"T00:00:00-01:30<"),
        ("a\u2028<", "xml", "<string>a\u2028&lt;</string>".encode()),
        ([1, 2**40], "xml", b"<long>1</long>"),
        ({"a": [None, "é"]}, "json", '{"a":[null,"é"]}'.encode()),
    ],
)
def test_the_type_follows_from_the_value(value: Any, formatter: str, body: bytes) -> None:
    assert body in encode(value, formatter).body


@pytest.mark.parametrize(
    ("value", "formatter", "name", "reason"),
    [
        (1, "soap", None, "invalid formatter 'soap': choose one of xml, binary, activex, json"),
        (1, "xml", "integer", "invalid type 'integer': choose one of boolean, bytes, char"),
        (1, "json", "int32", "the formatter json takes no type"),
        (300, "xml", "uint8", "300 is out of the range of uint8"),
        ("1", "xml", "int32", "type int32 takes int, not str '1'"),
        (True, "binary", "int32", "type int32 takes int, not bool True"),
        (2**64, "xml", None, "does not fit into 64 bits"),
        (2**9999, "xml", None, "an integer of 10000 bits does not fit"),
        (1e39, "xml", "single", "out of the range of single"),
        ("ab", "xml", "char", "out of the range of char"),
        ("\ud800", "xml", None, "out of the range of string"),
        ("a\0b", "xml", None, r"XML does not allow the character U\+0000 at position 1"),
        (Decimal("1e29"), "binary", None, "out of the range of decimal"),
        (Decimal("NaN"), "xml", None, "out of the range of decimal"),
        (Decimal("0.00001"), "activex", None, "four decimal places"),
        (datetime(99, 1, 1), "activex", None, "in the year 100 or later"),
        (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))), "binary", None, "UTC or without a zone"),
        (timedelta(1), "xml", None, "the formatter xml does not write timespan"),
        (timedelta.max, "binary", None, "out of the range of timespan"),
        ("é", "activex", "lpstr", r"takes ASCII only, not U\+00E9; use bstr"),
        (
            timedelta(1),
            "activex",
            None,
            "the formatter activex does not write timespan: choose one of boolean, bstr",
        ),
        ([1], "activex", None, r"does not write int32\[\]"),
        ([], "xml", None, r"name it, for example type='int32\[\]'"),
        ([[1]], "xml", None, "a list of lists has no simple type; use the formatter json"),
        ([1, "a"], "xml", None, "values of one type, not int32 and string"),
        ([1, None], "xml", None, "an array of int32 must not hold None"),
        ([UUID(int=1)], "binary", None, "does not write arrays of guid"),
        ({"a": 1}, "xml", None, "a dict has no simple type; convert it, or use the formatter json"),
        ({"a": b"x"}, "json", None, "the value cannot be written as JSON"),
        (math.inf, "json", None, "the value cannot be written as JSON"),
        (1, "xml", "int32[]", r"type int32\[\] takes a list, not int 1"),
        ("ab", "binary", "string[]", r"type string\[\] takes a list, not str 'ab'"),
    ],
)
def test_what_cannot_be_written_is_named(value: Any, formatter: str, name: str | None, reason: str) -> None:
    with pytest.raises(BodyError, match=reason) as caught:
        encode(value, formatter, type=name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "body_type", "error"),
    [
        (b"<a", 0, "the body is not XML"),
        (b"<a/><b/>", 0, "the body is not XML"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 0, "the document has a document type declaration"),
        (b"<a>" * 101, 0, "elements are nested more than 100 deep"),
        (b"[" * 100_000, 0, "nested more than 100 deep"),
        (b"[" * 102 + b"]" * 102, 0, "nested more than 100 deep"),
        (b"{", 0, "the body is not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", 0, "the body is not JSON"),
        (b"a", 8, "byte 0 is not utf-16-le"),
        (b"\0" * 7 + b"\x7f", 7, "is not a date"),
        (b"\0" * 6 + b"\xf0\x7f", 7, "inf is not a date"),
        (b"<" + bytes(1 << 24), 0, "at most 16777216 are decoded"),
    ],
)
def test_damaged_bodies_are_an_error_and_no_exception(body: bytes, body_type: int, error: str) -> None:
    found = decode(body, body_type)
    assert found.value is None
    assert error in (found.error or "")


@pytest.mark.parametrize(
    ("body", "value", "note"),
    [
        (b"<int>x</int>", "x", "element int: 'x' is not a value of type int32"),
        (b"<int>99999999999</int>", "99999999999", "not a value of type int32"),
        (b"<dateTime>2026-13-01T00:00:00</dateTime>", "2026-13-01T00:00:00", "not a value of type datetime"),
        (b"<guid>{x}</guid>", "{x}", "not a value of type guid"),
        (b"<base64Binary>?</base64Binary>", "?", "not a value of type bytes"),
        (b"<other>x</other>", "x", "the root element is other"),
    ],
)
def test_what_is_read_otherwise_than_named_is_noted(body: bytes, value: str, note: str) -> None:
    found = decode(body, 0)
    assert (found.value, found.error) == (value, None)
    (only,) = found.notes
    assert note in only


def test_xml_of_other_programs() -> None:
    document = (
        b'<o:Order xmlns:o="urn:x" a="1">text<o:x>1</o:x><o:x>2</o:x><__class__>no</__class__></o:Order>'
    )
    assert decode(document).value == {"__class__": "Order", "@a": "1", "x": ["1", "2"], "#text": "text"}
    assert decode(b"<int> 5 </int>").value == 5
    contract = b'<string xmlns="http://schemas.microsoft.com/2003/10/Serialization/">a</string>'
    assert decode(contract).value == "a"


def test_other_kinds_are_as_they_come() -> None:
    assert decode(b"") == Decoded("empty", None)
    assert decode(b"\x89PNG", 0) == Decoded("binary", b"\x89PNG")
    assert decode(b"abc", 68) == Decoded("ole_object", b"abc")
    assert decode(b"\0\1\0\1\4\2\1x\3\7<e/>").value["encoding"] == "application/soap+msbin1"


@given(st.binary(max_size=200), st.none() | st.integers(0, 0xFFFF))
def test_no_bytes_raise(body: bytes, body_type: int | None) -> None:
    for prefix in (b"", b"<", b"{", b"[", b"\0\1\0", b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0"):
        found = decode(prefix + body, body_type)
        assert found.kind in KINDS
        assert "\n" not in (found.error or "")


def test_formatters_are_named() -> None:
    assert FORMATTERS == ("xml", "binary", "activex", "json")
