"""The LDAP ping: what is asked, what answers say, and answers that lie."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.directory.ldap.ping import (
    MAX_ANSWER,
    MAX_IDENTIFIER,
    DsFlag,
    PingAnswer,
    PingError,
    decode_answer,
    encode_question,
)
from tests.support.worlds import pings

EXPECTED = PingAnswer(
    False, DsFlag(pings.FLAGS), pings.GUID, "corp.example", "corp.example", "dc1.corp.example", "CORP", "DC1",
    "", "Default-First-Site-Name", "North",
)  # fmt: skip


def test_the_question() -> None:
    """(&(DnsDomain=…)(NtVer=…)) at the rootDSE for the attribute Netlogon."""
    condition = b"\xa0\x2a" + b"".join(
        b"\xa3" + bytes((len(name) + len(value) + 4, 4, len(name))) + name + bytes((4, len(value))) + value
        for name, value in ((b"DnsDomain", b"corp.example"), (b"NtVer", b"\x06\0\0\x01"))
    )
    search = b"\x04\0\x0a\1\0\x0a\1\0\2\1\0\2\1\0\1\1\0" + condition + b"\x30\x0a\x04\x08Netlogon"
    assert encode_question(77, "corp.example") == pings.tlv(0x30, b"\2\1\x4d" + pings.tlv(0x63, search))
    assert b"DnsDomain" not in encode_question(MAX_IDENTIFIER)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("names", [pings.compressed, lambda names, at: pings.plain(names)])
def test_an_answer(wide: bool, names: object) -> None:
    assert callable(names)
    value = pings.structure(body=names(pings.NAMES, 24))
    assert decode_answer(pings.answer(7, value, wide), 7, "CORP.example") == EXPECTED
    assert decode_answer(pings.entry(7, value, "NetLogon"), 7) == EXPECTED
    assert EXPECTED.usable


def test_what_makes_a_controller_unusable() -> None:
    paused = decode_answer(pings.answer(7, pings.structure(opcode=24)), 7)
    assert (paused, paused.usable) == (replace(EXPECTED, paused=True), False)
    assert not decode_answer(pings.answer(7, pings.structure(flags=0x1F4)), 7).usable


def test_an_answer_with_the_next_site_and_an_address() -> None:
    """Further fields that were not asked for lie behind the names."""
    body = pings.compressed(pings.NAMES, 24) + bytes(17) + b"\x05South\0"
    assert decode_answer(pings.answer(7, pings.structure(body=body)), 7) == EXPECTED


HEAD = pings.structure(body=b"")[:24]
TAIL = pings.structure(body=b"")[24:]
NAMES = pings.plain(pings.NAMES)
LIES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "has no entry"),
    "another question": (pings.answer(8), "belongs to another question"),
    "no entry": (pings.done(7), "does not serve this domain"),
    "no attribute": (pings.entry(7, b"x", "other"), "does not serve this domain"),
    "another operation": (pings.tlv(0x30, pings.number(7) + b"\x42\0"), "has no entry"),
    "too long": (bytes(MAX_ANSWER + 1), "more than 4096 octets"),
    "an old form": (pings.answer(7, pings.structure(opcode=19)), "another form"),
    "an unknown user": (pings.answer(7, pings.structure(opcode=25)), "another form"),
    "too short": (pings.answer(7, HEAD), "too short"),
    "names are missing": (pings.answer(7, HEAD + b"\1a\0" + TAIL), "does not end"),
    "a label beyond the end": (pings.answer(7, HEAD + NAMES[:-6] + b"\x3fab" + TAIL), "too long"),
    "a pointer to itself": (pings.answer(7, HEAD + b"\xc0\x18" * 8 + TAIL), "prior one"),
    "a pointer forward": (pings.answer(7, HEAD + b"\xc0\x1a\0" * 8 + TAIL), "prior one"),
    "a pointer beyond the end": (pings.answer(7, HEAD + b"\xff\xff" * 8 + TAIL), "prior one"),
    "half a pointer": (pings.answer(7, HEAD + NAMES[:-7] + b"\xc0" + TAIL), "does not end"),
    "two pointers to each other": (pings.answer(7, HEAD + b"\1a\xc0\x18" + b"\0" * 7 + TAIL), "prior one"),
    "a reserved label": (pings.answer(7, HEAD + b"\x40" * 8 + TAIL), "too long"),
    "a name of 256 octets": (pings.answer(7, HEAD + b"\x3f" + b"a" * 63 + b"\x3f" + b"a" * 63 + b"\x3f"
                             + b"a" * 63 + b"\x3f" + b"a" * 63 + bytes(8) + TAIL), "too long"),
    "no UTF-8": (pings.answer(7, HEAD + b"\1\xff" + bytes(8) + TAIL), "not UTF-8"),
    "a control character": (pings.answer(7, HEAD + b"\1\n" + bytes(8) + TAIL), "no name has"),
    "a dot in a label": (pings.answer(7, HEAD + b"\1." + bytes(8) + TAIL), "no name has"),
    "indefinite lengths": (b"\x30\x80" * 900, "malformed"),
    "a length beyond the end": (b"\x30\x84\xff\xff\xff\xff", "malformed"),
    "a length of many octets": (b"\x30\xff" + b"\xff" * 127, "malformed"),
    "another domain": (pings.answer(7, pings.structure(("evil.example",) * 8)), "another domain"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_lies(lie: str) -> None:
    data, words = LIES[lie]
    with pytest.raises(PingError, match=words):
        decode_answer(data, 7, "corp.example")


LABEL = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="."),
    min_size=1,
    max_size=15,
)
NAME = st.lists(LABEL, max_size=3).map(".".join)


@given(st.lists(NAME, min_size=8, max_size=8), st.integers(1, MAX_IDENTIFIER), st.integers(0, 0xFFFF_FFFF))
def test_every_answer_is_read_as_it_was_written(names: Sequence[str], identifier: int, flags: int) -> None:
    data = pings.answer(identifier, pings.structure(names, flags=flags))
    found = decode_answer(data, identifier, names[1])
    assert (
        found.forest, found.domain, found.host, found.netbios_domain, found.netbios_computer, found.user,
        found.controller_site, found.client_site,
    ) == tuple(names)  # fmt: skip
    assert (int(found.flags), found.domain_guid) == (flags, pings.GUID)


def test_damaged_answers_are_answers_or_refused() -> None:
    """Every truncation, every change of one octet to some values, and random damage."""
    whole = pings.answer(7)
    damaged = [whole[:size] for size in range(len(whole))]
    for at in range(len(whole)):
        damaged += [whole[:at] + bytes((value,)) + whole[at + 1 :] for value in (0, 0x3F, 0x80, 0xC0, 0xFF)]
    chance = random.Random(1)
    for _ in range(1_000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        damaged.append(bytes(data))
    read = 0
    for data in damaged:
        try:
            found = decode_answer(data, 7)
        except PingError:
            continue
        read += 1
        assert all(len(name) <= 255 for name in (found.forest, found.host, found.client_site))
    assert 0 < read < len(damaged)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_octets_are_answers_or_refused(body: bytes, data: bytes) -> None:
    for one in (data, pings.answer(7, HEAD + body + TAIL), pings.answer(7, body)):
        try:
            decode_answer(one, 7)
        except PingError:
            continue
