"""Resources for operators about accounts, like those in `protocol.resources`. None of them has a secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msmq_fast.protocol.resources import Resource

__all__ = ["ACCOUNT_KINDS", "AccountPage", "GroupInfo", "UserInfo"]

ACCOUNT_KINDS: Final = ("users", "groups")


@dataclass(frozen=True, slots=True)
class UserInfo(Resource):
    """A user of the users file."""

    name: str = ""
    sid: str = ""
    uid: int | None = None
    """The Unix user with this account."""
    groups: tuple[str, ...] = ()
    password: bool = False
    """Whether the user has a password."""
    tokens: int = 0
    """Number of tokens of the user's programs."""
    last_logon: int = 0
    """Time of the last log-on with a password or a token since the start of the server; 0 for none."""
    last_address: str = ""
    """The network address of that log-on."""
    last_method: str = ""
    """The secret of that log-on: `a token`, `NTLM`, …"""


@dataclass(frozen=True, slots=True)
class GroupInfo(Resource):
    """A group of the users file."""

    name: str = ""
    sid: str = ""
    members: int = 0
    """Number of its users."""


@dataclass(frozen=True, slots=True)
class AccountPage(Resource):
    """One page of users or groups, in the order of their names; the other tuple is empty."""

    users: tuple[UserInfo, ...] = field(default=(), metadata={"of": UserInfo})
    groups: tuple[GroupInfo, ...] = field(default=(), metadata={"of": GroupInfo})
    total: int = 0
    """Number of users or groups on all pages."""
