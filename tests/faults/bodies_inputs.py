"""Damaged bodies for `fuzz_bodies.py`, and what each decoder must make of them."""

from __future__ import annotations

import json
import random
import struct
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from msmq_fast.bodies import BodyError, Decoded, binary, decode, xml
from msmq_fast.bodies import json as json_bodies
from msmq_fast.bodies.headers import extension_headers
from msmq_fast.bodies.kind import KINDS
from msmq_fast.bodies.netbinary import net_binary
from tests.support.timing import processor_time

MOST = 6_000  # bytes of an input
SLOWEST = 2.0  # seconds of CPU that one input may take
DEEPEST = 1 + max(binary.MAX_DEPTH, xml.MAX_DEPTH, json_bodies.MAX_DEPTH)
HEAD = b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0"
SCALARS = (type(None), bool, int, float, str, bytes, Decimal, datetime, timedelta, UUID)
GOLDENS = Path(__file__).parents[1] / "bodies" / "goldens" / "mono.jsonl"
HEADERS = (
    b'<?xml version="1.0"?><ArrayOfHeaderInfo xmlns:xsi="x">'
    b"<HeaderInfo><Key>a</Key><Value>b</Value></HeaderInfo>"
    b"<HeaderInfo><Key>c</Key><Value /></HeaderInfo></ArrayOfHeaderInfo>",
    b'{"rbs2-intent": "pub", "n": 1, "l": [null]}',
    b'[{"Key": "a", "Value": "b"}]',
)
FRAMINGS = (
    b"\0\1\0\1\4\2\x20net.msmq://host/private/q1234567\3\7<e/>",
    b"\0\1\0\1\2\2\1a\3\2\x0c\x06\x03abc",
    b"\0\1\1\1\1\4\x04mine\x0c\x05rest",
)
DOUBLING = (
    HEAD
    + b"".join(
        b"\x10" + struct.pack("<iiBiBi", level, 2, 9, level + 1, 9, level + 1) for level in range(1, 17)
    )
    + b"\x10"
    + struct.pack("<ii", 17, 0)
    + b"\x0b"
)  # 2 to the power of 16 lists, if each were made anew
CHAIN = (
    HEAD
    + b"".join(b"\x10" + struct.pack("<iiBi", level, 1, 9, level + 1) for level in range(1, 150))
    + b"\x10"
    + struct.pack("<ii", 150, 0)
    + b"\x0b"
)
JSONS = (
    b"[" * 300 + b"]" * 300,
    b'{"a": [1, 2.5, "\\ud83d\\ude00", null, true, {"b": {}}]}',
    "\ufeff[1]".encode("utf-16"),
    b"[" * 50 + b"]" * 50,
)
TOKENS = (
    *(b"\x10", b"\x09", b"\x0d\xff", b"\x0e\xff\xff\xff\x7f", b"\x0a", b"\x0b", b"\x06", b"\x01", b"\x05"),
    *(b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\x80\x80\x80\x80\x80", b"System.DateTime", b"m_value", b"_items"),
    *(
        b"<a>",
        b"</a>",
        b"<int>",
        b'xsi:nil="true"',
        b"&lt;",
        b"&#0;",
        b"<![CDATA[",
        b'<!DOCTYPE a [<!ENTITY b "c">]>',
    ),
    *(b"ArrayOfInt", b"1E400", b"99999999999999999999", b"9999-12-31T23:59:59.9999999+14:00", b"INF"),
    *(b"[", b"{", b'"', b"\\ud800", b"\xff\xfe", b"\0"),
)


def _goldens(formatter: str) -> list[bytes]:
    """The body type and the body of each golden."""
    with GOLDENS.open() as lines:
        found = [line for line in map(json.loads, lines) if line["formatter"] == formatter]
    return [struct.pack("<H", line["body_type"]) + bytes.fromhex(line["body"]) for line in found]


def _typed(bodies: tuple[bytes, ...]) -> list[bytes]:
    return [b"\0\0" + body for body in bodies]


SEEDS: dict[str, list[bytes]] = {
    "xml": _goldens("xml"),
    "binary": [*_goldens("binary"), b"\0\3" + DOUBLING, b"\0\3" + CHAIN],
    "activex": _goldens("activex"),
    "json": _typed(JSONS),
    "framing": _typed(FRAMINGS),
    "headers": _typed(HEADERS),
}


def mutate(rng: random.Random, data: bytes, seeds: list[bytes]) -> bytes:
    """Another input: bytes, numbers and tokens changed at one to four places."""
    whole = bytearray(data if len(data) > 2 and rng.random() < 0.9 else rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(whole) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            whole[at:at] = rng.choice(TOKENS)
        elif kind == 1:
            del whole[at : at + rng.choice((1, 2, 4, 16, 100))]
        elif kind == 2:
            other = rng.choice(seeds)
            start = rng.randrange(len(other))
            whole[at:at] = other[start : start + rng.choice((4, 20, 200))]
        elif kind == 3 and at < len(whole):
            whole[at] = rng.randrange(256)
        elif kind == 4:
            token = rng.choice(TOKENS)
            whole[at : at + len(token)] = token
        else:
            part = bytes(whole[at : at + rng.choice((1, 5, 40))])
            whole[at:at] = part * rng.choice((1, 3, 50))
    return bytes(whole[:MOST])


def one_input(name: str, data: bytes) -> None:
    """Decode one input; AssertionError, or what a decoder raises, for a finding."""
    body_type = int.from_bytes(data[:2], "little")
    body = data[2:]
    with processor_time() as spent:
        CHECKS[name](body, body_type)
    assert spent.seconds < SLOWEST, f"{len(body)} bytes took too long"


def _decoded(body: bytes, body_type: int) -> None:
    found = decode(body, body_type)
    assert found.kind in KINDS
    assert all("\n" not in note for note in found.notes)
    if found.error is None:
        assert _containers(found.value, 0) <= 1 + len(body)
    else:
        assert found.value is None
        assert found.error
        assert "\n" not in found.error
    _agrees(found, body)


def _containers(value: Any, depth: int) -> int:
    """How many lists and dicts there are; AssertionError for what is not plain data, or has no end."""
    assert depth <= DEEPEST, "too deep"
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        return 1 + sum(_containers(one, depth + 1) for one in value.values())
    if isinstance(value, list):
        return 1 + sum(_containers(one, depth + 1) for one in value if type(one) not in SCALARS)
    assert isinstance(value, SCALARS), type(value)
    return 0


def _agrees(found: Decoded, body: bytes) -> None:
    """What has a value has a complete list of names."""
    if found.kind == "net_binary" and found.error is None:
        assert net_binary(body).complete


def _headers(body: bytes, _body_type: int) -> None:
    reason = ""
    try:
        found = extension_headers(body)
    except BodyError as error:
        reason = str(error)
    else:
        assert all(isinstance(one, str) for pair in found.items() for one in pair)
    assert "\n" not in reason


CHECKS: dict[str, Callable[[bytes, int], None]] = {
    **dict.fromkeys(("xml", "binary", "activex", "json", "framing"), _decoded),
    "headers": _headers,
}


def run_random(name: str, seconds: float, seed: int) -> int:
    """Mutate seeds for some seconds; the number of inputs."""
    rng = random.Random(seed)
    seeds = list(SEEDS[name])
    for good in seeds:
        one_input(name, good)
    until = time.monotonic() + seconds
    count = 0
    data = rng.choice(seeds)
    while time.monotonic() < until:
        data = mutate(rng, data if rng.random() < 0.7 else rng.choice(seeds), seeds)
        one_input(name, data)
        count += 1
    return count
