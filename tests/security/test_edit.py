"""Changes to lists: what they do to decisions, and what they leave alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from msmq_fast.security.check import access_check
from msmq_fast.security.edit import deny, grant, merge, needed_to_change, revoke
from msmq_fast.security.masks import QUEUE_MAPPING
from msmq_fast.security.sddl import parse_sddl, to_sddl
from msmq_fast.security.sid import ANONYMOUS, EVERYONE, sid
from msmq_fast.security.token import Token
from tests.security.masks import ALICE, BOB, masks, objects
from tests.security.oracle import Object

ALICE_SID = sid(ALICE)
ONLY_ALICE = Token(ALICE_SID, frozenset((ALICE_SID,)))
M = QUEUE_MAPPING
ALL = "CCDCLCSWRPWPSDRCWDWO"


@pytest.mark.parametrize(
    ("before", "edit", "mask", "after"),
    [
        ("D:(A;;LC;;;WD)", grant, 0x2, f"D:(A;;LC;;;WD)(A;;DC;;;{ALICE})"),
        (f"D:(A;;LC;;;{ALICE})", grant, 0x2, f"D:(A;;DCLC;;;{ALICE})"),
        (f"D:(D;;DCLC;;;{ALICE})", grant, 0x2, f"D:(D;;LC;;;{ALICE})(A;;DC;;;{ALICE})"),
        (f"D:(D;;DC;;;{ALICE})(A;;DC;;;WD)", grant, 0x2, f"D:(A;;DC;;;WD)(A;;DC;;;{ALICE})"),
        ("D:(A;ID;LC;;;WD)", grant, 0x2, f"D:(A;;DC;;;{ALICE})(A;ID;LC;;;WD)"),
        ("D:(D;;CC;;;AN)(A;;LC;;;WD)", deny, 0x4, f"D:(D;;CC;;;AN)(D;;LC;;;{ALICE})(A;;LC;;;WD)"),
        (f"D:(A;;DCLC;;;{ALICE})", deny, 0x4, f"D:(D;;LC;;;{ALICE})(A;;DC;;;{ALICE})"),
        (
            f"D:(A;;LC;;;WD)(D;;CC;;;{ALICE})",
            deny,
            0x4,
            f"D:(D;;LC;;;{ALICE})(A;;LC;;;WD)(D;;CC;;;{ALICE})",
        ),
        (f"D:(D;;DC;;;{ALICE})(A;;KA;;;{ALICE})", revoke, 0x0FFFFFFF, "D:"),
        (f"D:(A;;DCLC;;;{ALICE})(A;;KA;;;{BOB})", revoke, 0x2, f"D:(A;;LC;;;{ALICE})(A;;{ALL};;;{BOB})"),
        (f"D:(A;ID;DC;;;{ALICE})", revoke, 0x2, f"D:(A;ID;DC;;;{ALICE})"),
        (f"D:(A;;GR;;;{ALICE})", revoke, 0x2, f"D:(A;;CCSWWPRC;;;{ALICE})"),
        ("O:BA", deny, 0x4, f"O:BAD:(D;;LC;;;{ALICE})(A;;{ALL};;;WD)(A;;{ALL};;;AN)"),
        ("D:P(0x7F;0x00;01020304)", grant, 0x4, f"D:P(0x7F;0x00;01020304)(A;;LC;;;{ALICE})"),
    ],
)  # fmt: skip
def test_edits(before: str, edit: object, mask: int, after: str) -> None:
    assert to_sddl(edit(parse_sddl(before), ALICE_SID, mask, M)) == after  # type: ignore[operator]


@settings(max_examples=150, deadline=None)
@given(objects, masks.filter(bool))
def test_a_denial_holds_and_a_grant_gives(target: Object, mask: int) -> None:
    """Whatever the list was: who is denied by name is refused; others' decisions never widen by it."""
    before = parse_sddl(target.sddl())
    denied = deny(before, ALICE_SID, mask, M)
    bit = M.map(mask) & -M.map(mask)
    if bit and before.owner != ALICE_SID:
        assert not access_check(ONLY_ALICE, denied, bit, M).granted
    for who in (EVERYONE, ANONYMOUS, sid(BOB)):
        other = Token(who, frozenset((who,) if who == ANONYMOUS else (who, EVERYONE)))
        assert access_check(other, denied, mask, M).granted == access_check(other, before, mask, M).granted
    plain = parse_sddl("O:BAD:(A;;LC;;;WD)")
    granted = grant(deny(plain, ALICE_SID, mask, M), ALICE_SID, mask, M)
    assert access_check(ONLY_ALICE, granted, mask, M).granted
    assert to_sddl(revoke(granted, ALICE_SID, 0x0FFFFFFF, M)) == to_sddl(plain)


OLD = "O:BAG:SYD:P(A;;LC;;;WD)S:(AU;FA;LC;;;WD)"


@pytest.mark.parametrize(
    ("given", "result", "needed"),
    [
        ("O:BU", "O:BUG:SYD:P(A;;LC;;;WD)S:(AU;FA;LC;;;WD)", 0x80000),
        ("G:BU", "O:BAG:BUD:P(A;;LC;;;WD)S:(AU;FA;LC;;;WD)", 0x80000),
        ("D:(A;;DC;;;WD)", "O:BAG:SYD:(A;;DC;;;WD)S:(AU;FA;LC;;;WD)", 0x40000),
        ("D:AI", "O:BAG:SYD:AIS:(AU;FA;LC;;;WD)", 0x40000),
        ("D:NO_ACCESS_CONTROL", "O:BAG:SYD:NO_ACCESS_CONTROLS:(AU;FA;LC;;;WD)", 0x40000),
        ("S:", "O:BAG:SYD:P(A;;LC;;;WD)S:", 0x1000000),
        ("O:BUD:", "O:BUG:SYD:S:(AU;FA;LC;;;WD)", 0xC0000),
        (OLD, OLD, 0),
    ],
)
def test_parts_replace_parts(given: str, result: str, needed: int) -> None:
    old = parse_sddl(OLD)
    new = merge(old, parse_sddl(given))
    assert to_sddl(new) == result
    assert needed_to_change(old, new) == needed
