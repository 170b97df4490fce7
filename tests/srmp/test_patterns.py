"""Envelopes that are read without the parser say what the parser says, or are left to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.srmp.model import Envelope
from msmq_fast.srmp.patterns import MOST_PATTERNS, EnvelopePatterns, Pattern
from msmq_fast.srmp.reading import MAX_LABEL, read_envelope
from msmq_fast.srmp.values import Nonconforming
from msmq_fast.srmp.writing import write_envelope
from tests.srmp.envelopes import DATES, IDS, LABELS, envelopes
from tests.support.srmp.texts import ACTION, GUID, TO, envelope, full, path, properties, stream

IDENTIFIER, OTHER = f"uuid:20503@{GUID}", f"uuid:920503@{GUID}"


def outcome(read: Callable[[bytes], Envelope], xml: bytes) -> Envelope | None:
    """What is read; None: it does not conform."""
    try:
        return read(xml)
    except Nonconforming:
        return None


def learnt(first: bytes) -> Pattern:
    pattern = Pattern.of(first, read_envelope(first))
    assert pattern is not None
    return pattern


def changed(xml: bytes) -> bytes:
    """Another message of the same sender."""
    return xml.replace(IDENTIFIER.encode(), OTHER.encode())


@pytest.mark.parametrize("xml", [full(), envelope(), b'<?xml version="1.0"?>' + full()])
def test_the_next_message_of_a_sender_needs_no_parser(xml: bytes) -> None:
    pattern = learnt(xml)
    assert pattern.read(xml) == read_envelope(xml)
    assert pattern.read(changed(xml)) == read_envelope(changed(xml))
    assert read_envelope(changed(xml)).id == OTHER


@settings(max_examples=300, deadline=None)
@given(
    first=envelopes(),
    receipts=st.booleans(),
    action=LABELS.map("MSMQ:{}".format),
    identifier=IDS | LABELS,
    expires=DATES,
    sent=DATES,
    ttrq=DATES,
    seed=st.integers(0, 2**32),
)
def test_a_pattern_reads_what_the_parser_reads(
    first: Envelope,
    receipts: bool,
    action: str,
    identifier: str,
    expires: int,
    sent: int,
    ttrq: int,
    seed: int,
) -> None:
    if not receipts:
        first = replace(
            first, delivery_receipt=None, commitment_receipt=None, stream_receipt=None, stream=None
        )
    one = write_envelope(first)
    senders = EnvelopePatterns()
    assert outcome(lambda xml: senders.read(xml, 1), one) == outcome(read_envelope, one)
    second = replace(first, action=action, id=identifier, expires_at=expires)
    if first.sent_at is not None:
        second = replace(second, sent_at=sent)
    if first.msmq is not None:
        second = replace(second, msmq=replace(first.msmq, ttrq=ttrq))
    two = write_envelope(second)
    random = Random(seed)
    for text in (two, mutated(two, random), mutated(one, random)):
        assert outcome(lambda xml: senders.read(xml, 1), text) == outcome(read_envelope, text)


def mutated(xml: bytes, random: Random) -> bytes:
    """One byte, or one piece, is another one."""
    at = random.randrange(len(xml))
    piece = random.choice(
        (b"", b"<", b">", b"&", b"x", b"&#65;", b"<!--a-->", b"</id>", b"<id/>", b" ", b'"')
    )
    return xml[:at] + piece + xml[at + random.randrange(3) :]


ALIEN = '<x:a xmlns:x="x">{}</x:a>'


@pytest.mark.parametrize(
    "xml",
    [
        full().replace(b"uuid:", b"&#117;uid:"),
        full() + b"<!-- > -->",
        full().replace(b"<action>", b'<action a=">">'),
        full().replace(b"MSMQ:hello", b"<![CDATA[MSMQ:hello]]>"),
        full().replace(b"</Msmq>", b"<?php x?></Msmq>"),
        full(stream()),
        full(ALIEN.format("<x:id>1</x:id>")),
        full(ALIEN.format("<x:sentAt/>")),
        envelope(path(ACTION + TO + "<id/>"), properties(), ALIEN.format("<x:id></x:id>")),
        full().replace(b"uuid:", b"\nuuid:"),
    ],
)
def test_what_makes_no_pattern(xml: bytes) -> None:
    read = outcome(read_envelope, xml)
    assert read is None or Pattern.of(xml, read) is None


@pytest.mark.parametrize("text", ["uuid:1", "{} ", "{}<x/>", "&#117;{}", "<![CDATA[{}]]>", "é", "]]>"])
def test_another_text_is_left_to_the_parser(text: str) -> None:
    pattern = learnt(full())
    other = text.format(IDENTIFIER)
    assert pattern.read(full().replace(IDENTIFIER.encode(), other.encode())) is None


def test_a_label_that_is_too_long_is_left_to_the_parser() -> None:
    pattern = learnt(full())
    longest, longer = (full().replace(b"hello", b"l" * size) for size in (MAX_LABEL, MAX_LABEL + 1))
    assert pattern.read(longest) == read_envelope(longest)
    assert pattern.read(longer) is None


def test_where_patterns_never_help_few_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def of(xml: bytes, envelope: Envelope) -> None:
        made.append(xml)

    monkeypatch.setattr(Pattern, "of", of)
    senders = EnvelopePatterns()
    for _ in range(100):
        senders.read(full(), 1)
    assert len(made) == 7


def test_senders_are_bounded() -> None:
    senders = EnvelopePatterns()
    for key in range(3 * MOST_PATTERNS):
        senders.read(full(), key)
        assert len(senders._senders) <= MOST_PATTERNS
