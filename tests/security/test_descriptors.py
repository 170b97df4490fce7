"""Descriptors as bytes and as text."""

from __future__ import annotations

import contextlib
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.security.acl import Ace, AceType, Acl
from msmq_fast.security.descriptor import MAX_DESCRIPTOR, Control, SecurityDescriptor
from msmq_fast.security.errors import SddlError, SecurityDataError
from msmq_fast.security.sddl import parse_sddl, parse_sid, to_sddl
from msmq_fast.security.sid import Sid, sid

# The example of MS-DTYP 2.5.1.4.
EXAMPLE_TEXT = (
    "O:BAG:BAD:P(A;CIOI;GRGX;;;BU)(A;CIOI;GA;;;BA)(A;CIOI;GA;;;SY)(A;CIOI;GA;;;CO)S:P(AU;FA;GR;;;WD)"
)
EXAMPLE = bytes.fromhex(
    """
    01 00 14 b0 90 00 00 00 a0 00 00 00 14 00 00 00
    30 00 00 00 02 00 1c 00 01 00 00 00 02 80 14 00
    00 00 00 80 01 01 00 00 00 00 00 01 00 00 00 00
    02 00 60 00 04 00 00 00 00 03 18 00 00 00 00 a0
    01 02 00 00 00 00 00 05 20 00 00 00 21 02 00 00
    00 03 18 00 00 00 00 10 01 02 00 00 00 00 00 05
    20 00 00 00 20 02 00 00 00 03 14 00 00 00 00 10
    01 01 00 00 00 00 00 05 12 00 00 00 00 03 14 00
    00 00 00 10 01 01 00 00 00 00 00 03 00 00 00 00
    01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00
    01 02 00 00 00 00 00 05 20 00 00 00 20 02 00 00
    """
)

# By hand, field by field: a descriptor with the owner first, as other writers lay it out.
ALICE = bytes.fromhex("010500000000000515000000010000000200000003000000e8030000")
OWNER_FIRST = (
    struct.pack("<BBHIIII", 1, 0, 0x8004, 20, 0, 0, 48)
    + ALICE
    + struct.pack("<BBHHH", 2, 0, 8 + 20 + 36, 2, 0)
    + struct.pack("<BBHI", 1, 0, 20, 0x3)
    + bytes.fromhex("010100000000000507000000")
    + struct.pack("<BBHI", 0, 0, 36, 0xF003F)
    + ALICE
)


def test_published_example() -> None:
    assert parse_sddl(EXAMPLE_TEXT).encoded == EXAMPLE
    parsed = SecurityDescriptor.from_bytes(EXAMPLE)
    assert parsed == parse_sddl(EXAMPLE_TEXT)
    assert parsed.encoded == EXAMPLE
    # Flags and rights have no fixed order; everything else is the text of the example.
    assert to_sddl(parsed) == EXAMPLE_TEXT.replace("CIOI", "OICI").replace("GRGX", "GXGR")


def test_another_layout() -> None:
    parsed = SecurityDescriptor.from_bytes(OWNER_FIRST)
    assert to_sddl(parsed) == (
        "O:S-1-5-21-1-2-3-1000D:(D;;CCDC;;;AN)(A;;CCDCLCSWRPWPSDRCWDWO;;;S-1-5-21-1-2-3-1000)"
    )
    assert SecurityDescriptor.from_bytes(parsed.encoded) == parsed
    assert parsed.dacl is not None
    assert parsed.dacl.encode() == OWNER_FIRST[48:]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("S-1-1-0", "010100000000000100000000"),
        ("S-1-5-7", "010100000000000507000000"),
        ("S-1-5-32-544", "01020000000000052000000020020000"),
        ("S-1-5-21-1-2-3-1000", ALICE.hex()),
        ("S-1-22-1-1000", "010200000000001601000000e8030000"),
        ("S-1-0x123456789ABC-1", "0101123456789abc01000000"),
        ("S-1-5-4294967295", "0101000000000005ffffffff"),
    ],
)
def test_sids(text: str, data: str) -> None:
    assert sid(text).data.hex() == data
    assert str(Sid.from_bytes(bytes.fromhex(data))) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "S-1",
        "S-1-5",
        "S-2-5-7",
        "S-1-5-",
        "S-1-5-4294967296",
        "S-1-5-x",
        "S-1-5-7 ",
        "S-1-281474976710656-1",
        "S-1-5" + "-1" * 16,
    ],
)
def test_not_sids(text: str) -> None:
    with pytest.raises(SecurityDataError):
        sid(text)


@pytest.mark.parametrize(
    "data", [b"", ALICE[:-1], ALICE + b"\0", b"\2" + ALICE[1:], b"\1\x10" + bytes(6 + 64)]
)
def test_not_wire_sids(data: bytes) -> None:
    with pytest.raises(SecurityDataError):
        Sid.from_bytes(data)


def test_entries_of_unknown_types_are_kept() -> None:
    strange = struct.pack("<BBH", 0x7F, 0x20, 12) + b"whatever"
    conditional = (
        struct.pack("<BBHI", 9, 0, 28, 4) + bytes.fromhex("010100000000000100000000") + b"artx\1\2\3\4"
    )
    roomy = struct.pack("<BBHI", 0, 0, 28, 4) + bytes.fromhex("010100000000000100000000") + b"\xee" * 8
    body = strange + conditional + roomy
    dacl = struct.pack("<BBHHH", 2, 7, 8 + len(body) + 12, 3, 9) + body + b"\xdd" * 12
    data = struct.pack("<BBHIIII", 1, 0x55, 0xC404, 0, 0, 0, 20) + dacl
    parsed = SecurityDescriptor.from_bytes(data)
    assert parsed.encoded == data
    assert parsed.dacl is not None
    assert [ace.mask for ace in parsed.dacl.aces] == [0, 4, 4]
    # Text keeps the entries as well, although the language has no words for them.
    again = parse_sddl(to_sddl(parsed))
    assert again.dacl is not None
    assert again.dacl.aces == parsed.dacl.aces


@pytest.mark.parametrize(
    ("text", "present"), [("", False), ("D:", True), ("D:NO_ACCESS_CONTROL", True), ("O:BA", False)]
)
def test_absent_null_and_empty_lists(text: str, present: bool) -> None:
    parsed = parse_sddl(text)
    assert parsed.dacl_present is present
    assert (parsed.dacl is not None) is (text == "D:")
    assert SecurityDescriptor.from_bytes(parsed.encoded) == parsed
    assert to_sddl(parsed) == text


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("CC", 1), ("CCDC", 3), ("LC", 4), ("0x2B", 0x2B), ("043", 0o43), ("43", 43), ("KA", 0xF003F),
        ("GA", 0x10000000), ("", 0), ("0", 0), ("WOWDRCSD", 0xF0000),
    ],
)  # fmt: skip
def test_rights(text: str, mask: int) -> None:
    parsed = parse_sddl(f"D:(A;;{text};;;WD)")
    assert parsed.dacl is not None
    assert parsed.dacl.aces[0].mask == mask


def test_names_of_sids() -> None:
    domain = sid("S-1-5-21-1-2-3")
    assert str(parse_sid("DA", domain)) == "S-1-5-21-1-2-3-512"
    assert str(parse_sid("AN")) == "S-1-5-7"
    with pytest.raises(SddlError, match="domain"):
        parse_sid("DU")


@pytest.mark.parametrize(
    "text",
    [
        "X:BA", "O:BAO:BA", "O:", "O:nobody", "D:(A;;CC;;;WD", "D:(A;;CC;;WD)", "D:(Q;;CC;;;WD)",
        "D:(A;XX;CC;;;WD)",
        "D:(A;;XX;;;WD)", "D:(A;;C;;;WD)", "D:(A;;0x1FFFFFFFF;;;WD)", "D:(A;;09;;;WD)", "D:(A;;CC;;;)", "D:A",
        "D:(OA;;CC;12;;WD)", "D:(A;;CC;00000000-0000-0000-0000-000000000001;;WD)", "D:(0x00;0x00;00)", "D:()",
        "D:(0x7F;0x00;00112233445)", "D:NO_ACCESS_CONTROL(A;;CC;;;WD)", "D:P)", "O:BA junk",
        "D:" + "(A;;CC;;;WD)" * 3500,
    ],
)  # fmt: skip
def test_not_descriptors(text: str) -> None:
    with pytest.raises(SddlError):
        parse_sddl(text)


def damaged(**fields: int) -> bytes:
    values = {"revision": 1, "control": 0x8004, "owner": 20, "group": 0, "sacl": 0, "dacl": 48} | fields
    return (
        struct.pack(
            "<BBHIIII",
            values["revision"],
            0,
            *(values[key] for key in ("control", "owner", "group", "sacl", "dacl")),
        )
        + OWNER_FIRST[20:]
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        OWNER_FIRST[:19],
        OWNER_FIRST[:-1],
        damaged(revision=2),
        damaged(control=0x0004),
        damaged(owner=19),
        damaged(owner=0xFFFFFFFF),
        damaged(owner=len(OWNER_FIRST) - 4),
        damaged(dacl=len(OWNER_FIRST) - 4),
        damaged(dacl=4),
        damaged(control=0x8014, sacl=21),
        OWNER_FIRST[:50] + b"\7\0" + OWNER_FIRST[52:],  # AclSize below its header
        OWNER_FIRST[:50] + b"\x41\0" + OWNER_FIRST[52:],  # AclSize above what is there
        OWNER_FIRST[:52] + b"\3\0" + OWNER_FIRST[54:],  # one entry too many
        OWNER_FIRST[:58] + b"\0\0" + OWNER_FIRST[60:],  # AceSize 0
        OWNER_FIRST[:58] + b"\x13\0" + OWNER_FIRST[60:],  # AceSize no multiple of 4
        OWNER_FIRST[:58] + b"\xfc\xff" + OWNER_FIRST[60:],  # AceSize far too large
        OWNER_FIRST[:58] + b"\x08\0" + OWNER_FIRST[60:],  # no room for the SID
        OWNER_FIRST + bytes(MAX_DESCRIPTOR),
    ],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(SecurityDataError):
        SecurityDescriptor.from_bytes(data)


SIDS = st.builds(
    lambda authority, subs: Sid.build(authority, *subs),
    st.integers(0, (1 << 48) - 1),
    st.lists(st.integers(0, 0xFFFFFFFF), min_size=1, max_size=15),
)
ACES = st.builds(
    Ace.build,
    st.sampled_from((0, 1, 2, 3, 0x11, 0x13)),
    st.integers(0, 0xFFFFFFFF),
    SIDS,
    st.integers(0, 255),
) | st.builds(
    Ace.build,
    st.sampled_from((5, 6, 7, 8)),
    st.integers(0, 0xFFFFFFFF),
    SIDS,
    st.integers(0, 255),
    st.none() | st.binary(min_size=16, max_size=16),
    st.none() | st.binary(min_size=16, max_size=16),
)


@settings(max_examples=200, deadline=None)
@given(st.none() | SIDS, st.none() | SIDS, st.none() | st.lists(ACES, max_size=6).map(tuple), st.booleans())
def test_round_trip(
    owner: Sid | None, group: Sid | None, aces: tuple[Ace, ...] | None, protected: bool
) -> None:
    acl = None
    if aces is not None:
        acl = Acl(aces, 4 if any(ace.is_object for ace in aces) else 2)
    control = int(Control.DACL_PROTECTED) if protected and acl is not None else 0
    descriptor = SecurityDescriptor(owner, group, acl, None, control, dacl_present=acl is not None)
    assert SecurityDescriptor.from_bytes(descriptor.encoded) == descriptor
    assert parse_sddl(to_sddl(descriptor)) == descriptor


def test_fuzz() -> None:
    """Whatever the bytes: a descriptor that encodes and parses again to itself, or a clear error."""
    chance = random.Random(11)
    taken = 0
    for _ in range(4000):
        data = bytearray(chance.choice((EXAMPLE, OWNER_FIRST)))
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 2, 4, 0x7F, 0xFF, chance.randrange(256)))
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        with contextlib.suppress(SecurityDataError):
            parsed = SecurityDescriptor.from_bytes(bytes(data))
            assert SecurityDescriptor.from_bytes(parsed.encoded) == parsed
            to_sddl(parsed)
            taken += 1
    assert 100 < taken < 3900


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="OGDS:();AUXZ0x12FWDBACN- \x00é", max_size=60))
def test_fuzz_text(text: str) -> None:
    with contextlib.suppress(SddlError):
        parsed = parse_sddl(text)
        assert parse_sddl(to_sddl(parsed)) == parsed


def test_lists_that_are_too_large() -> None:
    ace = Ace.build(AceType.ACCESS_ALLOWED, 4, sid("S-1-1-0"))
    with pytest.raises(SecurityDataError):
        _ = SecurityDescriptor.build(None, None, Acl((ace,) * 4000)).encoded
