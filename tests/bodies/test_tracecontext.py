"""Trace contexts: read from all places, written in our own format, and derived from identifiers."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.bodies.tracecontext import (
    TraceContext,
    carried_context,
    chosen,
    creation_context,
    derived_context,
    is_own_extension,
    parse_traceparent,
)

TRACE, SPAN = bytes.fromhex("0af7651916cd43dd8448eb211c80319c"), bytes.fromhex("b7ad6b7169203331")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NSERVICEBUS = '<?xml version="1.0"?><ArrayOfHeaderInfo>{}</ArrayOfHeaderInfo>'
ITEM = "<HeaderInfo><Key>{}</Key><Value>{}</Value></HeaderInfo>"


def nservicebus(**headers: str) -> str:
    return NSERVICEBUS.format(
        "".join(ITEM.format(name.replace("_", "."), text) for name, text in headers.items())
    )


@pytest.mark.parametrize(
    "extension",
    [
        TraceContext(TRACE, SPAN, True).to_extension(),
        nservicebus(other="1", traceparent=PARENT).encode(),
        nservicebus(traceparent=PARENT).encode("utf-16"),
        nservicebus(
            NServiceBus_TraceParent=PARENT, traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-00"
        ).encode(),
        json.dumps({"rbs2-msg-id": "1", "traceparent": PARENT}).encode(),
        json.dumps({"rbs-ot-tracestate": PARENT}).encode() + b"\0\0",
    ],
    ids=["own", "nservicebus", "nservicebus-utf16", "nservicebus-own-header", "rebus", "rebus-diagnostics"],
)
def test_a_context_is_read_from_every_place(extension: bytes) -> None:
    assert carried_context(extension) == TraceContext(TRACE, SPAN, True)
    assert creation_context(bytes(20), extension).traceparent == PARENT


def test_the_state_comes_along() -> None:
    headers = json.dumps({"traceparent": PARENT, "tracestate": "a=1,b=2"}).encode()
    assert carried_context(headers) == TraceContext(TRACE, SPAN, True, "a=1,b=2")
    own = TraceContext(TRACE, SPAN, False, "a=1")
    assert carried_context(own.to_extension()) == own


@pytest.mark.parametrize(
    "extension",
    [
        b"",
        b"MQTC",
        b"MQTC\x02" + bytes(40),
        b"trace",
        b"<traceparent",
        json.dumps({"traceparent": "00-zz"}).encode(),
        json.dumps({"traceparent": "00-" + "0" * 32 + "-b7ad6b7169203331-01"}).encode(),
        json.dumps({"trace": "x"}).encode(),
    ],
)
def test_anything_else_is_no_context(extension: bytes) -> None:
    assert carried_context(extension) is None


@given(st.binary(max_size=200))
def test_no_extension_raises(extension: bytes) -> None:
    carried_context(extension)
    carried_context(b"MQTC\x01" + extension)


@given(
    st.binary(min_size=16, max_size=16).filter(any),
    st.binary(min_size=8, max_size=8).filter(any),
    st.booleans(),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=512),
)
def test_what_is_written_is_read_even_without_its_last_zeros(
    trace: bytes, span: bytes, sampled: bool, state: str
) -> None:
    written = TraceContext(trace, span, sampled, state)
    extension = written.to_extension()
    assert is_own_extension(extension)
    assert carried_context(extension.rstrip(b"\0")) == written
    assert parse_traceparent(written.traceparent, state) == written


def test_a_traceparent_is_read_as_the_specification_says() -> None:
    assert parse_traceparent(PARENT[:-2] + "00") == TraceContext(TRACE, SPAN)
    assert parse_traceparent("01" + PARENT[2:] + "-later") == TraceContext(TRACE, SPAN, True)
    assert parse_traceparent(PARENT + "-more") is None  # version 00 has no more
    assert parse_traceparent("ff" + PARENT[2:]) is None
    assert parse_traceparent(PARENT.upper()) is None
    found = parse_traceparent(PARENT, "x" * 600)
    assert found is not None
    assert found.state == ""


def test_every_program_derives_the_same_context() -> None:
    message_id = bytes(range(20))
    digest = sha256(message_id).digest()
    assert derived_context(message_id) == TraceContext(digest[:16], digest[16:24])
    assert creation_context(message_id, b"foreign") == derived_context(message_id)


def test_a_ratio_chooses_its_share() -> None:
    ordinals = range(5_000_000, 5_004_000)
    for ratio in (0.0, 0.01, 0.25, 1.0):
        assert len(chosen(ordinals, ratio)) / len(ordinals) == pytest.approx(ratio, abs=0.002)
    assert set(chosen(ordinals, 0.01)) < set(chosen(ordinals, 0.25))  # a larger share has the smaller one
