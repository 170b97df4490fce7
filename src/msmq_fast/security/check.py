"""The access check of MS-DTYP 2.5.3.2 as a pure function, which reports the entry that decided.

Decisions that the specification leaves open:

- Generic bits of entries are mapped to the rights that they stand for, as if this had been done when the
  entries were set.
- OWNER RIGHTS (S-1-3-4) in an entry means the owner, and removes the implicit rights of the owner.
- An object entry without an object type is like a plain one. With an object type it applies to a part of the
  object; queues do not have parts, so it has no effect.
- Conditions are not evaluated: a conditional entry never grants, and always denies the accounts that it
  names.
- With MAXIMUM_ALLOWED, other rights requested at the same time must be among those granted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from msmq_fast.security.acl import Ace, AceFlag, AceType
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.masks import GenericMapping, Standard
from msmq_fast.security.sid import ANONYMOUS, EVERYONE, OWNER_RIGHTS, PRINCIPAL_SELF, Sid
from msmq_fast.security.token import Privilege, Token

__all__ = ["Decision", "Reason", "access_check", "depends_on_more", "grants_everybody"]

_OWNER_HAS: Final = int(Standard.READ_CONTROL | Standard.WRITE_DAC)
_ALLOW: Final = frozenset((AceType.ACCESS_ALLOWED, AceType.ACCESS_ALLOWED_OBJECT))
_DENY: Final = frozenset(
    (
        AceType.ACCESS_DENIED,
        AceType.ACCESS_DENIED_OBJECT,
        AceType.ACCESS_DENIED_CALLBACK,
        AceType.ACCESS_DENIED_CALLBACK_OBJECT,
    )
)


class Reason(StrEnum):
    """The reason why an access check granted or refused access."""

    ENTRY = "an entry of the list"
    NO_LIST = "the object has no access list"
    OWNER = "the caller is the owner"
    PRIVILEGE = "the caller has a privilege"
    NO_ENTRY = "no entry grants it"
    NOT_PRIVILEGED = "the caller lacks a privilege"
    NOTHING = "no right was requested"


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a check.

    `granted`: all requested rights are granted. `access`: the granted rights, 0 if refused. `index` and
    `entry`: the entry of the DACL that decided (the entry that denied a right, or that granted the last
    missing right); None if no entry decided. `missing`: the rights that an entry denied or that no entry
    granted.
    """

    granted: bool
    access: int
    reason: Reason
    index: int | None = None
    entry: Ace | None = None
    missing: int = 0


def access_check(
    token: Token, descriptor: SecurityDescriptor, desired: int, mapping: GenericMapping
) -> Decision:
    """Decide whether `token` has the rights `desired` to an object. Generic bits are mapped first."""
    desired = mapping.map(desired)
    remaining = desired
    reason = Reason.NOTHING
    if remaining & Standard.ACCESS_SYSTEM_SECURITY:
        if Privilege.SECURITY not in token.privileges:
            return Decision(False, 0, Reason.NOT_PRIVILEGED, missing=int(Standard.ACCESS_SYSTEM_SECURITY))
        remaining &= ~Standard.ACCESS_SYSTEM_SECURITY
        reason = Reason.PRIVILEGE
    if remaining & Standard.WRITE_OWNER and Privilege.TAKE_OWNERSHIP in token.privileges:
        remaining &= ~Standard.WRITE_OWNER
        reason = Reason.PRIVILEGE
    if remaining == 0:
        return Decision(True, desired, reason)
    if descriptor.dacl is None:
        everything = mapping.all if desired & Standard.MAXIMUM_ALLOWED else 0
        return Decision(True, int((desired | everything) & ~Standard.MAXIMUM_ALLOWED), Reason.NO_LIST)
    aces = descriptor.dacl.aces
    is_owner = descriptor.owner is not None and _holds(token, descriptor.owner, False)
    implied = _OWNER_HAS if is_owner and not _speaks_of_owner_rights(aces) else 0
    if desired & Standard.MAXIMUM_ALLOWED:
        return _maximum(token, aces, desired, desired & ~remaining | implied, is_owner, mapping)
    if implied & remaining:
        remaining &= ~implied
        reason = Reason.OWNER
    if remaining == 0:
        return Decision(True, desired, reason)
    for index, ace in enumerate(aces):
        if not _matches(token, ace, is_owner):
            continue
        mask = mapping.map(ace.mask)
        if ace.type in _ALLOW:
            remaining &= ~mask
            if remaining == 0:
                return Decision(True, desired, Reason.ENTRY, index, ace)
        elif ace.type in _DENY and remaining & mask:
            return Decision(False, 0, Reason.ENTRY, index, ace, remaining & mask)
    return Decision(False, 0, Reason.NO_ENTRY, missing=remaining)


def _maximum(
    token: Token,
    aces: tuple[Ace, ...],
    desired: int,
    implied: int,
    is_owner: bool,
    mapping: GenericMapping,
) -> Decision:
    allowed = denied = 0
    for ace in aces:
        if _matches(token, ace, is_owner):
            if ace.type in _ALLOW:
                allowed |= mapping.map(ace.mask)
            elif ace.type in _DENY:
                denied |= mapping.map(ace.mask)
    access = int((allowed & ~denied) | (implied & ~Standard.MAXIMUM_ALLOWED))
    missing = desired & ~access & ~Standard.MAXIMUM_ALLOWED
    if access == 0 or missing:
        return Decision(False, 0, Reason.NO_ENTRY, missing=missing)
    return Decision(True, access, Reason.ENTRY if allowed & ~denied else Reason.OWNER)


def _speaks_of_owner_rights(aces: tuple[Ace, ...]) -> bool:
    return any(ace.sid == OWNER_RIGHTS and not ace.flags & AceFlag.INHERIT_ONLY for ace in aces)


def _matches(token: Token, ace: Ace, is_owner: bool) -> bool:
    """Whether an entry is effective on this object (not only on objects that inherit it) and applies to the
    caller.
    """
    if ace.sid is None or ace.flags & AceFlag.INHERIT_ONLY or ace.object_type is not None:
        return False
    return _holds(token, ace.sid, is_owner)


def _holds(token: Token, wanted: Sid, is_owner: bool) -> bool:
    """Whether the SID `wanted` is in the token: SidInToken (2.5.3.1.1). PRINCIPAL_SELF never matches, because
    queues do not stand for a principal.
    """
    if wanted == OWNER_RIGHTS:
        return is_owner
    return wanted != PRINCIPAL_SELF and wanted in token.sids


def depends_on_more(
    token: Token,
    descriptor: SecurityDescriptor,
    desired: int,
    mapping: GenericMapping,
    *,
    may_have: Callable[[Sid], bool],
) -> bool:
    """Whether the decision may be another one if the token had more SIDs: those of which `may_have` returns
    True.
    """
    if descriptor.dacl is None:
        return False
    turns = _DENY if access_check(token, descriptor, desired, mapping).granted else _ALLOW
    return any(
        ace.type in turns
        and ace.sid is not None
        and not ace.flags & AceFlag.INHERIT_ONLY
        and mapping.map(ace.mask) & mapping.map(desired)
        and ace.sid not in token.sids
        and may_have(ace.sid)
        for ace in descriptor.dacl.aces
    )


def grants_everybody(descriptor: SecurityDescriptor, right: int, mapping: GenericMapping) -> bool:
    """Whether `right` is granted to every possible caller, also to an anonymous one.

    Returns False if the answer depends on the caller.
    """
    if descriptor.dacl is None:
        return True
    missing = {EVERYONE: right, ANONYMOUS: right}
    for ace in descriptor.dacl.aces:
        if ace.flags & AceFlag.INHERIT_ONLY:
            continue
        mask = mapping.map(ace.mask)
        if ace.type in _DENY and mask & right:
            return False
        if ace.type == AceType.ACCESS_ALLOWED and ace.sid in missing:
            missing[ace.sid] &= ~mask
        if not any(missing.values()):
            return True
    return False
