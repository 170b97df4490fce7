"""Makes the token of an authenticated caller: a Unix user, a user of the users file, or the sender of a
message.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import struct
from collections.abc import Callable, Iterable
from enum import IntEnum, StrEnum
from typing import Final

from msmq_fast.protocol.text import quoted
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import ADMINISTRATORS, ANONYMOUS, AUTHENTICATED_USERS, EVERYONE, USERS, Sid
from msmq_fast.security.token import ANONYMOUS_TOKEN, EVERYONE_TOKEN, Privilege, Token
from msmq_fast.security.users import User, Users, UsersFileError

__all__ = ["Principals", "SenderType", "UnsignedSid", "unix_groups"]

# As Samba numbers them: 1 users, 2 groups. 3 is ours, for programs that are known by a token only.
_UNIX_AUTHORITY: Final = 22
_UNIX_USER, _UNIX_GROUP, _PROGRAM = 1, 2, 3


class SenderType(IntEnum):
    """How a message names its sender: SecurityHeader.Flags.ST (MS-MQMQ 2.2.20.6)."""

    NONE = 0
    SID = 1
    QUEUE_MANAGER = 2


class UnsignedSid(StrEnum):
    """How far the SID in an unsigned message is trusted as the SID of the sender (AMB-23)."""

    USE = "use"
    ANONYMOUS = "anonymous"


def unix_groups(uid: int) -> list[int]:
    """Return the group ids of a Unix user; an empty list if the system does not know the user."""
    try:
        entry = pwd.getpwuid(uid)
        return os.getgrouplist(entry.pw_name, entry.pw_gid)
    except (KeyError, OSError):
        return []


class Principals:
    """Makes tokens. `users` returns the current accounts; `own_uid` is the server's own Unix user."""

    def __init__(
        self,
        users: Callable[[], Users],
        own_uid: int,
        groups_of: Callable[[int], Iterable[int]] = unix_groups,
    ) -> None:
        self._users = users
        self._own_uid = own_uid
        self._groups_of = groups_of

    @property
    def users(self) -> Users:
        """Return the current accounts."""
        return self._users()

    def of_unix(self, uid: int, name: str = "") -> Token:
        """Return the token of the user that the kernel reports for a Unix socket.

        root and the server's own user are administrators.
        """
        user = self.users.by_uid(uid)
        extra = [ADMINISTRATORS] if uid in (0, self._own_uid) else []
        if user is not None:
            return self._known(user, extra)
        groups = [Sid.build(_UNIX_AUTHORITY, _UNIX_GROUP, gid) for gid in self._groups_of(uid)]
        account = Sid.build(_UNIX_AUTHORITY, _UNIX_USER, uid)
        return _token(account, name or f"uid {uid}", groups + extra, groups[0] if groups else None)

    def of_name(self, name: str, groups: Iterable[str] = ()) -> Token:
        """Return the token of a program that was authenticated as `name`. If the users file has an account
        with this name, the token is that of the account; otherwise its SID is derived from the name. The
        token also gets `groups`. Raises UsersFileError if a group does not exist.
        """
        users = self.users
        extra = [users.group_sid(group) for group in groups]
        user = users.find(name)
        if user is not None:
            return self._known(user, extra)
        digest = hashlib.blake2s(name.casefold().encode(), digest_size=16).digest()
        account = Sid.build(_UNIX_AUTHORITY, _PROGRAM, *struct.unpack("<4I", digest))
        return _token(account, name, extra)

    def of_principal(self, principal: str, realm: str) -> Token:
        """Return the token of an authenticated Kerberos principal: that of the account with the name
        `user@REALM`, or, for principals of the server's own `realm`, `user`.

        If there is no such account, the SID of the token is derived from the principal, and the token has no
        groups.
        """
        name, at, of = principal.rpartition("@")
        local = (
            at and of == realm and self.users.find(principal) is None and self.users.find(name) is not None
        )
        return self.of_name(name if local else principal)

    def of_account(self, name: str) -> Token:
        """Return the token of an account: a user's name, `uid:N`, `unix:NAME`, `anonymous`, `everyone` or a
        SID.

        Raises UsersFileError.
        """
        key = name.casefold()
        if key == "anonymous":
            return ANONYMOUS_TOKEN
        if key == "everyone":
            return EVERYONE_TOKEN
        uid = _uid(name)
        if uid is not None:
            return self.of_unix(uid)
        user = self.users.find(name)
        return self._known(user, []) if user is not None else self.of_sid(self.users.sid_of(name))

    def sid_of(self, name: str) -> Sid:
        """Return the SID of a user or group, given as its name, `uid:N`, `unix:NAME` or `S-1-…`. Raises
        UsersFileError if it does not exist.
        """
        uid = _uid(name)
        return self.of_unix(uid).user if uid is not None else self.users.sid_of(name)

    def of_sid(self, account: Sid) -> Token:
        """Return the token for a SID, with the groups of the account that has this SID, if there is one.

        The caller has not proven to be this account, so the token has no privileges.
        """
        if account == ANONYMOUS:
            return ANONYMOUS_TOKEN
        users = self.users
        user = users.by_sid(account)
        groups = users.group_sids(user) if user is not None else frozenset()
        return Token(account, frozenset((account, EVERYONE)) | groups, user.name if user is not None else "")

    def of_sender(
        self, kind: int, identifier: bytes, unsigned: UnsignedSid, *, verified: bool = False
    ) -> Token | None:
        """Return the token of the sender of a message (AMB-22), None if its SID is malformed. `kind` and
        `identifier` are from the SecurityHeader. `verified`: a signature proves the sender. `unsigned` is how
        far the SID in an unsigned message is trusted (AMB-23).
        """
        if not verified and unsigned is UnsignedSid.ANONYMOUS:
            return ANONYMOUS_TOKEN
        if kind == SenderType.QUEUE_MANAGER:
            return EVERYONE_TOKEN
        if kind != SenderType.SID:
            return ANONYMOUS_TOKEN
        try:
            account = Sid.from_bytes(identifier)
        except SecurityDataError:
            return None
        return self.of_sid(account) if verified else self._of_claim(account)

    def _of_claim(self, account: Sid) -> Token:
        """Return the token for a SID that the sender of a message names without proof. For the SID of a
        group, a well-known account or an administrator, it is the anonymous token: every access list has some
        of them, so any sender could otherwise use every queue.
        """
        if not account.is_account or self.users.is_group(account):
            return ANONYMOUS_TOKEN
        token = self.of_sid(account)
        return ANONYMOUS_TOKEN if token.administrator or token.reader else token

    def _known(self, user: User, extra: list[Sid]) -> Token:
        return _token(user.sid, user.name, [*self.users.group_sids(user), *extra])


def _uid(name: str) -> int | None:
    """Return the number of a user of this computer, written as `uid:N` or `unix:NAME`; None for other
    accounts. Raises UsersFileError for an unknown NAME.
    """
    kind, _, user = name.partition(":")
    if kind.casefold() == "unix":
        try:
            return pwd.getpwnam(user).pw_uid
        except (KeyError, ValueError):  # ValueError: a NUL byte
            raise UsersFileError(f"this computer has no user {quoted(user)}") from None
    if kind.casefold() != "uid" or not user.isdecimal() or len(user) > 10:
        return None
    return int(user) if int(user) < 1 << 32 else None


def _token(account: Sid, name: str, groups: list[Sid], primary: Sid | None = None) -> Token:
    sids = frozenset((account, EVERYONE, AUTHENTICATED_USERS, USERS, *groups))
    privileges = Privilege.NONE
    if ADMINISTRATORS in sids:
        privileges = Privilege.SECURITY | Privilege.TAKE_OWNERSHIP
    return Token(account, sids, name, primary, privileges)
