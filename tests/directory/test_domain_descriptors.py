"""Security descriptors between message queuing and Active Directory: rights keep their meaning both ways."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.directory.ldap.descriptors import from_domain, of_machine, to_domain
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.security.acl import Ace, AceFlag, AceType, Acl
from msmq_fast.security.check import access_check
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.masks import (
    CN_MAPPING,
    MACHINE_MAPPING,
    QUEUE_MAPPING,
    GenericMapping,
    MachineRight,
    QueueRight,
)
from msmq_fast.security.sid import AUTHENTICATED_USERS, EVERYONE, LOCAL_SYSTEM, Sid, sid
from msmq_fast.security.token import Token

ALICE, BOB = sid("S-1-5-21-1-2-3-1001"), sid("S-1-5-21-1-2-3-1002")
QUEUE_RIGHTS = (0x02, 0x03, 0x04, 0x0A, 0x10, 0x20, 0x10000, 0x20000, 0x40000, 0x80000)
MACHINE_RIGHTS = (0x02, 0x03, 0x04, 0x10, 0x20, 0x80, 0xC0, 0x10000, 0x20000, 0x40000, 0x80000)
KINDS: dict[ObjectType, tuple[GenericMapping, tuple[int, ...]]] = {
    ObjectType.QUEUE: (QUEUE_MAPPING, QUEUE_RIGHTS),
    ObjectType.QUEUE_MANAGER: (MACHINE_MAPPING, MACHINE_RIGHTS),
    ObjectType.SITE: (CN_MAPPING, (0x01, 0x10, 0x20, 0x20000)),
}
SEND = UUID("06bd3202-df3e-11d1-9c86-006008764d0e").bytes_le
RECEIVE = UUID("06bd3200-df3e-11d1-9c86-006008764d0e").bytes_le
PEEK = UUID("06bd3201-df3e-11d1-9c86-006008764d0e").bytes_le
JOURNAL = UUID("06bd3203-df3e-11d1-9c86-006008764d0e").bytes_le
QUEUE_CLASS = UUID("9a0dc343-c100-11d1-bbc5-0080c76670c0").bytes_le
LABEL = UUID("4580ad25-d407-48d2-ad24-43e6e56793d7").bytes_le  # an attribute


def descriptor(*aces: Ace) -> bytes:
    revision = 4 if any(ace.is_object for ace in aces) else 2
    return SecurityDescriptor.build(ALICE, ALICE, Acl(aces, revision)).encoded


def allow(mask: int, who: Sid = BOB, part: bytes | None = None, flags: int = 0) -> Ace:
    type_ = AceType.ACCESS_ALLOWED if part is None else AceType.ACCESS_ALLOWED_OBJECT
    return Ace.build(type_, mask, who, flags, part)


def deny(mask: int, who: Sid = BOB, part: bytes | None = None) -> Ace:
    type_ = AceType.ACCESS_DENIED if part is None else AceType.ACCESS_DENIED_OBJECT
    return Ace.build(type_, mask, who, 0, part)


def entries(data: bytes) -> list[tuple[int, int, Sid | None, bytes | None]]:
    found = SecurityDescriptor.from_bytes(data)
    assert found.dacl is not None
    return [(ace.type, ace.mask, ace.sid, ace.object_type) for ace in found.dacl.aces]


@pytest.mark.rule("SM-058")
def test_a_reader_of_a_queue_may_not_change_its_object() -> None:
    shared = int(
        QueueRight.GET_QUEUE_PROPERTIES | QueueRight.GET_QUEUE_PERMISSIONS | QueueRight.WRITE_MESSAGE
    )
    found = entries(to_domain(ObjectType.QUEUE, descriptor(allow(shared, EVERYONE))))
    assert found == [(0, 0x20010, EVERYONE, None), (5, 0x100, EVERYONE, SEND)]


@pytest.mark.rule("SM-058")
def test_a_reader_of_the_object_may_not_change_the_queue() -> None:
    """The default of the schema for mSMQQueue: administrators everything, users RPLCLORC."""
    default = descriptor(allow(0x000F_01FF, ALICE), allow(0x0002_0094, BOB))
    found = entries(from_domain(ObjectType.QUEUE, default))
    assert found == [(0, 0x000F_003F, ALICE, None), (0, 0x0002_0020, BOB, None)]


@pytest.mark.parametrize(
    ("part", "allowed", "denied"),
    [(RECEIVE, 0x03, 0x01), (PEEK, 0x02, 0x02), (SEND, 0x04, 0x04), (JOURNAL, 0x0A, 0x08)],
)
def test_control_access_rights(part: bytes, allowed: int, denied: int) -> None:
    assert entries(from_domain(ObjectType.QUEUE, descriptor(allow(0x100, BOB, part)))) == [
        (0, allowed, BOB, None)
    ]
    assert entries(from_domain(ObjectType.QUEUE, descriptor(deny(0x100, BOB, part)))) == [
        (1, denied, BOB, None)
    ]


def test_the_right_to_create_queues_is_that_to_create_their_objects() -> None:
    own = descriptor(allow(int(MachineRight.CREATE_QUEUE)))
    made = to_domain(ObjectType.QUEUE_MANAGER, own)
    assert entries(made) == [(5, 0x01, BOB, QUEUE_CLASS)]
    assert entries(from_domain(ObjectType.QUEUE_MANAGER, made)) == entries(own)
    children = from_domain(ObjectType.QUEUE_MANAGER, descriptor(allow(0x01)))
    assert entries(children) == entries(own)


@pytest.mark.parametrize(
    "ace",
    [
        allow(0x20, BOB, LABEL),  # one attribute
        allow(0x100, BOB, QUEUE_CLASS),  # an unknown control access right
        allow(0x000F_01FF, BOB, flags=AceFlag.INHERIT_ONLY | AceFlag.CONTAINER_INHERIT),
        allow(0x94 & ~0x10),  # to list only
        Ace.build(AceType.SYSTEM_AUDIT, 0x20, BOB),
    ],
)
def test_what_gives_no_right_to_a_queue(ace: Ace) -> None:
    assert entries(from_domain(ObjectType.QUEUE, descriptor(ace))) == []


def test_to_deny_one_attribute_denies_all() -> None:
    assert entries(from_domain(ObjectType.QUEUE, descriptor(deny(0x20, BOB, LABEL)))) == [
        (1, 0x10, BOB, None)
    ]


def test_generic_rights_are_those_of_each_side() -> None:
    everything = from_domain(ObjectType.QUEUE, descriptor(allow(0x1000_0000)))
    assert entries(everything) == [(0, int(QueueRight.QUEUE_GENERIC_ALL), BOB, None)]
    reading = from_domain(ObjectType.QUEUE, descriptor(allow(0x8000_0000)))
    assert entries(reading) == [(0, 0x0002_0020, BOB, None)]  # the objects, not the messages
    messages = entries(to_domain(ObjectType.QUEUE, descriptor(allow(0x8000_0000))))
    assert messages == [(0, 0x0002_0010, BOB, None)] + [
        (5, 0x100, BOB, one) for one in (RECEIVE, JOURNAL, PEEK)
    ]


def test_a_descriptor_without_list_allows_everything_on_both_sides() -> None:
    open_to_all = SecurityDescriptor(ALICE, None, dacl_present=True).encoded
    assert to_domain(ObjectType.QUEUE, open_to_all) == open_to_all
    assert from_domain(ObjectType.QUEUE, open_to_all) == open_to_all


@pytest.mark.parametrize("data", [b"", b"\1\0", b"\2" + bytes(19)])
def test_what_is_no_descriptor(data: bytes) -> None:
    for convert in (to_domain, from_domain):
        with pytest.raises(ValueError, match="descriptor"):
            convert(ObjectType.QUEUE, data)


@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.title)
@given(data=st.data())
def test_decisions_are_the_same_after_a_round_trip(kind: ObjectType, data: st.DataObject) -> None:
    """For every list that message queuing writes: each right is one that has a name."""
    mapping, rights = KINDS[kind]
    named = st.lists(st.sampled_from(rights), min_size=1, max_size=4).map(
        lambda some: sum(1 << bit for bit in range(20) if any(one >> bit & 1 for one in some))
    )
    makers = st.sampled_from((allow, deny))
    people = st.sampled_from((ALICE, BOB, EVERYONE))
    aces = [
        data.draw(makers)(data.draw(named), data.draw(people)) for _ in range(data.draw(st.integers(0, 4)))
    ]
    own = descriptor(*aces)
    back = from_domain(kind, to_domain(kind, own))
    for who in (ALICE, BOB):
        for right in rights:
            before, after = (
                access_check(
                    Token(who, frozenset((who, EVERYONE))), SecurityDescriptor.from_bytes(one), right, mapping
                ).granted
                for one in (own, back)
            )
            assert before == after, (hex(right), entries(own), entries(back))


@pytest.mark.rule("SM-056")
def test_a_computer_has_all_rights_to_its_queue_manager() -> None:
    """Also to the queues below it. The schema gives a computer none, although it may create the object."""
    inherited = int(AceFlag.CONTAINER_INHERIT)
    full = allow(0x000F_01FF, ALICE, flags=inherited)
    administrators = sid("S-1-5-21-1-2-3-512")
    found = SecurityDescriptor.from_bytes(of_machine(ALICE))
    assert found.dacl is not None
    assert list(found.dacl.aces) == [
        allow(0x000F_01FF, administrators), allow(0x000F_01FF, LOCAL_SYSTEM),
        allow(0x0002_0094, AUTHENTICATED_USERS), full,
    ]  # fmt: skip
    given = to_domain(ObjectType.QUEUE_MANAGER, descriptor(deny(0x20), allow(0x10)))
    kept = entries(given)
    assert entries(of_machine(ALICE, given)) == [*kept, *entries(descriptor(full))]
    assert of_machine(ALICE, of_machine(ALICE, given)) == of_machine(ALICE, given)
    everything = SecurityDescriptor(ALICE, ALICE, dacl_present=True).encoded
    assert SecurityDescriptor.from_bytes(of_machine(ALICE, everything)).dacl is None
    with pytest.raises(ValueError, match="descriptor"):
        of_machine(ALICE, b"?")
