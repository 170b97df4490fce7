"""Security descriptors of queues, queue managers and sites in Active Directory.

Access masks mean different things on both sides: 0x20 is the right to read properties for message queuing
(MS-MQMQ 2.2.24), and the right to write them in Active Directory (MS-ADTS 5.1.3.2). The rights to messages
are no bits there, but control access rights, each with a GUID (MS-ADTS 5.1.3.2.1, 6.1.1.2.7.10 to .18).
Copied octet for octet, the descriptor of a queue whose properties everyone may read would let everyone change
the object in the domain, and the domain's default would let every user change the queue.

1. An entry that allows or denies becomes one entry with the bits that have a counterpart, and one for each
   control access right. All rights to messages together are the bit CONTROL_ACCESS without a GUID.
2. A right that the other side does not know is left out of an entry that allows. An entry that denies keeps
   the nearest wider right.
3. Owner and group stay. The SACL, and entries of other types, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from uuid import UUID

from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.security.acl import Ace, AceFlag, AceType, Acl
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.masks import (
    CN_MAPPING,
    MACHINE_MAPPING,
    QUEUE_MAPPING,
    ConnectedNetworkRight,
    GenericMapping,
    MachineRight,
    QueueRight,
    Standard,
)
from msmq_fast.security.sid import AUTHENTICATED_USERS, LOCAL_SYSTEM, Sid, sid

__all__ = ["DomainRight", "from_domain", "of_machine", "to_domain"]


class DomainRight(IntFlag):
    """The rights to an object of Active Directory (MS-ADTS 5.1.3.2)."""

    CREATE_CHILD = 0x0001
    LIST = 0x0004
    READ_PROPERTY = 0x0010
    WRITE_PROPERTY = 0x0020
    LIST_OBJECT = 0x0080
    CONTROL_ACCESS = 0x0100


_STANDARD: Final = int(Standard.DELETE | Standard.READ_CONTROL | Standard.WRITE_DAC | Standard.WRITE_OWNER)
_PROPERTIES: Final = (  # the numbers are the same for every kind of object
    (int(QueueRight.GET_QUEUE_PROPERTIES), DomainRight.READ_PROPERTY),
    (int(QueueRight.SET_QUEUE_PROPERTIES), DomainRight.WRITE_PROPERTY),
)
_FULL: Final = 0x000F_01FF
_SHOWN: Final = int(
    Standard.READ_CONTROL | DomainRight.LIST | DomainRight.READ_PROPERTY | DomainRight.LIST_OBJECT
)
_DOMAIN_ADMINS: Final = 512  # RID
_GENERIC: Final = GenericMapping(  # MS-ADTS 5.1.3.2
    _SHOWN,
    int(Standard.READ_CONTROL | DomainRight.WRITE_PROPERTY),
    int(Standard.READ_CONTROL | DomainRight.LIST),
    _FULL,
)
_QUEUE_CLASS: Final = UUID("9a0dc343-c100-11d1-bbc5-0080c76670c0").bytes_le  # schemaIDGUID of mSMQQueue
_ALLOWED: Final = (AceType.ACCESS_ALLOWED, AceType.ACCESS_ALLOWED_OBJECT)
_DENIED: Final = (AceType.ACCESS_DENIED, AceType.ACCESS_DENIED_OBJECT)


@dataclass(frozen=True, slots=True)
class _Rights:
    """The rights of one kind of object. `extended` has a row (GUID, bits, the bits that a denial means) for
    each control access right: the right to receive includes that to peek, but to deny it does not.
    """

    generic: GenericMapping
    extended: tuple[tuple[bytes, int, int], ...]
    create: int = 0  # the bit that stands for the right to create queues

    @property
    def messages(self) -> int:
        """All bits that are control access rights in the domain."""
        found = 0
        for _guid, bits, _denied in self.extended:
            found |= bits
        return found


def _guid(text: str) -> bytes:
    return UUID(text).bytes_le


_RIGHTS: Final[Mapping[ObjectType, _Rights]] = MappingProxyType(
    {
        ObjectType.QUEUE: _Rights(
            QUEUE_MAPPING,
            (
                (_guid("06bd3200-df3e-11d1-9c86-006008764d0e"), int(QueueRight.RECEIVE_MESSAGE), 0x01),
                (_guid("06bd3203-df3e-11d1-9c86-006008764d0e"), int(QueueRight.RECEIVE_JOURNAL_MESSAGE), 8),
                (_guid("06bd3201-df3e-11d1-9c86-006008764d0e"), int(QueueRight.PEEK_MESSAGE), 0x02),
                (_guid("06bd3202-df3e-11d1-9c86-006008764d0e"), int(QueueRight.WRITE_MESSAGE), 0x04),
            ),
        ),
        ObjectType.QUEUE_MANAGER: _Rights(
            MACHINE_MAPPING,
            (
                (_guid("4b6e08c0-df3c-11d1-9c86-006008764d0e"), 0x03, 0x01),
                (_guid("4b6e08c1-df3c-11d1-9c86-006008764d0e"), 0x02, 0x02),
                (_guid("4b6e08c2-df3c-11d1-9c86-006008764d0e"), 0xC0, 0x40),
                (_guid("4b6e08c3-df3c-11d1-9c86-006008764d0e"), 0x80, 0x80),
            ),
            create=int(MachineRight.CREATE_QUEUE),
        ),
        ObjectType.SITE: _Rights(
            CN_MAPPING,
            (
                (
                    _guid("b4e60130-df3f-11d1-9c86-006008764d0e"),
                    int(ConnectedNetworkRight.CN_OPEN_CONNECTOR),
                    0x01,
                ),
            ),
        ),
    }
)


def to_domain(kind: ObjectType, data: bytes) -> bytes:
    """Return nTSecurityDescriptor for the attribute Security of an object. Raises ValueError if it is
    malformed, or too large for the domain's form.
    """
    return _converted(kind, data, outward=True)


@lru_cache(maxsize=1024)  # most objects of a domain share a few descriptors
def from_domain(kind: ObjectType, data: bytes) -> bytes:
    """Return the attribute Security for an nTSecurityDescriptor. Raises ValueError if it is malformed."""
    return _converted(kind, data, outward=False)


def of_machine(computer: Sid, security: bytes | None = None) -> bytes:
    """Return nTSecurityDescriptor of the queue manager of a computer (3.1.6.1.1.8): the computer has all
    rights, also to the queues below it. The schema gives it none, although it may create the object. The
    other entries are those of `security`, in the domain's form, by default those of the schema. Raises
    ValueError if `security` is malformed.
    """
    try:
        kept = _default(computer) if security is None else SecurityDescriptor.from_bytes(security)
        if kept.dacl is None:  # everything is allowed
            return kept.encoded
        own = Ace.build(AceType.ACCESS_ALLOWED, _FULL, computer, AceFlag.CONTAINER_INHERIT)
        aces = kept.dacl.aces if own in kept.dacl.aces else (*kept.dacl.aces, own)
        revision = 4 if any(ace.is_object for ace in aces) else 2
        return SecurityDescriptor.build(kept.owner, kept.group, Acl(aces, revision)).encoded
    except SecurityDataError as error:
        raise ValueError(str(error)) from None


def _default(computer: Sid) -> SecurityDescriptor:
    """defaultSecurityDescriptor of the class mSMQConfiguration (MS-ADSC)."""
    administrators = sid(f"{str(computer).rpartition('-')[0]}-{_DOMAIN_ADMINS}")
    aces = (
        Ace.build(AceType.ACCESS_ALLOWED, _FULL, administrators),
        Ace.build(AceType.ACCESS_ALLOWED, _FULL, LOCAL_SYSTEM),
        Ace.build(AceType.ACCESS_ALLOWED, _SHOWN, AUTHENTICATED_USERS),
    )
    return SecurityDescriptor.build(administrators, administrators, Acl(aces, 2))


def _converted(kind: ObjectType, data: bytes, *, outward: bool) -> bytes:
    rights = _RIGHTS.get(kind)
    try:
        found = SecurityDescriptor.from_bytes(data)
        if rights is None:
            return data
        if found.dacl is None:  # everything is allowed, on both sides
            return SecurityDescriptor(found.owner, found.group, dacl_present=found.dacl_present).encoded
        convert = _outward if outward else _inward
        aces = tuple(new for ace in found.dacl.aces for new in convert(rights, ace))
        revision = 4 if any(ace.is_object for ace in aces) else 2
        return SecurityDescriptor.build(found.owner, found.group, Acl(aces, revision)).encoded
    except SecurityDataError as error:
        raise ValueError(str(error)) from None


def _outward(rights: _Rights, ace: Ace) -> Iterator[Ace]:
    if ace.sid is None or ace.object_type is not None or ace.type not in (*_ALLOWED, *_DENIED):
        return
    denies = ace.type in _DENIED
    mask = rights.generic.map(ace.mask)
    bits = mask & _STANDARD
    for own, theirs in _PROPERTIES:
        bits |= theirs if mask & own else 0
    messages = mask & rights.messages
    if messages == rights.messages:
        bits |= DomainRight.CONTROL_ACCESS
        messages = 0
    if bits:
        yield _entry(denies, bits, ace.sid, ace.flags)
    for guid, granted, denied in rights.extended:
        if messages & denied if denies else messages & granted == granted:
            yield _entry(denies, DomainRight.CONTROL_ACCESS, ace.sid, ace.flags, guid)
    if mask & rights.create:
        yield _entry(denies, DomainRight.CREATE_CHILD, ace.sid, ace.flags, _QUEUE_CLASS)


def _inward(rights: _Rights, ace: Ace) -> Iterator[Ace]:
    if ace.sid is None or ace.flags & AceFlag.INHERIT_ONLY or ace.type not in (*_ALLOWED, *_DENIED):
        return
    denies = ace.type in _DENIED
    mask = _GENERIC.map(ace.mask)
    if ace.object_type is None:
        bits = mask & _STANDARD
        for own, theirs in _PROPERTIES:
            bits |= own if mask & theirs else 0
        bits |= rights.messages if mask & DomainRight.CONTROL_ACCESS else 0
        bits |= rights.create if mask & DomainRight.CREATE_CHILD else 0
    else:
        bits = _of_part(rights, ace.object_type, mask, denies)
    if bits:
        yield _entry(denies, bits, ace.sid, ace.flags)


def _of_part(rights: _Rights, part: bytes, mask: int, denies: bool) -> int:
    """Return the rights of an entry for a control access right, a class or some attributes. The right to some
    attributes is none; to deny it denies all.
    """
    bits = 0
    if mask & DomainRight.CONTROL_ACCESS:
        for guid, granted, denied in rights.extended:
            if guid == part:
                bits |= denied if denies else granted
    if mask & DomainRight.CREATE_CHILD and part == _QUEUE_CLASS:
        bits |= rights.create
    if denies:
        for own, theirs in _PROPERTIES:
            bits |= own if mask & theirs else 0
    return bits


def _entry(denies: bool, mask: int, sid: Sid, flags: int, part: bytes | None = None) -> Ace:
    if part is None:
        type_ = AceType.ACCESS_DENIED if denies else AceType.ACCESS_ALLOWED
    else:
        type_ = AceType.ACCESS_DENIED_OBJECT if denies else AceType.ACCESS_ALLOWED_OBJECT
    return Ace.build(type_, int(mask), sid, flags, part)
