"""One policy for names from the wire, another for content; nothing raises because of what a text contains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.packet.text import (
    MAX_NAME,
    decode_name,
    decode_text,
    encode_text,
    is_address,
    is_name,
    shown_name,
    utf16_units,
)

HOSTILE = [
    "",
    "OS:h\ud800\\private$\\q",
    "OS:h\udc00\\private$\\q",
    "OS:\udc00\ud800\\private$\\q",
    "OS:h\\private$\\q\0junk",
    "OS:h\x07\\private$\\q",
    "OS:h\n\\private$\\q",
    "OS:h\x7f\\private$\\q",
    "OS:h\u202e\\private$\\q",
    "OS:h\u200b\\private$\\q",
    "OS:h\u2028\\private$\\q",
    "OS:h\uffff\\private$\\q",
    "h" * (MAX_NAME + 1),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_that_cannot_be_names(text: str) -> None:
    assert not is_name(text)
    shown = shown_name(text)
    assert shown == "" or is_name(shown)


@pytest.mark.parametrize("text", ["q", "OS:host\\q", "OS:müller\\private$\\q", "a b", "h" * MAX_NAME])
def test_texts_that_can_be_names(text: str) -> None:
    assert is_name(text)
    assert shown_name(text) == text


@given(st.text(st.characters()))
def test_what_is_shown_of_a_name_can_be_written_anywhere(text: str) -> None:
    shown = shown_name(text)
    shown.encode()
    assert len(shown) <= MAX_NAME
    assert shown == "" or shown.isprintable()


@given(st.binary(max_size=200))
def test_any_bytes_are_content_and_stay_as_they_are(data: bytes) -> None:
    whole = data[: len(data) // 2 * 2]
    name = encode_text(decode_name(data))
    assert whole[: len(name)] == name
    assert not any(whole[len(name) :])
    text = decode_text(data)
    assert "\0" not in text
    assert whole.startswith(encode_text(text))


def test_a_name_does_not_end_at_an_embedded_nul() -> None:
    wire = encode_text("OS:h\\q\0junk\0")
    assert decode_name(wire) == "OS:h\\q\0junk"
    assert decode_text(wire) == "OS:h\\q"
    assert decode_name(encode_text("OS:h\\q\0\0")) == "OS:h\\q"


def test_lengths_are_counted_as_packets_count_them() -> None:
    assert [utf16_units(text) for text in ("", "abc", "ü", "\U0001f600", "\ud800")] == [0, 3, 1, 2, 1]


@pytest.mark.parametrize("text", ["10.0.0.7", "::1", "fe80::1%eth0", "fe80::1%2", "fe80::1%" + "z" * 15])
def test_addresses(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "10.0.0.256",
        "10.0.0.7%eth0",
        "fe80::1%",
        "fe80::1%\ud800",
        "fe80::1%a b",
        "fe80::1%a\\b",
        "fe80::1%ü",
        "fe80::1%a%b",
        "fe80::1%" + "z" * 16,
    ],
)
def test_texts_that_are_no_addresses(text: str) -> None:
    assert not is_address(text)
