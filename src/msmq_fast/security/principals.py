"""Makes the token of an authenticated caller: a Unix user, a user of the users file or of the domain, or the
sender of a message.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum, StrEnum
from typing import Any, Final

from msmq_fast.protocol.errors import InvalidParameter, MSMQError
from msmq_fast.protocol.text import quoted
from msmq_fast.security.domainaccounts import (
    DomainAccounts,
    DomainLogon,
    DomainLogonRefused,
    is_of_a_domain,
)
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import ADMINISTRATORS, ANONYMOUS, AUTHENTICATED_USERS, EVERYONE, USERS, Sid
from msmq_fast.security.token import ANONYMOUS_TOKEN, EVERYONE_TOKEN, Privilege, Token
from msmq_fast.security.users import User, Users, UsersFileError
from msmq_fast.store.completion import Completion

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
    """Makes tokens. `users` returns the current accounts; `own_uid` is the server's own Unix user. `domain`
    are the accounts of the domain that the server is a member of.
    """

    def __init__(
        self,
        users: Callable[[], Users],
        own_uid: int,
        groups_of: Callable[[int], Iterable[int]] = unix_groups,
        domain: DomainAccounts | None = None,
    ) -> None:
        self._users = users
        self._own_uid = own_uid
        self._groups_of = groups_of
        self.domain = domain

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
        user = self._user_of(principal, realm)
        return self._known(user, []) if user is not None else self.of_name(principal)

    def of_domain_user(self, principal: str, realm: str, logon: DomainLogon) -> Token:
        """Return the token of a Kerberos principal whose ticket describes it as `logon`: its SID and groups
        in the domain, and also the SID and groups of the account that `of_principal` finds. Raises
        DomainLogonRefused.
        """
        domains = frozenset() if self.domain is None else self.domain.domains
        if not domains:
            raise DomainLogonRefused(
                "the SID of the domain is not known: no domain controller has answered yet, and "
                "security.domains is empty"
            )
        groups = list(logon.accepted_groups(domains, self.users.domain))
        user = self._user_of(principal, realm)
        if user is not None:
            groups += [user.sid, *self.users.group_sids(user)]
        return _token(logon.user, logon.name, groups, logon.primary_group)

    def _user_of(self, principal: str, realm: str) -> User | None:
        """Return the account of the users file with the name of a Kerberos principal."""
        user = self.users.find(principal)
        name, at, of = principal.rpartition("@")
        return self.users.find(name) if user is None and at and of == realm else user

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

    def name_of(self, account: Sid) -> str:
        """Return the name of an account or group, as far as it is known without asking; else ""."""
        found = self.users.name_of(account)
        return found if found or self.domain is None else self.domain.known_name(account)

    def learn(self, accounts: Iterable[Sid]) -> Completion[None]:
        """Look up the names that `name_of` does not know. It never fails."""
        if self.domain is None:
            return Completion.of(None)
        return self.domain.learn(one for one in accounts if not self.users.name_of(one))

    def resolve(self, name: str) -> Completion[Sid]:
        """Return the SID of an account as `sid_of` does, and also of `DOMAIN\\name` and `name@domain` of the
        domain. It fails with an MSMQError.
        """
        try:
            return Completion.of(self.sid_of(name))
        except UsersFileError as error:
            if self.domain is not None and ("\\" in name or "@" in name):
                return self.domain.sid_of(name)
            return _failed(InvalidParameter(str(error)))

    def resolve_token(self, name: str) -> Completion[Token]:
        """Return the token of an account as `of_account` does, and also for accounts of the domain. It fails
        with an MSMQError.
        """
        try:
            token = self.of_account(name)
        except UsersFileError:
            return self.resolve(name).then(self._of_domain_sid)
        return self._of_domain_sid(token.user) if not token.name else Completion.of(token)

    def _of_domain_sid(self, account: Sid) -> Completion[Token]:
        if self.domain is None or not any(account.within(one) for one in self.domain.domains):
            return Completion.of(self.of_sid(account))

        def made(logon: DomainLogon) -> Completion[Token]:
            try:
                return Completion.of(self.of_domain_user("", "", logon))
            except DomainLogonRefused as error:
                return _failed(InvalidParameter(str(error)))

        return self.domain.logon_of(account).then(made)

    def of_sid(self, account: Sid) -> Token:
        """Return the token for a SID, with the groups of the account that has this SID, if there is one.

        The caller has not proven to be this account, so the token has no privileges.
        """
        if account == ANONYMOUS:
            return ANONYMOUS_TOKEN
        users = self.users
        user = users.by_sid(account)
        groups = users.group_sids(user) if user is not None else frozenset()
        name = user.name if user is not None else self.name_of(account)
        return Token(account, frozenset((account, EVERYONE)) | groups, name)

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
        return self._of_proven(account) if verified else self._of_claim(account)

    def _of_proven(self, account: Sid) -> Token:
        """Return the token for a SID that a signature proves, with the groups of the account in the domain as
        far as memory has them.
        """
        token = self.of_sid(account)
        logon = None if self.domain is None else self.domain.known_logon(account)
        if logon is None or self.domain is None:
            return token
        try:
            groups = logon.accepted_groups(self.domain.domains, self.users.domain)
        except DomainLogonRefused:
            return token
        return replace(token, sids=token.sids | groups, name=token.name or logon.name)

    def lacks_groups(self, token: Token) -> bool:
        """Whether the token is that of an account of the domain whose groups memory does not have."""
        user = token.user
        if self.domain is None or user.within(self.users.domain):
            return False
        domains = self.domain.domains  # empty until a domain controller has answered
        mine = any(user.within(one) for one in domains) if domains else user.is_account
        return mine and self.domain.known_logon(user) is None

    def learn_groups(self, account: Sid) -> Completion[float] | None:
        """Ask for the groups that an account has in the domain; see DomainAccounts.learn_logon."""
        return None if self.domain is None else self.domain.learn_logon(account)

    def may_be_group(self, account: Sid) -> bool:
        """Whether a user of the domain may be a member of the group with this SID."""
        domains = frozenset() if self.domain is None else self.domain.domains
        return is_of_a_domain(account, domains, self.users.domain)

    def _of_claim(self, account: Sid) -> Token:
        """Return the token for a SID that the sender of a message names without proof. For the SID of a
        group, a well-known account or an administrator, it is the anonymous token: every access list has some
        of them, so any sender could otherwise use every queue.
        """
        if not account.is_account or self.users.is_group(account):
            return ANONYMOUS_TOKEN
        if self.domain is not None and self.domain.known_group(account):
            return ANONYMOUS_TOKEN
        token = self.of_sid(account)
        return ANONYMOUS_TOKEN if token.administrator or token.reader else token

    def _known(self, user: User, extra: list[Sid]) -> Token:
        return _token(user.sid, user.name, [*self.users.group_sids(user), *extra])


def _failed(error: MSMQError) -> Completion[Any]:
    done: Completion[Any] = Completion()
    done.fail(error)
    return done


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
