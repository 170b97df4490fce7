"""Self-relative security descriptors (MS-DTYP 2.4.6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import IntFlag
from functools import cached_property
from typing import Final

from msmq_fast.security.acl import Acl
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid

__all__ = ["MAX_DESCRIPTOR", "Control", "SecurityDescriptor"]

_HEAD: Final = struct.Struct("<BBHIIII")
MAX_DESCRIPTOR: Final = _HEAD.size + 2 * 0xFFFF + 2 * 68 + 6
"""Maximum size of a descriptor in bytes: two lists and two SIDs, each on a 4-byte boundary."""


class Control(IntFlag):
    """The control flags of a security descriptor: SECURITY_DESCRIPTOR.Control."""

    OWNER_DEFAULTED = 0x0001
    GROUP_DEFAULTED = 0x0002
    DACL_PRESENT = 0x0004
    DACL_DEFAULTED = 0x0008
    SACL_PRESENT = 0x0010
    SACL_DEFAULTED = 0x0020
    DACL_TRUSTED = 0x0040
    SERVER_SECURITY = 0x0080
    DACL_INHERIT_REQUIRED = 0x0100
    SACL_INHERIT_REQUIRED = 0x0200
    DACL_AUTO_INHERITED = 0x0400
    SACL_AUTO_INHERITED = 0x0800
    DACL_PROTECTED = 0x1000
    SACL_PROTECTED = 0x2000
    RM_CONTROL_VALID = 0x4000
    SELF_RELATIVE = 0x8000


_STRUCTURAL: Final = Control.DACL_PRESENT | Control.SACL_PRESENT | Control.SELF_RELATIVE


@dataclass(frozen=True)
class SecurityDescriptor:
    """The owner of an object, and the rights on it.

    `control` holds the flags that follow neither from the other fields nor from the self-relative form.
    `dacl` and `sacl` are None if the list is absent. If `dacl_present` is True and `dacl` is None, the
    descriptor has a NULL DACL, which grants everything, as an absent DACL does. `resource` is Sbz1.
    """

    owner: Sid | None = None
    group: Sid | None = None
    dacl: Acl | None = None
    sacl: Acl | None = None
    control: int = 0
    dacl_present: bool = False
    sacl_present: bool = False
    resource: int = 0

    @classmethod
    def build(cls, owner: Sid | None, group: Sid | None, dacl: Acl | None) -> SecurityDescriptor:
        """Return a descriptor without SACL, and without DACL if `dacl` is None."""
        return cls(owner, group, dacl, dacl_present=dacl is not None)

    @classmethod
    def from_bytes(cls, data: bytes) -> SecurityDescriptor:
        """Parse a descriptor. Every size and offset is checked. Raises SecurityDataError."""
        if not _HEAD.size <= len(data) <= MAX_DESCRIPTOR:
            raise SecurityDataError(f"a security descriptor cannot have {len(data)} bytes")
        revision, resource, control, owner_at, group_at, sacl_at, dacl_at = _HEAD.unpack_from(data)
        if revision != 1:
            raise SecurityDataError(f"the security descriptor has the unknown revision {revision}")
        if not control & Control.SELF_RELATIVE:
            raise SecurityDataError("the security descriptor is not self-relative")
        for name, at in (("owner", owner_at), ("group", group_at), ("SACL", sacl_at), ("DACL", dacl_at)):
            if at and not _HEAD.size <= at < len(data):
                raise SecurityDataError(f"the offset {at} of the {name} lies outside the {len(data)} bytes")
        has_dacl, has_sacl = bool(control & Control.DACL_PRESENT), bool(control & Control.SACL_PRESENT)
        return cls(
            owner=Sid.read(data, owner_at)[0] if owner_at else None,
            group=Sid.read(data, group_at)[0] if group_at else None,
            dacl=Acl.read(data, dacl_at) if has_dacl and dacl_at else None,
            sacl=Acl.read(data, sacl_at) if has_sacl and sacl_at else None,
            control=control & ~_STRUCTURAL,
            dacl_present=has_dacl,
            sacl_present=has_sacl,
            resource=resource,
        )

    @cached_property
    def encoded(self) -> bytes:
        """The descriptor as bytes, in the order that Windows writes: SACL, DACL, owner, group.

        Raises SecurityDataError if a list is too large.
        """
        control = self.control | Control.SELF_RELATIVE
        control |= Control.DACL_PRESENT if self.dacl_present else 0
        control |= Control.SACL_PRESENT if self.sacl_present else 0
        parts = (
            self.sacl.encode() if self.sacl is not None else None,
            self.dacl.encode() if self.dacl is not None else None,
            self.owner.data if self.owner is not None else None,
            self.group.data if self.group is not None else None,
        )
        body = bytearray()
        offsets = []
        for part in parts:
            if part is None:
                offsets.append(0)
                continue
            body += bytes(-len(body) % 4)
            offsets.append(_HEAD.size + len(body))
            body += part
        sacl_at, dacl_at, owner_at, group_at = offsets
        head = _HEAD.pack(1, self.resource, control, owner_at, group_at, sacl_at, dacl_at)
        return head + bytes(body)

    def with_dacl(self, dacl: Acl) -> SecurityDescriptor:
        """Return a copy with this DACL, and without the flag that says that the DACL was established by
        default.
        """
        return replace(self, dacl=dacl, dacl_present=True, control=self.control & ~Control.DACL_DEFAULTED)
