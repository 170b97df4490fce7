"""BinaryFormatter streams that are built to exhaust a reader: each ends early, with an error and little
memory.
"""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from msmq_fast.bodies import decode
from msmq_fast.bodies.binary import MAX_DEPTH, MAX_VALUES

MOST = 48 << 20


def _i(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def _text(value: str) -> bytes:
    data = value.encode()
    assert len(data) < 1 << 14
    head = bytes([len(data)]) if len(data) < 0x80 else bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    return head + data


HEAD = b"\0" + _i(1, -1, 1, 0)
END = b"\x0b"
OBJECTS, REFERENCE, NULLS, NULL = b"\x10", b"\x09", b"\x0e", b"\x0a"


@contextmanager
def _little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


def _error(stream: bytes) -> str:
    with _little_memory():
        found = decode(HEAD + stream, 0x300)
    assert found.value is None
    assert found.error is not None
    assert "\n" not in found.error
    return found.error


@pytest.mark.parametrize(
    "array",
    [
        b"\x0f" + _i(1, 2**31 - 1) + b"\x08",  # of Int32
        b"\x0f" + _i(1, 2**31 - 1) + b"\x03",  # of Char, which has no fixed size
        OBJECTS + _i(1, 2**31 - 1),
        b"\x11" + _i(1, 2**31 - 1),
        b"\x07" + _i(1) + b"\2" + _i(32) + _i(2**31 - 1) * 32 + b"\0\x08",  # of 32 dimensions
    ],
)
def test_an_array_that_announces_more_than_follows(array: bytes) -> None:
    assert "missing" in _error(array)


def test_an_array_of_two_thousand_million_nulls_in_ten_bytes() -> None:
    many = 2**31 - 1
    assert f"more than {MAX_VALUES} values" in _error(OBJECTS + _i(1, many) + NULLS + _i(many) + END)


def test_nulls_of_many_arrays_count_together() -> None:
    arrays = b"".join(OBJECTS + _i(number, 10**6) + NULLS + _i(10**6) for number in range(1, 10))
    assert f"more than {MAX_VALUES} values" in _error(arrays + END)


def test_an_empty_array_with_long_outer_dimensions() -> None:
    with _little_memory():
        found = decode(HEAD + b"\x07" + _i(1) + b"\2" + _i(2, 2**31 - 1, 0) + b"\0\x08" + END)
    assert (found.value, found.error) == ([], None)


def test_doubling_references_stay_small() -> None:
    """Each array holds the next one twice: 2 to the power of 64 elements, if references were expanded."""
    levels = 64
    arrays = b"".join(OBJECTS + _i(level, 2) + (REFERENCE + _i(level + 1)) * 2 for level in range(1, levels))
    with _little_memory():
        found = decode(HEAD + arrays + OBJECTS + _i(levels, 0) + END)
        assert len(json.dumps(found.value)) < 64 * 300
    assert found.error is None
    assert found.value == [found.value[0], {"__ref__": "$[0]"}]


def test_cycles_end() -> None:
    itself = OBJECTS + _i(1, 2) + REFERENCE + _i(1) + NULL + END
    assert decode(HEAD + itself).value == [{"__ref__": "$"}, None]
    three = b"".join(OBJECTS + _i(one, 1) + REFERENCE + _i(one % 3 + 1) for one in (1, 2, 3))
    assert decode(HEAD + three + END).value == [[[{"__ref__": "$"}]]]


def test_a_list_that_contains_itself() -> None:
    name = "System.Collections.Generic.List`1[[System.Object]]"
    members = _text("_items") + _text("_size") + _text("_version")
    stream = (
        b"\x04" + _i(1) + _text(name) + _i(3) + members + b"\5\0\0\x08\x08" + REFERENCE + _i(2) + _i(1, 1)
        + OBJECTS + _i(2, 1) + REFERENCE + _i(1) + END
    )  # fmt: skip
    assert decode(HEAD + stream).value == [{"__ref__": "$"}]


def test_depth_is_bounded_inline_and_by_references() -> None:
    deep = 5_000
    inline = b"".join(OBJECTS + _i(number, 1) for number in range(1, deep)) + NULL + END
    assert f"more than {MAX_DEPTH} deep" in _error(inline)
    linked = b"".join(OBJECTS + _i(number, 1) + REFERENCE + _i(number + 1) for number in range(1, deep))
    assert f"more than {MAX_DEPTH} deep" in _error(linked + OBJECTS + _i(deep, 0) + END)


def test_dimensions_count_as_depth() -> None:
    """Arrays of 32 dimensions in one another would be lists of lists a thousand deep."""
    shape = b"\2" + _i(32) + _i(1) * 32 + b"\2"
    arrays = b"".join(
        b"\x07" + _i(level) + shape + REFERENCE + _i(level + 1) for level in range(1, MAX_DEPTH // 2)
    )
    assert f"more than {MAX_DEPTH} deep" in _error(arrays + OBJECTS + _i(MAX_DEPTH // 2, 0) + END)


def test_a_long_string_that_is_repeated() -> None:
    count = 5000
    text = "x" * 16_000
    stream = OBJECTS + _i(1, count) + b"\x06" + _i(2) + _text(text) + (REFERENCE + _i(2)) * (count - 1)
    assert "strings that are repeated have more than" in _error(stream + END)


def test_a_long_name_that_is_repeated() -> None:
    """Each object of the class is 9 bytes, and has the name of the class and its member again."""
    name = "x" * 16_000
    large = b"\x04" + _i(2) + _text(name) + _i(1) + _text(name) + b"\0\x08" + _i(7)
    others = b"".join(b"\x01" + _i(number, 2) + _i(7) for number in range(3, 3000))
    stream = OBJECTS + _i(1, 2998) + large + others + END
    assert "names and strings that are repeated have more than" in _error(stream)


def test_places_with_long_names_cost_nothing() -> None:
    """A place is named only where something refers to it."""
    members = _text("y" * 16_000) + _text("z")
    head = b"\x04" + _i(1) + _text("C") + _i(2) + members + b"\5\2"
    stream = head + OBJECTS + _i(2, 5000)
    for number in range(3, 5003):
        stream += OBJECTS + _i(number, 0)
    with _little_memory():
        found = decode(HEAD + stream + REFERENCE + _i(2) + END)
    assert found.error is None
    assert found.value["z"] == {"__ref__": "$." + "y" * 36 + "..."}
    assert len(found.value["y" * 16_000]) == 5000


@pytest.mark.parametrize("name", ["System.Int32", "System.DateTime", "System.Guid", "System.Decimal"])
def test_a_boxed_value_that_refers_to_itself(name: str) -> None:
    member = {"System.Int32": "m_value", "System.DateTime": "dateData"}.get(name, "_a")
    head = b"\x04" + _i(1) + _text(name) + _i(1) + _text(member) + b"\2"
    found = decode(HEAD + head + REFERENCE + _i(1) + END)
    assert found.value == {"__class__": name, member: {"__ref__": "$"}}


def test_many_objects_of_a_large_class() -> None:
    members = 20_000
    large = b"\x04" + _i(1) + _text("Large") + _i(members) + b"\0" * members + b"\2" * members
    within = b"".join(b"\x01" + _i(number, 1) for number in range(2, 2000))
    assert "cut" in _error(large + within)


def test_a_class_whose_members_have_no_types() -> None:
    assert "only .NET can read it" in _error(b"\x02" + _i(1) + _text("Old") + _i(1) + _text("a") + b"\x99")


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (END, "the stream has no object 1, which its header names as the root"),
        (
            OBJECTS + _i(1, 1) + REFERENCE + _i(7) + END,
            r"object 7, which $[0] refers to, is not in the stream",
        ),
        (
            b"\x04" + _i(1) + _text("C") + _i(1) + _text("a\nb") + b"\2" + REFERENCE + _i(7) + END,
            r"object 7, which $.a\nb refers to, is not in the stream",
        ),
        (OBJECTS + _i(1, 0) + OBJECTS + _i(1, 0) + END, "object 1 before byte 35 occurs twice"),
    ],
)
def test_objects_that_do_not_fit_together(stream: bytes, reason: str) -> None:
    assert reason in _error(stream)


@pytest.mark.parametrize(
    ("name", "members", "data"),
    [
        ("System.Guid", ("_a",), _i(1)),
        ("System.Decimal", ("flags", "hi", "lo", "mid"), _i(0x7FFF0000, -1, -1, -1)),
        ("System.DateTime", ("dateData",), _i(5)),
        ("System.Collections.Generic.List`1[[x]]", ("_items", "_size", "_version"), _i(1, 2, 3)),
        ("System.Collections.Generic.Dictionary`2[[x]]", ("KeyValuePairs",), _i(1)),
    ],
)
def test_well_known_types_with_other_members_stay_plain(
    name: str, members: tuple[str, ...], data: bytes
) -> None:
    head = b"\x04" + _i(1) + _text(name) + _i(len(members)) + b"".join(map(_text, members))
    found = decode(HEAD + head + bytes(len(members)) + b"\x08" * len(members) + data + END)
    assert found.error is None
    if name != "System.DateTime":
        assert found.value["__class__"] == name
