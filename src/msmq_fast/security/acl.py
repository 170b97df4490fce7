"""Access control entries and lists (MS-DTYP 2.4.4, 2.4.5).

Parsing keeps everything byte for byte: entries of unknown types, data after the fields of an entry, padding
after the entries of a list.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Final

from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid

__all__ = ["Ace", "AceFlag", "AceType", "Acl"]

_ACL: Final = struct.Struct("<BBHHH")
_ACE: Final = struct.Struct("<BBH")
_MASK: Final = struct.Struct("<I")
MAX_SIZE: Final = 0xFFFC
"""Maximum size of an entry or a list in bytes: the largest multiple of 4 that fits their 16-bit size
fields.
"""


class AceType(IntEnum):
    """The types of access control entries: ACE_HEADER.AceType (2.4.4.1)."""

    ACCESS_ALLOWED = 0x00
    ACCESS_DENIED = 0x01
    SYSTEM_AUDIT = 0x02
    SYSTEM_ALARM = 0x03
    ACCESS_ALLOWED_OBJECT = 0x05
    ACCESS_DENIED_OBJECT = 0x06
    SYSTEM_AUDIT_OBJECT = 0x07
    SYSTEM_ALARM_OBJECT = 0x08
    ACCESS_ALLOWED_CALLBACK = 0x09
    ACCESS_DENIED_CALLBACK = 0x0A
    ACCESS_ALLOWED_CALLBACK_OBJECT = 0x0B
    ACCESS_DENIED_CALLBACK_OBJECT = 0x0C
    SYSTEM_AUDIT_CALLBACK = 0x0D
    SYSTEM_AUDIT_CALLBACK_OBJECT = 0x0F
    SYSTEM_MANDATORY_LABEL = 0x11
    SYSTEM_RESOURCE_ATTRIBUTE = 0x12
    SYSTEM_SCOPED_POLICY_ID = 0x13


class AceFlag(IntFlag):
    """The flags of an access control entry: ACE_HEADER.AceFlags (2.4.4.1)."""

    OBJECT_INHERIT = 0x01
    CONTAINER_INHERIT = 0x02
    NO_PROPAGATE_INHERIT = 0x04
    INHERIT_ONLY = 0x08
    INHERITED = 0x10
    SUCCESSFUL_ACCESS = 0x40
    FAILED_ACCESS = 0x80


_OBJECT_TYPES: Final = frozenset((0x05, 0x06, 0x07, 0x08, 0x0B, 0x0C, 0x0F))
_KNOWN: Final = frozenset(AceType)
_OBJECT_TYPE_PRESENT: Final = 1
_INHERITED_OBJECT_TYPE_PRESENT: Final = 2


@dataclass(frozen=True, slots=True)
class Ace:
    """One access control entry. `data` is the whole entry as encoded in a list; the other fields are parsed
    from it.

    `mask` is 0 and `sid` None for an entry of an unknown type. `object_type` is the GUID in wire order, None
    if the entry has none. `rest` is the data after the SID.
    """

    data: bytes
    type: int = field(compare=False)
    flags: int = field(compare=False)
    mask: int = field(compare=False)
    sid: Sid | None = field(compare=False)
    object_type: bytes | None = field(default=None, compare=False)
    inherited_object_type: bytes | None = field(default=None, compare=False)
    rest: bytes = field(default=b"", compare=False)

    @classmethod
    def build(
        cls,
        type_: int,
        mask: int,
        sid: Sid,
        flags: int = 0,
        object_type: bytes | None = None,
        inherited_object_type: bytes | None = None,
    ) -> Ace:
        """Return a new entry. Raises SecurityDataError if the mask or the flags are out of range."""
        if not 0 <= mask < 1 << 32 or not 0 <= flags < 1 << 8:
            raise SecurityDataError("the mask or the flags of an entry are out of range")
        body = _MASK.pack(mask)
        if type_ in _OBJECT_TYPES:
            present = (_OBJECT_TYPE_PRESENT if object_type else 0) | (
                _INHERITED_OBJECT_TYPE_PRESENT if inherited_object_type else 0
            )
            body += _MASK.pack(present) + (object_type or b"") + (inherited_object_type or b"")
        body += sid.data
        return cls.from_bytes(_ACE.pack(type_, flags, _ACE.size + len(body)) + body)

    @classmethod
    def opaque(cls, type_: int, flags: int, body: bytes) -> Ace:
        """Return an entry of type `type_` whose bytes after the header are `body`. Raises SecurityDataError
        if it is too large.
        """
        size = _ACE.size + len(body)
        if size > MAX_SIZE:
            raise SecurityDataError(
                f"an access control entry of {size} bytes is too large: at most {MAX_SIZE} are allowed"
            )
        return cls.from_bytes(_ACE.pack(type_, flags, size) + body)

    @classmethod
    def from_bytes(cls, data: bytes) -> Ace:
        """Return the entry that fills `data` exactly. Raises SecurityDataError."""
        if len(data) < _ACE.size:
            raise SecurityDataError("an access control entry is truncated")
        type_, flags, size = _ACE.unpack_from(data)
        if size != len(data) or size % 4:
            raise SecurityDataError(f"an access control entry of size {size} does not fit {len(data)} bytes")
        if type_ not in _KNOWN:
            return cls(data, type_, flags, 0, None)
        if size < 8:
            raise SecurityDataError("an access control entry is too short for its mask")
        (mask,) = _MASK.unpack_from(data, 4)
        at, guids = _object_types(data) if type_ in _OBJECT_TYPES else (8, (None, None))
        sid, sid_size = Sid.read(data, at)
        return cls(data, type_, flags, mask, sid, guids[0], guids[1], data[at + sid_size :])

    @property
    def is_object(self) -> bool:
        """Whether this is an object entry, which may apply to only a part of an object."""
        return self.type in _OBJECT_TYPES


def _object_types(data: bytes) -> tuple[int, tuple[bytes | None, bytes | None]]:
    """Returns the offset of the SID of an object entry, and its two GUIDs."""
    if len(data) < 12:
        raise SecurityDataError("an object entry is too short for its flags")
    (present,) = _MASK.unpack_from(data, 8)
    at = 12
    first = second = None
    if present & _OBJECT_TYPE_PRESENT:
        first, at = data[at : at + 16], at + 16
    if present & _INHERITED_OBJECT_TYPE_PRESENT:
        second, at = data[at : at + 16], at + 16
    if at > len(data):
        raise SecurityDataError("an object entry is too short for its GUID")
    return at, (first, second)


@dataclass(frozen=True, slots=True)
class Acl:
    """A list of entries in their order. `reserved` is Sbz1 and Sbz2, `rest` the padding after the entries."""

    aces: tuple[Ace, ...] = ()
    revision: int = 2
    reserved: tuple[int, int] = (0, 0)
    rest: bytes = b""

    @classmethod
    def read(cls, data: bytes, offset: int) -> Acl:
        """Return the list that begins at `offset` of `data`. Raises SecurityDataError if the list is
        malformed or truncated.
        """
        if offset < 0 or len(data) - offset < _ACL.size:
            raise SecurityDataError(f"the header of the ACL at offset {offset} is truncated")
        revision, sbz1, size, count, sbz2 = _ACL.unpack_from(data, offset)
        if revision not in (2, 4):
            raise SecurityDataError(f"the ACL at offset {offset} has the unknown revision {revision}")
        if not _ACL.size <= size <= len(data) - offset:
            raise SecurityDataError(
                f"the ACL of size {size} at offset {offset} does not fit into {len(data)} bytes"
            )
        end = offset + size
        at = offset + _ACL.size
        aces: list[Ace] = []
        for index in range(count):
            if end - at < _ACE.size:
                raise SecurityDataError(f"entry {index} of the ACL at offset {offset} is truncated")
            ace_size = _ACE.unpack_from(data, at)[2]
            if ace_size < _ACE.size or ace_size > end - at:
                raise SecurityDataError(
                    f"entry {index} of the ACL at offset {offset} has the invalid size {ace_size}"
                )
            aces.append(Ace.from_bytes(data[at : at + ace_size]))
            at += ace_size
        return cls(tuple(aces), revision, (sbz1, sbz2), data[at:end])

    def encode(self) -> bytes:
        """Return the list as bytes. Raises SecurityDataError if it is too large for its size field."""
        body = b"".join(ace.data for ace in self.aces) + self.rest
        size = _ACL.size + len(body)
        if size > 0xFFFF:
            raise SecurityDataError(f"an ACL of {size} bytes is too large: at most 65535 are allowed")
        return _ACL.pack(self.revision, self.reserved[0], size, len(self.aces), self.reserved[1]) + body
