"""How the console shows message bodies."""

from __future__ import annotations

import struct

import pytest

from msmq_fast.bodies import encode
from msmq_fast.console.bodyviews import DECODERS, LARGEST, MOST, hex_lines, suited_decoder, view_body
from tests.support.timing import processor_time

XML = b'<?xml version="1.0"?><order id="7"><item>Bolt</item><empty></empty><rest/></order>'


def test_each_kind_of_body_gets_the_decoder_that_suits_it() -> None:
    cases: list[tuple[bytes, int, str]] = [
        (XML, 0, "xml"),
        (b'{"a": [1, 2]}', 0, "json"),
        ("Grüße".encode("utf-16-le"), 8, "text"),
        (*encode("text", "binary"), "net-binary"),
        (*encode(42, "activex"), "activex"),
        ("Grüße".encode(), 0, "utf-8"),
        (b"\x00\x01\x02\xff", 0, "hex"),
        (b"", 0, "utf-8"),
    ]
    for body, body_type, decoder in cases:
        assert suited_decoder(body, body_type) == decoder
        shown = view_body(body, body_type)
        assert (shown.decoder, shown.error) == (decoder, "")


def test_xml_is_indented_and_no_entity_is_expanded() -> None:
    shown = view_body(XML, 0).text.splitlines()
    assert shown == [
        '<?xml version="1.0"?>',
        '<order id="7">',
        "  <item>Bolt</item>",
        "  <empty></empty>",
        "  <rest/>",
        "</order>",
    ]
    bomb = b'<!DOCTYPE a [<!ENTITY b "boom"><!ENTITY c "&b;&b;">]><a>&c;</a>'
    assert "boomboom" not in view_body(bomb, 0).text
    assert "&c;" in view_body(bomb, 0).text


def test_objects_of_net_are_a_tree_of_plain_text() -> None:
    body, body_type = encode([1, 2, 3], "binary", type="int32[]")
    assert view_body(body, body_type).text.splitlines() == ["list of 3", "  [0]: 1", "  [1]: 2", "  [2]: 3"]


def test_a_wrong_choice_says_why_and_a_wrong_guess_falls_back_to_hex() -> None:
    chosen = view_body(b"plain", 0, "json")
    assert chosen.decoder == "json"
    assert chosen.error.startswith("the body is not JSON")
    guessed = view_body(b"{broken", 0)
    assert guessed.decoder == "hex"
    assert guessed.notes[0].startswith("shown in hexadecimal: the body is not JSON")
    assert "7b 62 72" in guessed.text


def test_a_long_view_is_cut_with_a_note() -> None:
    shown = view_body(b"x" * (MOST + 1), 0, "utf-8")
    assert len(shown.text) == MOST
    assert "download" in shown.notes[-1]


@pytest.mark.parametrize("decoder", DECODERS)
def test_no_decoder_fails_on_arbitrary_bytes(decoder: str) -> None:
    for body in (b"", b"\0", b"<", b"{", bytes(range(256)), b"\xff\xfe<\0", b"\x00\x01\x00\x01\x02"):
        for body_type in (0, 8, 3, 30, 72, 0x300):
            shown = view_body(body, body_type, decoder)
            assert shown.text or shown.error or not body.strip(b"\0")


def test_hexadecimal_lines_have_offset_bytes_and_characters() -> None:
    assert list(hex_lines(b"Hello, world!\x00\x01\x02!", 16)) == [
        "00000010  48 65 6c 6c 6f 2c 20 77  6f 72 6c 64 21 00 01 02  Hello, world!...",
        "00000020  21                                                !",
    ]


@pytest.mark.parametrize("text", ["<!--", "<![CDATA[", "<", "<a", "<a>", "</a>", "<!-- -->"])
def test_hostile_documents_take_linear_time(text: str) -> None:
    body = b"<a>" + text.encode() * (1_000_000 // len(text))
    shown = view_body(body, 0, "xml")
    assert len(shown.text) <= MOST


def hostile_streams(size: int) -> list[bytes]:
    """BinaryFormatter streams of about `size` bytes that cost much to decode: an array of nulls, of strings,
    and of arrays within arrays.
    """
    head = b"\0" + struct.pack("<4i", 1, -1, 1, 0)
    nulls, strings, arrays = size - 30, size // 6 - 10, size // 9 - 10
    return [
        head + b"\x10" + struct.pack("<2i", 1, nulls) + b"\x0a" * nulls + b"\x0b",
        head
        + b"\x10"
        + struct.pack("<2i", 1, strings)
        + b"".join(b"\x06" + struct.pack("<i", number + 2) + b"\0" for number in range(strings))
        + b"\x0b",
        head + b"".join(b"\x10" + struct.pack("<2i", number, 1) for number in range(1, arrays)) + b"\x0a\x0b",
    ]


@pytest.mark.parametrize("size", [LARGEST, 4 << 20])
def test_a_hostile_stream_costs_little(size: int) -> None:
    for body in hostile_streams(size):
        with processor_time() as spent:
            shown = view_body(body, 0)
        assert shown.decoder == "hex"
        assert shown.notes[0].startswith("shown in hexadecimal")
        assert spent.seconds < 1.5
