"""Changes of access control lists with the verbs of an operator: grant, deny, revoke.

Only plain entries of the object itself are changed; inherited, conditional and unknown ones are kept. New
entries are inserted in canonical order (MS-DTYP 2.4.5): denials first, inherited ones last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from msmq_fast.security.acl import Ace, AceFlag, AceType, Acl
from msmq_fast.security.descriptor import Control, SecurityDescriptor
from msmq_fast.security.masks import GenericMapping, Standard
from msmq_fast.security.sid import ANONYMOUS, EVERYONE, Sid

__all__ = ["deny", "grant", "merge", "needed_to_change", "revoke"]

_DACL_BITS: Final = (
    Control.DACL_PROTECTED
    | Control.DACL_AUTO_INHERITED
    | Control.DACL_INHERIT_REQUIRED
    | Control.DACL_DEFAULTED
)
_SACL_BITS: Final = (
    Control.SACL_PROTECTED
    | Control.SACL_AUTO_INHERITED
    | Control.SACL_INHERIT_REQUIRED
    | Control.SACL_DEFAULTED
)
_ALLOW, _DENY = AceType.ACCESS_ALLOWED, AceType.ACCESS_DENIED


def grant(
    descriptor: SecurityDescriptor, account: Sid, mask: int, mapping: GenericMapping
) -> SecurityDescriptor:
    """Grant the rights of `mask` to `account`, and remove these rights from entries that deny them to
    `account`.
    """
    return _add(_remove(descriptor, account, mask, mapping, (_DENY,)), _ALLOW, account, mask, mapping)


def deny(
    descriptor: SecurityDescriptor, account: Sid, mask: int, mapping: GenericMapping
) -> SecurityDescriptor:
    """Deny rights to `account`, even if a group of the account has them, and remove entries that grant these
    rights to `account`.
    """
    return _add(_remove(descriptor, account, mask, mapping, (_ALLOW,)), _DENY, account, mask, mapping)


def revoke(
    descriptor: SecurityDescriptor, account: Sid, mask: int, mapping: GenericMapping
) -> SecurityDescriptor:
    """Remove the rights of `mask` from the entries that grant or deny them to `account` itself, not to its
    groups.
    """
    return _remove(descriptor, account, mask, mapping, (_ALLOW, _DENY))


def _aces(descriptor: SecurityDescriptor, mapping: GenericMapping) -> list[Ace]:
    """Return the entries of the DACL. If there is no DACL, return entries with the same effect."""
    if descriptor.dacl is not None:
        return list(descriptor.dacl.aces)
    return [Ace.build(_ALLOW, mapping.all, account) for account in (EVERYONE, ANONYMOUS)]


def _with(descriptor: SecurityDescriptor, aces: list[Ace]) -> SecurityDescriptor:
    old = descriptor.dacl if descriptor.dacl is not None else Acl()
    return descriptor.with_dacl(replace(old, aces=tuple(aces), rest=b""))


def _is_plain(ace: Ace, account: Sid) -> bool:
    return ace.sid == account and ace.flags == 0 and not ace.rest


def _remove(
    descriptor: SecurityDescriptor, account: Sid, mask: int, mapping: GenericMapping, types: tuple[int, ...]
) -> SecurityDescriptor:
    aces: list[Ace] = []
    mask = mapping.map(mask)
    for ace in _aces(descriptor, mapping):
        if ace.type not in types or not _is_plain(ace, account) or not mapping.map(ace.mask) & mask:
            aces.append(ace)
        elif left := mapping.map(ace.mask) & ~mask:
            aces.append(Ace.build(ace.type, left, account))
    return _with(descriptor, aces)


def _add(
    descriptor: SecurityDescriptor, type_: int, account: Sid, mask: int, mapping: GenericMapping
) -> SecurityDescriptor:
    aces = _aces(descriptor, mapping)
    mask = mapping.map(mask)
    if type_ == _ALLOW:
        at = next((i for i, ace in enumerate(aces) if ace.flags & AceFlag.INHERITED), len(aces))
        reach = len(aces)
    else:
        at = 0
        while at < len(aces) and aces[at].type == _DENY and not aces[at].flags & AceFlag.INHERITED:
            at += 1
        reach = at  # a denial behind a grant would deny nothing more
    for index, ace in enumerate(aces[:reach]):
        if ace.type == type_ and _is_plain(ace, account):
            aces[index] = Ace.build(type_, mapping.map(ace.mask) | mask, account)
            return _with(descriptor, aces)
    aces.insert(at, Ace.build(type_, mask, account))
    return _with(descriptor, aces)


def merge(old: SecurityDescriptor, given: SecurityDescriptor) -> SecurityDescriptor:
    """Return a copy of `old` in which the parts that `given` has (owner, group, DACL, SACL) replace the old
    ones.
    """
    result = old
    if given.owner is not None:
        result = replace(result, owner=given.owner)
    if given.group is not None:
        result = replace(result, group=given.group)
    if given.dacl_present:
        control = (result.control & ~_DACL_BITS) | (given.control & _DACL_BITS)
        result = replace(result, dacl=given.dacl, dacl_present=True, control=control)
    if given.sacl_present:
        control = (result.control & ~_SACL_BITS) | (given.control & _SACL_BITS)
        result = replace(result, sacl=given.sacl, sacl_present=True, control=control)
    return result


def needed_to_change(old: SecurityDescriptor, new: SecurityDescriptor) -> int:
    """Return the mask of rights that a caller needs to replace the descriptor `old` by `new`."""
    needed = 0
    if (old.owner, old.group) != (new.owner, new.group):
        needed |= Standard.WRITE_OWNER
    if (old.sacl, old.sacl_present) != (new.sacl, new.sacl_present):
        needed |= Standard.ACCESS_SYSTEM_SECURITY
    without = {"owner": None, "group": None, "sacl": None, "sacl_present": False}
    if replace(old, **without) != replace(new, **without):  # type: ignore[arg-type]
        needed |= Standard.WRITE_DAC
    return int(needed)
