"""Access checks computed in the plainest way from the text of MS-DTYP 2.5.3.2, to compare the real ones with.

Nothing here uses the package: SIDs are text, an entry is a tuple, a descriptor is an owner and a list of
entries.
"""

from __future__ import annotations

from dataclasses import dataclass

READ_CONTROL, WRITE_DAC, WRITE_OWNER = 0x20000, 0x40000, 0x80000
SYSTEM_SECURITY, MAXIMUM_ALLOWED = 0x1000000, 0x2000000
GENERIC = {0x80000000: 0x2002B, 0x40000000: 0x20024, 0x20000000: 0, 0x10000000: 0xF003F}  # of queues
OWNER_RIGHTS, SELF = "S-1-3-4", "S-1-5-10"


@dataclass(frozen=True)
class Entry:
    """`kind` is A, D, OA, OD or XA; `guid` is the object type of an object entry."""

    kind: str
    mask: int
    sid: str
    inherit_only: bool = False
    guid: str = ""

    def sddl(self) -> str:
        """As the descriptor language has it."""
        flags = "CIIO" if self.inherit_only else ""
        return f"({self.kind};{flags};0x{self.mask:x};{self.guid};;{self.sid})"


@dataclass(frozen=True)
class Object:
    """`entries` None: no DACL at all."""

    owner: str
    entries: tuple[Entry, ...] | None

    def sddl(self) -> str:
        """As the descriptor language has it."""
        text = f"O:{self.owner}G:{self.owner}"
        return text if self.entries is None else text + "D:" + "".join(entry.sddl() for entry in self.entries)


@dataclass(frozen=True)
class Caller:
    sids: frozenset[str]
    security_privilege: bool = False
    ownership_privilege: bool = False


def specific(mask: int) -> int:
    """The generic bits of a mask replaced by what they stand for with queues."""
    for bit, meaning in GENERIC.items():
        if mask & bit:
            mask = (mask & ~bit) | meaning
    return mask


def evaluate(caller: Caller, target: Object, desired: int) -> tuple[bool, int, int | None]:
    """(granted, granted access, index of the entry that decided) of EvaluateTokenAgainstDescriptor."""
    remaining = specific(desired)
    if remaining & SYSTEM_SECURITY:
        if not caller.security_privilege:
            return False, 0, None
        remaining -= SYSTEM_SECURITY
    if remaining & WRITE_OWNER and caller.ownership_privilege:
        remaining -= WRITE_OWNER
    by_privilege = specific(desired) & ~remaining
    if remaining == 0:
        return True, specific(desired), None
    maximum = bool(remaining & MAXIMUM_ALLOWED)
    if target.entries is None:
        # "No DACL in the security descriptor implies that there is no policy in place […]; any access check
        # will succeed."
        return True, (specific(desired) & ~MAXIMUM_ALLOWED) | (0xF003F if maximum else 0), None
    entries = [entry for entry in target.entries if not entry.inherit_only]
    owns = target.owner in caller.sids and target.owner != SELF
    as_owner = 0
    if owns and not any(entry.sid == OWNER_RIGHTS for entry in entries):
        as_owner = READ_CONTROL | WRITE_DAC
    if not maximum:
        remaining &= ~as_owner
        if remaining == 0:
            return True, specific(desired), None
    allowed = denied = 0
    for index, entry in enumerate(target.entries):
        if entry.inherit_only:
            continue
        named = owns if entry.sid == OWNER_RIGHTS else entry.sid in caller.sids and entry.sid != SELF
        if not named or (entry.kind in ("OA", "OD") and entry.guid):
            continue
        mask = specific(entry.mask)
        if entry.kind in ("A", "OA"):
            allowed |= mask
            if not maximum:
                remaining &= ~mask
                if remaining == 0:
                    return True, specific(desired), index
        elif entry.kind in ("D", "OD"):
            denied |= mask
            if not maximum and mask & remaining:
                return False, 0, index
    if not maximum:
        return False, 0, None
    access = (allowed & ~denied) | as_owner | by_privilege
    wanted = specific(desired) & ~MAXIMUM_ALLOWED
    return (True, access, None) if access and not wanted & ~access else (False, 0, None)
