"""The default descriptors of objects."""

from __future__ import annotations

import pytest

from msmq_fast.security.check import access_check
from msmq_fast.security.defaults import DefaultAcl, DefaultPolicy, machine_descriptor, queue_descriptor
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.masks import MACHINE_MAPPING, QUEUE_MAPPING
from msmq_fast.security.sddl import parse_sddl, to_sddl
from msmq_fast.security.sid import ADMINISTRATORS, ANONYMOUS, EVERYONE, Sid, sid
from msmq_fast.security.token import ANONYMOUS_TOKEN, EVERYONE_TOKEN, Token

DOMAIN = sid("S-1-5-21-7-8-9")
USER, LOCAL, GUEST = DOMAIN.child(1000), sid("S-1-5-21-1-2-3-1000"), DOMAIN.child(501)
MACHINE = DOMAIN.child(1105)
ALL, LOOK = "CCDCLCSWRPWPSDRCWDWO", "WPRC"


def caller(account: Sid, group: Sid | None = None) -> Token:
    return Token(account, frozenset((account, EVERYONE)), "somebody", group)


def policy(**values: object) -> DefaultPolicy:
    return DefaultPolicy(is_domain_user=lambda account: account.within(DOMAIN), **values)  # type: ignore[arg-type]


# domain user?, the computer has a SID?, reachable by SRMP? -> the list
TRUTH = [
    (False, False, False, f"(A;;{ALL};;;WD)"),
    (False, False, True, f"(A;;{ALL};;;WD)(A;;LC;;;AN)"),
    (False, True, False, f"(A;;{ALL};;;WD)(A;;{LOOK};;;{MACHINE})"),
    (False, True, True, f"(A;;{ALL};;;WD)(A;;LC;;;AN)(A;;{LOOK};;;{MACHINE})"),
    (True, False, False, f"(A;;{LOOK};;;WD)(A;;{ALL};;;{USER})"),
    (True, False, True, f"(A;;LC{LOOK};;;WD)(A;;LC;;;AN)(A;;{ALL};;;{USER})"),
    (True, True, False, f"(A;;{LOOK};;;WD)(A;;{LOOK};;;{MACHINE})(A;;{ALL};;;{USER})"),
    (True, True, True, f"(A;;LC{LOOK};;;WD)(A;;LC;;;AN)(A;;{LOOK};;;{MACHINE})(A;;{ALL};;;{USER})"),
]


@pytest.mark.rule("DM-048", "DM-049", "X-40")
@pytest.mark.parametrize(("domain_user", "machine", "srmp", "expected"), TRUTH)
def test_truth_table(domain_user: bool, machine: bool, srmp: bool, expected: str) -> None:
    owner = USER if domain_user else LOCAL
    made = queue_descriptor(
        policy(machine=MACHINE if machine else None, reachable_by_srmp=srmp), caller(owner)
    )
    assert to_sddl(made) == f"O:{owner}G:{owner}D:{expected}"
    # The result is self-relative: its bytes are all there is.
    assert made.encoded[3] & 0x80
    assert SecurityDescriptor.from_bytes(made.encoded) == made


@pytest.mark.rule("DM-048")
def test_a_guest_counts_as_nobody() -> None:
    made = queue_descriptor(policy(reachable_by_srmp=False), caller(GUEST))
    assert to_sddl(made) == f"O:{GUEST}G:{GUEST}D:(A;;{ALL};;;WD)"


@pytest.mark.rule("DM-046")
def test_what_is_supplied_is_kept_byte_for_byte() -> None:
    # With an entry of a type that nobody knows, and room behind its entries.
    text = f"O:{LOCAL}D:P(0x7F;0x20;0102030405060708)(D;;CC;;;AN)S:(AU;FA;CC;;;WD)"
    supplied = parse_sddl(text)
    made = queue_descriptor(policy(), caller(USER), supplied)
    assert supplied.dacl is not None
    assert supplied.sacl is not None
    assert made.dacl is not None
    assert made.sacl is not None
    assert made.dacl.encode() == supplied.dacl.encode()
    assert made.sacl.encode() == supplied.sacl.encode()
    assert (made.owner, made.group) == (LOCAL, LOCAL)
    assert made.control == supplied.control


@pytest.mark.rule("DM-046", "DM-047")
def test_an_owner_alone_gets_the_default_list() -> None:
    asking = caller(USER, DOMAIN.child(513))
    made = queue_descriptor(policy(reachable_by_srmp=False), asking, parse_sddl(f"O:{LOCAL}"))
    assert to_sddl(made) == f"O:{LOCAL}G:{LOCAL}D:(A;;{ALL};;;WD)"
    made = queue_descriptor(policy(reachable_by_srmp=False), caller(LOCAL), parse_sddl(f"O:{USER}"))
    assert to_sddl(made) == f"O:{USER}G:{USER}D:(A;;{LOOK};;;WD)(A;;{ALL};;;{USER})"


@pytest.mark.rule("DM-047")
def test_the_caller_is_the_owner() -> None:
    group = DOMAIN.child(513)
    made = queue_descriptor(policy(), caller(USER, group))
    assert (made.owner, made.group) == (USER, group)
    # Who is no domain user counts as anonymous: no entry of its own, and everything for Everyone.
    strange = queue_descriptor(policy(), caller(LOCAL))
    assert strange.dacl is not None
    assert [ace.sid for ace in strange.dacl.aces] == [EVERYONE, ANONYMOUS]
    # The anonymous caller does not come to own it by that.
    assert not access_check(ANONYMOUS_TOKEN, strange, 0x40000, QUEUE_MAPPING).granted
    assert queue_descriptor(policy(), None).owner == ADMINISTRATORS


@pytest.mark.rule("DM-049")
def test_the_restrictive_default() -> None:
    made = queue_descriptor(policy(acl=DefaultAcl.RESTRICTIVE), caller(LOCAL))
    assert to_sddl(made) == (
        f"O:{LOCAL}G:{LOCAL}D:(A;;LC{LOOK};;;WD)(A;;LC;;;AN)(A;;{ALL};;;{LOCAL})(A;;{ALL};;;BA)"
    )
    assert access_check(EVERYONE_TOKEN, made, 0x4, QUEUE_MAPPING).granted
    assert not access_check(EVERYONE_TOKEN, made, 0x3, QUEUE_MAPPING).granted
    own = queue_descriptor(policy(acl=DefaultAcl.RESTRICTIVE, reachable_by_srmp=False), None)
    assert to_sddl(own) == f"O:BAG:BAD:(A;;{LOOK};;;WD)(A;;{ALL};;;BA)"


@pytest.mark.rule("X-40")
def test_the_queue_manager() -> None:
    made = machine_descriptor(DefaultPolicy())
    everything = "CCDCLCRPWPDTLOSDRCWDWO"
    assert to_sddl(made) == f"O:SYG:SYD:(A;;{everything};;;BA)(A;;{everything};;;SY)(A;;{LOOK};;;WD)"
    open_to_all = machine_descriptor(DefaultPolicy(everyone_creates_queues=True))
    assert not access_check(EVERYONE_TOKEN, made, 0x4, MACHINE_MAPPING).granted
    assert access_check(EVERYONE_TOKEN, open_to_all, 0x4, MACHINE_MAPPING).granted
    assert not access_check(ANONYMOUS_TOKEN, open_to_all, 0x20, MACHINE_MAPPING).granted
