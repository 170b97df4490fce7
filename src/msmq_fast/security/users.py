"""Accounts and groups: the users that may log on, with their SIDs, groups and secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.nthash import nt_hash
from msmq_fast.security.passwords import SALT_SIZE, hash_password
from msmq_fast.security.sid import (
    ADMINISTRATORS,
    ANONYMOUS,
    AUTHENTICATED_USERS,
    EVERYONE,
    FIRST_ACCOUNT_RID,
    READERS,
    USERS,
    Sid,
    sid,
)

__all__ = ["MAX_TOKENS", "WELL_KNOWN", "User", "Users", "UsersFileError"]

WELL_KNOWN: Final = {
    "administrators": ADMINISTRATORS,
    "users": USERS,
    "readers": READERS,
    "everyone": EVERYONE,
    "anonymous": ANONYMOUS,
    "authenticated": AUTHENTICATED_USERS,
}
_MAX_NAME: Final = 104
MAX_TOKENS: Final = 8
"""Maximum number of tokens of one user: enough for a few programs, each with a new token before its old one
is revoked.
"""


class UsersFileError(ValueError):
    """Raised if the users file, or a change to it, is invalid; the text is one line for people."""


@dataclass(frozen=True, slots=True)
class User:
    """One account. `password` is a line of `passwords.hash_password` and `nt_hash` has 16 bytes; each is
    empty if the account does not have it. `tokens` are SHA-256 digests, 32 bytes each, of the secrets that
    programs present.
    """

    name: str
    sid: Sid
    uid: int | None = None
    groups: tuple[str, ...] = ()
    password: str = ""
    nt_hash: bytes = b""
    tokens: tuple[bytes, ...] = ()


@dataclass(slots=True)
class Users:
    """All accounts and groups; names are case-insensitive."""

    domain: Sid
    next_rid: int = FIRST_ACCOUNT_RID
    users: dict[str, User] = field(default_factory=dict)  # by casefolded name
    groups: dict[str, tuple[str, Sid]] = field(default_factory=dict)  # casefolded name -> name, SID

    @classmethod
    def new(cls, random_bytes: Callable[[int], bytes]) -> Users:
        """Return an empty set of accounts with a new domain SID."""
        numbers = random_bytes(12)
        parts = (int.from_bytes(numbers[at : at + 4], "little") for at in (0, 4, 8))
        return cls(Sid.build(5, 21, *parts))

    def find(self, name: str) -> User | None:
        """Return the account with this name, None if there is none."""
        return self.users.get(name.casefold())

    def by_uid(self, uid: int) -> User | None:
        """Return the account of a Unix user, None if there is none."""
        return next((user for user in self.users.values() if user.uid == uid), None)

    def by_sid(self, wanted: Sid) -> User | None:
        """Return the account with this SID, None if there is none."""
        return next((user for user in self.users.values() if user.sid == wanted), None)

    def is_group(self, wanted: Sid) -> bool:
        """Whether the SID belongs to a group of the users file."""
        return any(group == wanted for _, group in self.groups.values())

    def group_sid(self, name: str) -> Sid:
        """Return the SID of a group, given its name in the users file, a well-known name, or `S-1-…`. Raises
        UsersFileError if there is no such group.
        """
        key = name.casefold()
        if key in self.groups:
            return self.groups[key][1]
        if key in WELL_KNOWN:
            return WELL_KNOWN[key]
        try:
            return sid(name)
        except SecurityDataError:
            raise UsersFileError(f"there is no group {name!r}") from None

    def group_sids(self, user: User) -> frozenset[Sid]:
        """Return the SIDs of the groups of an account."""
        return frozenset(self.group_sid(name) for name in user.groups)

    def name_of(self, wanted: Sid) -> str:
        """Return the name of the account or group with a SID, "" if the users file has none with it."""
        user = self.by_sid(wanted)
        if user is not None:
            return user.name
        for name, group in self.groups.values():
            if group == wanted:
                return name
        return next((name for name, known in WELL_KNOWN.items() if known == wanted), "")

    def sid_of(self, name: str) -> Sid:
        """Return the SID of an account or group, given its name or `S-1-…`. Raises UsersFileError."""
        user = self.find(name)
        if user is not None:
            return user.sid
        try:
            return self.group_sid(name)
        except UsersFileError:
            raise UsersFileError(f"there is no user or group {name!r}") from None

    # ---- changes

    def add(self, name: str, *, uid: int | None, groups: Iterable[str], own_sid: Sid | None = None) -> User:
        """Add an account, and create those of its groups that do not exist. Raises UsersFileError if the
        name, `uid` or `own_sid` is already in use or invalid.
        """
        self._check_name(name)
        if self.find(name) is not None or name.casefold() in self.groups:
            raise UsersFileError(f"a user or group {name!r} already exists")
        if uid is not None and self.by_uid(uid) is not None:
            raise UsersFileError(f"uid {uid} already belongs to a user")
        if own_sid is not None and self.name_of(own_sid):
            raise UsersFileError(f"{own_sid} already belongs to {self.name_of(own_sid)!r}")
        names = tuple(groups)
        for group in names:
            self._need_group(group)
        user = User(name, own_sid or self._new_sid(), uid, names)
        self.users[name.casefold()] = user
        return user

    def remove(self, name: str) -> User:
        """Remove an account. Raises UsersFileError if there is none with this name."""
        try:
            return self.users.pop(name.casefold())
        except KeyError:
            raise UsersFileError(f"there is no user {name!r}") from None

    def set_password(self, name: str, password: str, random_bytes: Callable[[int], bytes]) -> None:
        """Store a password as a salted hash and as an NT hash. Raises UsersFileError."""
        user = self._known(name)
        if not password:
            raise UsersFileError("the password is empty")
        hashed = hash_password(password, random_bytes(SALT_SIZE))
        self.users[name.casefold()] = replace(user, password=hashed, nt_hash=nt_hash(password))

    def add_token(self, name: str, digest: bytes) -> None:
        """Store the SHA-256 digest of one more token. Raises UsersFileError if there is no such user or it
        has MAX_TOKENS tokens.
        """
        user = self._known(name)
        if len(user.tokens) >= MAX_TOKENS:
            raise UsersFileError(f"{user.name!r} has {MAX_TOKENS} tokens; revoke them first")
        self.users[name.casefold()] = replace(user, tokens=(*user.tokens, digest))

    def revoke_tokens(self, name: str) -> int:
        """Remove all tokens of an account. Return how many tokens it had. Raises UsersFileError if there is
        no such account.
        """
        user = self._known(name)
        self.users[name.casefold()] = replace(user, tokens=())
        return len(user.tokens)

    def _known(self, name: str) -> User:
        user = self.find(name)
        if user is None:
            raise UsersFileError(f"there is no user {name!r}")
        return user

    def _need_group(self, name: str) -> None:
        try:
            self.group_sid(name)
        except UsersFileError:
            self._check_name(name)
            if self.find(name) is not None:
                raise UsersFileError(f"{name!r} is a user, not a group") from None
            self.groups[name.casefold()] = (name, self._new_sid())

    def _new_sid(self) -> Sid:
        taken = {user.sid for user in self.users.values()} | {group for _, group in self.groups.values()}
        while (candidate := self.domain.child(self.next_rid)) in taken:
            self.next_rid += 1
        self.next_rid += 1
        return candidate

    @staticmethod
    def _check_name(name: str) -> None:
        if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or name != name.strip():
            raise UsersFileError(f"{name!r} is not a valid name: use 1 to {_MAX_NAME} printable characters")
        if name.casefold() in WELL_KNOWN or name.upper().startswith("S-1-"):
            raise UsersFileError(f"the name {name!r} is reserved")
