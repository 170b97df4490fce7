"""Security identifiers (MS-DTYP 2.4.2): 8 to 68 bytes on the wire, `S-1-…` as text."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from msmq_fast.security.errors import SecurityDataError

__all__ = [
    "ADMINISTRATORS",
    "ALIASES",
    "ANONYMOUS",
    "AUTHENTICATED_USERS",
    "DOMAIN_ALIASES",
    "EVERYONE",
    "FIRST_ACCOUNT_RID",
    "GUEST_RID",
    "LOCAL_SYSTEM",
    "OWNER_RIGHTS",
    "PRINCIPAL_SELF",
    "READERS",
    "USERS",
    "Sid",
    "sid",
]

MAX_SUB_AUTHORITIES: Final = 15
_HEAD: Final = 8
_TEXT: Final = re.compile(
    r"S-1-(0x[0-9A-Fa-f]{1,12}|[0-9]{1,15})((?:-[0-9]{1,10})+)", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Sid:
    """One SID, stored in wire form: equal SIDs have equal bytes."""

    data: bytes

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Sid:
        """Return the SID that fills `data` exactly. Raises SecurityDataError."""
        found, size = cls.read(data, 0)
        if size != len(data):
            raise SecurityDataError(f"a SID of {size} bytes does not fill its field of {len(data)} bytes")
        return found

    @classmethod
    def read(cls, data: bytes | memoryview, offset: int) -> tuple[Sid, int]:
        """Return (SID that begins at `offset` of `data`, its size in bytes). Raises SecurityDataError if it
        is malformed or truncated.
        """
        if offset < 0 or len(data) - offset < _HEAD:
            raise SecurityDataError(f"the SID at offset {offset} is truncated")
        revision, count = data[offset], data[offset + 1]
        if revision != 1:
            raise SecurityDataError(f"the SID at offset {offset} has the unknown revision {revision}")
        if count > MAX_SUB_AUTHORITIES:
            raise SecurityDataError(
                f"the SID at offset {offset} has {count} sub-authorities; at most 15 are allowed"
            )
        size = _HEAD + 4 * count
        if len(data) - offset < size:
            raise SecurityDataError(f"the SID at offset {offset} is truncated")
        return cls(bytes(data[offset : offset + size])), size

    @classmethod
    def build(cls, authority: int, *sub_authorities: int) -> Sid:
        """Return the SID with this identifier authority and these sub-authorities. Raises SecurityDataError
        if a number is out of range, or if there are too many.
        """
        if len(sub_authorities) > MAX_SUB_AUTHORITIES:
            raise SecurityDataError("a SID has at most 15 sub-authorities")
        try:
            return cls(
                bytes((1, len(sub_authorities)))
                + authority.to_bytes(6, "big")
                + struct.pack(f"<{len(sub_authorities)}I", *sub_authorities)
            )
        except (OverflowError, struct.error):
            raise SecurityDataError("a number of the SID is out of range") from None

    @property
    def authority(self) -> int:
        """IdentifierAuthority."""
        return int.from_bytes(self.data[2:8], "big")

    @property
    def sub_authorities(self) -> tuple[int, ...]:
        """The numbers of SubAuthority, in order."""
        return struct.unpack_from(f"<{self.data[1]}I", self.data, _HEAD)

    @property
    def rid(self) -> int | None:
        """The last sub-authority, None if there is none."""
        subs = self.sub_authorities
        return subs[-1] if subs else None

    def child(self, rid: int) -> Sid:
        """Return the SID of the account with the relative identifier `rid` in the domain with this SID."""
        return Sid.build(self.authority, *self.sub_authorities, rid)

    def within(self, domain: Sid) -> bool:
        """Whether this is the SID of an account of the domain with the SID `domain`."""
        own = self.sub_authorities
        return bool(own) and (self.authority, own[:-1]) == (domain.authority, domain.sub_authorities)

    @property
    def is_account(self) -> bool:
        """Whether this can be the SID of an ordinary account of a Windows domain or computer:
        `S-1-5-21-a-b-c-RID` with a relative identifier above those that every domain has (Administrator,
        Domain Admins, ...).
        """
        own = self.sub_authorities
        return self.authority == 5 and len(own) == 5 and own[0] == 21 and own[4] >= FIRST_ACCOUNT_RID

    def __str__(self) -> str:
        authority = self.authority
        head = f"0x{authority:012X}" if authority >= 1 << 32 else str(authority)
        return "-".join(["S-1", head, *map(str, self.sub_authorities)])


@lru_cache(maxsize=1024)
def sid(text: str) -> Sid:
    """Parse the text of a SID, `S-1-…` (MS-DTYP 2.4.2.1). Raises SecurityDataError."""
    matched = _TEXT.fullmatch(text)
    if matched is None:
        raise SecurityDataError(f"{text!r} is not a SID")
    authority = int(matched[1], 16 if "x" in matched[1].lower() else 10)
    subs = [int(part) for part in matched[2][1:].split("-")]
    return Sid.build(authority, *subs)


EVERYONE: Final = sid("S-1-1-0")
OWNER_RIGHTS: Final = sid("S-1-3-4")
ANONYMOUS: Final = sid("S-1-5-7")
PRINCIPAL_SELF: Final = sid("S-1-5-10")
AUTHENTICATED_USERS: Final = sid("S-1-5-11")
LOCAL_SYSTEM: Final = sid("S-1-5-18")
ADMINISTRATORS: Final = sid("S-1-5-32-544")
USERS: Final = sid("S-1-5-32-545")
READERS: Final = sid("S-1-22-4-1")
"""The Readers group, defined by msmq-fast: its members may read all messages in bulk."""
GUEST_RID: Final = 501
"""DOMAIN_USER_RID_GUEST (MS-SAMR 2.2.1.14)."""
FIRST_ACCOUNT_RID: Final = 1000
"""Relative identifiers below this one are well-known users and groups of a domain (MS-SAMR 2.2.1.14)."""

# sid-token of MS-DTYP 2.5.1.1 whose SIDs are the same everywhere.
ALIASES: Final[dict[str, Sid]] = {
    alias: sid(text)
    for alias, text in {
        "ED": "S-1-5-9", "BA": "S-1-5-32-544", "BG": "S-1-5-32-546", "BU": "S-1-5-32-545",
        "AO": "S-1-5-32-548", "BO": "S-1-5-32-551", "PO": "S-1-5-32-550", "SO": "S-1-5-32-549",
        "AU": "S-1-5-11", "PS": "S-1-5-10",
        "CO": "S-1-3-0", "CG": "S-1-3-1", "SY": "S-1-5-18", "PU": "S-1-5-32-547", "WD": "S-1-1-0",
        "RE": "S-1-5-32-552", "IU": "S-1-5-4", "NU": "S-1-5-2", "SU": "S-1-5-6", "RC": "S-1-5-12",
        "WR": "S-1-5-33", "AN": "S-1-5-7", "RU": "S-1-5-32-554", "LS": "S-1-5-19", "NS": "S-1-5-20",
        "RD": "S-1-5-32-555", "NO": "S-1-5-32-556", "MU": "S-1-5-32-558", "LU": "S-1-5-32-559",
        "IS": "S-1-5-32-568", "CY": "S-1-5-32-569", "OW": "S-1-3-4", "ER": "S-1-5-32-573",
        "CD": "S-1-5-32-574", "AC": "S-1-15-2-1", "RA": "S-1-5-32-575", "ES": "S-1-5-32-576",
        "MS": "S-1-5-32-577", "UD": "S-1-5-84-0-0-0-0-0", "HA": "S-1-5-32-578", "AA": "S-1-5-32-579",
        "RM": "S-1-5-32-580", "LW": "S-1-16-4096", "ME": "S-1-16-8192", "MP": "S-1-16-8448",
        "HI": "S-1-16-12288", "SI": "S-1-16-16384",
    }.items()
}  # fmt: skip

# Those that hang on a domain: the relative identifier.
DOMAIN_ALIASES: Final[dict[str, int]] = {
    "LA": 500, "LG": 501, "DA": 512, "DU": 513, "DG": 514, "DC": 515, "DD": 516, "CA": 517, "SA": 518,
    "EA": 519, "PA": 520, "CN": 522, "RS": 553, "RO": 498,
}  # fmt: skip
