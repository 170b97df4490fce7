"""Tokens: the identity of a caller for access decisions (MS-DTYP 2.5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Final

from msmq_fast.security.sid import ADMINISTRATORS, ANONYMOUS, EVERYONE, READERS, Sid

__all__ = ["ANONYMOUS_TOKEN", "EVERYONE_TOKEN", "Privilege", "Token"]


class Privilege(Flag):
    """The two privileges that the access check uses."""

    NONE = 0
    SECURITY = auto()
    TAKE_OWNERSHIP = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """The identity of a caller. `user` is the SID of the account, which is also in `sids`; `name` is a name
    for people. `address` is for the audit and the event feed only: the network address of the caller, `local`
    for a Unix socket, "" if it is not known. So is `program`, the name that the caller's program gave itself.
    """

    user: Sid
    sids: frozenset[Sid]
    name: str = ""
    primary_group: Sid | None = None
    privileges: Privilege = Privilege.NONE
    address: str = field(default="", compare=False)
    program: str = field(default="", compare=False)

    @property
    def administrator(self) -> bool:
        """Whether the caller is in the Administrators group."""
        return ADMINISTRATORS in self.sids

    @property
    def reader(self) -> bool:
        """Whether the caller is in the Readers group, which may read all messages in bulk whatever
        descriptors say.
        """
        return READERS in self.sids

    def __str__(self) -> str:
        return f"{self.name} ({self.user})" if self.name else str(self.user)


ANONYMOUS_TOKEN: Final = Token(ANONYMOUS, frozenset((ANONYMOUS,)), "anonymous")
"""An anonymous caller; not a member of Everyone."""

EVERYONE_TOKEN: Final = Token(EVERYONE, frozenset((EVERYONE,)), "everyone")
"""An authenticated caller of which nothing else is known, such as a queue manager that signed with its GUID.
"""
