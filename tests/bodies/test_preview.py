"""Previews of bodies: one short line for each kind, at a cost that does not depend on the size."""

from __future__ import annotations

import pytest

from msmq_fast.bodies import encode
from msmq_fast.bodies.preview import preview
from tests.support.timing import processor_time

XML = b'<?xml version="1.0"?><order id="7"><item>Bolt</item></order>'
STREAM = b"\0\x01\0\0\0\xff\xff\xff\xff\x01\0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("body", "body_type", "shown"),
    [
        (b"", 0, ""),
        (XML, 0, XML.decode()),
        ("\ufeff<a>\n  <b/></a>".encode("utf-16-le"), 0, "<a> <b/></a>"),
        (b'{"a":\n [1]}', 0, '{"a": [1]}'),
        (b"a\nb\n\tc", 0, "a b c"),
        ("Grüße".encode("utf-16-le"), 8, "Grüße"),
        ("Grüße".encode(), 0, "Grüße"),
        (b"\x00\xff\x10", 0, "00 ff 10"),
        (*encode(42, "activex"), "42 (number)"),
        (*encode([1, 2, 3], "binary", type="int32[]"), "[1, 2, 3] (net_binary)"),
        (STREAM + bytes(9000), 0, "BinaryFormatter stream of 9017 bytes"),
        (STREAM + b"\xff", 0, STREAM.hex(" ") + " ff"),
        (b"\x00\x01\x00\x01\x02\x02\x03a:b\x03\x08\x0c", 0, "NetMsmqBinding message for a:b"),
    ],
)
def test_each_kind_of_body_has_a_preview(body: bytes, body_type: int, shown: str) -> None:
    assert preview(body, body_type) == shown


def test_a_preview_has_at_most_the_given_length() -> None:
    assert len(preview(b"word " * 1000, 0)) == 200
    assert preview(b"word " * 1000, 0, 5) == "word…"
    assert len(preview(b"\xff" * 1000, 0)) <= 200


@pytest.mark.parametrize(
    "body",
    [
        b"[" * (4 << 20),
        b"<a>" * (1 << 20),
        b" " * (4 << 20),
        bytes(4 << 20),
        b"\x00\x01\x00\x01\x01" + b"\x07" * (4 << 20),
        STREAM + b"\x10\1\0\0\0\xd0\x1f\0\0" + b"\x0a" * 8100,
        STREAM + b"\x0a" * (4 << 20),
    ],
)
def test_a_preview_of_a_hostile_body_takes_milliseconds(body: bytes) -> None:
    took = []
    for _ in range(3):
        with processor_time() as spent:
            assert len(preview(body, 0)) <= 200
        took.append(spent.seconds)
    assert min(took) < 0.05
