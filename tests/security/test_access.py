"""The access check against a table and against the oracle."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msmq_fast.security.acl import Ace, AceType, Acl
from msmq_fast.security.check import Reason, access_check, grants_everybody
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.masks import MACHINE_MAPPING, QUEUE_MAPPING
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import Sid, sid
from msmq_fast.security.token import ANONYMOUS_TOKEN, EVERYONE_TOKEN, Privilege, Token
from tests.security.masks import ADMINS, ALICE, ANON, AUTH, BOB, OWNER, SIDS, STAFF, WORLD, masks, objects
from tests.security.oracle import Caller, Entry, Object, evaluate

pytestmark = pytest.mark.smoke

CALLERS = {
    "alice": Caller(frozenset((ALICE, STAFF, WORLD, AUTH))),
    "bob": Caller(frozenset((BOB, WORLD, AUTH))),
    "root": Caller(frozenset(("S-1-22-1-0", ADMINISTRATORS := ADMINS, WORLD, AUTH)), True, True),
    "anonymous": Caller(frozenset((ANON,))),
    "everyone": Caller(frozenset((WORLD,))),
}
# What is done with a queue, and the right that it takes (X-42; the numbers are those of MS-MQMQ 2.2.24).
OPERATIONS = {
    "receive": 0x3,
    "peek": 0x2,
    "send": 0x4,
    "journal": 0xA,
    "set properties": 0x10,
    "get properties": 0x20,
    "delete": 0x10000,
    "get permissions": 0x20000,
    "change permissions": 0x40000,
    "take ownership": 0x80000,
    "everything": 0xF003F,
    "generic read": 0x80000000,
    "generic write": 0x40000000,
    "generic all": 0x10000000,
    "audit list": 0x1000000,
}


def allow(mask: int, who: str, **more: object) -> Entry:
    return Entry("A", mask, who, **more)  # type: ignore[arg-type]


def deny(mask: int, who: str, **more: object) -> Entry:
    return Entry("D", mask, who, **more)  # type: ignore[arg-type]


WORKGROUP = Object(ALICE, (allow(0xF003F, WORLD), allow(0x4, ANON)))
DOMAIN_QUEUE = Object(ALICE, (allow(0x20024, WORLD), allow(0x4, ANON), allow(0xF003F, ALICE)))
READERS = Object(BOB, (deny(0x3, STAFF), allow(0x3, WORLD), allow(0x4, ALICE)))
LATE_DENY = Object(BOB, (allow(0x2, WORLD), deny(0x3, STAFF), allow(0x1, ALICE)))
EMPTY = Object(ALICE, ())
NO_LIST = Object(ALICE, None)
HANDED_ON = Object(ALICE, (allow(0x20000, OWNER), allow(0x4, WORLD)))
NO_OWNER_RIGHTS = Object(ALICE, (deny(0x40000, OWNER), allow(0xF003F, ALICE)))
INHERITING = Object(BOB, (deny(0x4, WORLD, inherit_only=True), allow(0x4, WORLD)))
GENERIC_ENTRIES = Object(BOB, (allow(0x80000000, WORLD), allow(0x10000000, STAFF)))
STEPS = Object(BOB, (allow(0x1, STAFF), allow(0x2, ALICE)))
PARTS = Object(
    BOB,
    (
        Entry("OD", 0x4, WORLD, guid="00000000-0000-0000-0000-000000000001"),
        Entry("OA", 0x4, WORLD),
        Entry("OA", 0x3, WORLD, guid="00000000-0000-0000-0000-000000000001"),
    ),
)

# descriptor, caller, operation, granted?, the entry that decides (None: none did)
TABLE: list[tuple[str, Object, str, str, bool, int | None]] = [
    ("workgroup", WORKGROUP, "alice", "receive", True, 0),
    ("workgroup", WORKGROUP, "bob", "receive", True, 0),
    ("workgroup", WORKGROUP, "bob", "everything", True, 0),
    ("workgroup", WORKGROUP, "bob", "delete", True, 0),
    ("workgroup", WORKGROUP, "everyone", "send", True, 0),
    ("workgroup", WORKGROUP, "anonymous", "send", True, 1),
    ("workgroup", WORKGROUP, "anonymous", "peek", False, None),
    ("workgroup", WORKGROUP, "anonymous", "receive", False, None),
    ("workgroup", WORKGROUP, "anonymous", "get properties", False, None),
    ("domain", DOMAIN_QUEUE, "alice", "receive", True, 2),
    ("domain", DOMAIN_QUEUE, "alice", "everything", True, 2),
    ("domain", DOMAIN_QUEUE, "bob", "send", True, 0),
    ("domain", DOMAIN_QUEUE, "bob", "get properties", True, 0),
    ("domain", DOMAIN_QUEUE, "bob", "get permissions", True, 0),
    ("domain", DOMAIN_QUEUE, "bob", "receive", False, None),
    ("domain", DOMAIN_QUEUE, "bob", "set properties", False, None),
    ("domain", DOMAIN_QUEUE, "bob", "delete", False, None),
    ("domain", DOMAIN_QUEUE, "bob", "change permissions", False, None),
    ("domain", DOMAIN_QUEUE, "bob", "generic write", True, 0),
    ("domain", DOMAIN_QUEUE, "bob", "generic read", False, None),
    ("domain", DOMAIN_QUEUE, "anonymous", "send", True, 1),
    ("domain", DOMAIN_QUEUE, "root", "receive", False, None),
    ("domain", DOMAIN_QUEUE, "root", "take ownership", True, None),
    ("domain", DOMAIN_QUEUE, "root", "audit list", True, None),
    ("domain", DOMAIN_QUEUE, "alice", "audit list", False, None),
    ("readers", READERS, "alice", "receive", False, 0),
    ("readers", READERS, "alice", "peek", False, 0),
    ("readers", READERS, "alice", "send", True, 2),
    ("readers", READERS, "bob", "receive", True, 1),
    ("readers", READERS, "bob", "journal", False, None),
    ("readers", READERS, "anonymous", "receive", False, None),
    ("late deny", LATE_DENY, "alice", "peek", True, 0),
    ("late deny", LATE_DENY, "alice", "receive", False, 1),
    ("late deny", LATE_DENY, "bob", "receive", False, None),
    ("empty", EMPTY, "alice", "get permissions", True, None),
    ("empty", EMPTY, "alice", "change permissions", True, None),
    ("empty", EMPTY, "alice", "send", False, None),
    ("empty", EMPTY, "root", "get permissions", False, None),
    ("no list", NO_LIST, "anonymous", "everything", True, None),
    ("no list", NO_LIST, "bob", "generic all", True, None),
    ("owner rights", HANDED_ON, "alice", "get permissions", True, 0),
    ("owner rights", HANDED_ON, "alice", "change permissions", False, None),
    ("owner rights", HANDED_ON, "bob", "get permissions", False, None),
    ("owner denied", NO_OWNER_RIGHTS, "alice", "change permissions", False, 0),
    ("owner denied", NO_OWNER_RIGHTS, "alice", "delete", True, 1),
    ("inherit only", INHERITING, "bob", "send", True, 1),
    ("generic", GENERIC_ENTRIES, "bob", "receive", True, 0),
    ("generic", GENERIC_ENTRIES, "bob", "send", False, None),
    ("generic", GENERIC_ENTRIES, "alice", "generic all", True, 1),
    ("steps", STEPS, "alice", "receive", True, 1),
    ("steps", STEPS, "bob", "receive", False, None),
    ("parts", PARTS, "bob", "send", True, 1),
    ("parts", PARTS, "bob", "receive", False, None),
]


def token(caller: Caller) -> Token:
    sids = frozenset(sid(text) for text in caller.sids)
    privileges = Privilege.NONE
    privileges |= Privilege.SECURITY if caller.security_privilege else Privilege.NONE
    privileges |= Privilege.TAKE_OWNERSHIP if caller.ownership_privilege else Privilege.NONE
    return Token(sid(min(caller.sids)), sids, privileges=privileges)


def test_the_table_is_long_enough() -> None:
    assert len({row[:4] for row in TABLE}) == len(TABLE) >= 40


@pytest.mark.rule("X-41")
@pytest.mark.parametrize(
    ("name", "target", "caller", "operation", "granted", "entry"),
    TABLE,
    ids=[f"{name}: {caller}, {operation}" for name, _, caller, operation, _, _ in TABLE],
)
def test_table(
    name: str, target: Object, caller: str, operation: str, granted: bool, entry: int | None
) -> None:
    desired = OPERATIONS[operation]
    # What stands in the table, what the oracle says and what the package says are one.
    assert evaluate(CALLERS[caller], target, desired)[::2] == (granted, entry)
    descriptor = SecurityDescriptor.from_bytes(parse_sddl(target.sddl()).encoded)
    decision = access_check(token(CALLERS[caller]), descriptor, desired, QUEUE_MAPPING)
    assert (decision.granted, decision.index) == (granted, entry)
    assert bool(decision.missing) is not granted
    if entry is not None:
        assert decision.entry is not None
        assert decision.reason is Reason.ENTRY
        assert target.entries is not None
        assert str(decision.entry.sid) == target.entries[entry].sid


callers = st.builds(
    Caller,
    sids=st.frozensets(st.sampled_from(SIDS[:7]), min_size=1),
    security_privilege=st.booleans(),
    ownership_privilege=st.booleans(),
)
requests = st.builds(
    lambda mask, extra: mask | extra, masks, st.sampled_from((0, 0, 0, 0x1000000, 0x2000000, 0x3000000))
)


@pytest.mark.rule("X-41")
@settings(max_examples=400, deadline=None)
@given(callers, objects, requests)
@example(CALLERS["alice"], Object(ALICE, ()), 0x2000000)
@example(CALLERS["bob"], Object(ALICE, None), 0x2000000)
def test_against_the_oracle(caller: Caller, target: Object, desired: int) -> None:
    decision = access_check(token(caller), parse_sddl(target.sddl()), desired, QUEUE_MAPPING)
    granted, access, entry = evaluate(caller, target, desired)
    assert decision.granted is granted
    assert decision.access == (access if granted else 0)
    assert decision.index == entry


@settings(max_examples=200, deadline=None)
@given(objects, st.sampled_from((0x1, 0x2, 0x4, 0x20)), callers)
def test_what_everybody_may_any_caller_may(target: Object, right: int, caller: Caller) -> None:
    """The shortcut of deliveries: it may say no too often, never yes too often."""
    if grants_everybody(parse_sddl(target.sddl()), right, QUEUE_MAPPING):
        sids = caller.sids if caller.sids == {ANON} else caller.sids | {WORLD}
        assert evaluate(Caller(sids), target, right)[0]
        assert evaluate(CALLERS["anonymous"], target, right)[0]


def test_the_shortcut_is_taken() -> None:
    assert grants_everybody(parse_sddl(WORKGROUP.sddl()), 0x4, QUEUE_MAPPING)
    assert grants_everybody(parse_sddl(NO_LIST.sddl()), 0x4, QUEUE_MAPPING)
    assert not grants_everybody(parse_sddl(WORKGROUP.sddl()), 0x2, QUEUE_MAPPING)
    assert not grants_everybody(parse_sddl(READERS.sddl()), 0x4, QUEUE_MAPPING)


@pytest.mark.rule("X-45")
def test_anonymous_is_not_a_member_of_everyone() -> None:
    everyone = parse_sddl("D:(A;;0xf003f;;;WD)")
    assert access_check(EVERYONE_TOKEN, everyone, 0x4, QUEUE_MAPPING).granted
    assert not access_check(ANONYMOUS_TOKEN, everyone, 0x4, QUEUE_MAPPING).granted
    assert access_check(ANONYMOUS_TOKEN, parse_sddl("D:(A;;0x4;;;AN)"), 0x4, QUEUE_MAPPING).granted


def test_conditional_entries_deny_and_never_grant() -> None:
    """Nobody evaluates their conditions, so they must not open anything."""

    def conditional(type_: AceType, who: Sid) -> Ace:
        body = (0x4).to_bytes(4, "little") + who.data + b"artx\0\0\0\0"
        return Ace.opaque(type_, 0, body)

    everyone = sid(WORLD)
    plain = Ace.build(AceType.ACCESS_ALLOWED, 0x4, everyone)
    allowed = SecurityDescriptor.build(
        None, None, Acl((conditional(AceType.ACCESS_ALLOWED_CALLBACK, everyone),))
    )
    assert not access_check(EVERYONE_TOKEN, allowed, 0x4, QUEUE_MAPPING).granted
    denied = SecurityDescriptor.build(
        None, None, Acl((conditional(AceType.ACCESS_DENIED_CALLBACK, everyone), plain))
    )
    assert access_check(EVERYONE_TOKEN, denied, 0x4, QUEUE_MAPPING).index == 0
    unknown = SecurityDescriptor.build(None, None, Acl((Ace.opaque(0x66, 0, plain.data[4:]), plain)))
    assert access_check(EVERYONE_TOKEN, unknown, 0x4, QUEUE_MAPPING).index == 1


def test_generic_rights_mean_something_else_for_the_machine() -> None:
    machine = parse_sddl("D:(A;;GR;;;WD)")
    assert access_check(EVERYONE_TOKEN, machine, 0x80, MACHINE_MAPPING).granted
    assert not access_check(EVERYONE_TOKEN, machine, 0x80, QUEUE_MAPPING).granted
