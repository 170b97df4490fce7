"""Accounts and groups: the users that may log on, with SID, groups and secrets."""

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
"""Tokens of one user: enough to give each of a few programs a new one before the old one is revoked."""


class UsersFileError(ValueError):
    """The users file, or what is to be written into it, is wrong; the text is one line for people."""


@dataclass(frozen=True, slots=True)
class User:
    """One account. `password` is a line of `passwords.hash_password`, `nt_hash` 16 bytes; empty: none.
    `tokens` are SHA-256 digests, 32 bytes each, of secrets that programs present.
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
    """All accounts and groups; names are compared without case."""

    domain: Sid
    next_rid: int = FIRST_ACCOUNT_RID
    users: dict[str, User] = field(default_factory=dict)  # by casefolded name
    groups: dict[str, tuple[str, Sid]] = field(default_factory=dict)  # casefolded name -> name, SID

    @classmethod
    def new(cls, random_bytes: Callable[[int], bytes]) -> Users:
        """No accounts yet, in a domain of its own."""
        numbers = random_bytes(12)
        parts = (int.from_bytes(numbers[at : at + 4], "little") for at in (0, 4, 8))
        return cls(Sid.build(5, 21, *parts))

    def find(self, name: str) -> User | None:
        """The account of a name."""
        return self.users.get(name.casefold())

    def by_uid(self, uid: int) -> User | None:
        """The account of a Unix user."""
        return next((user for user in self.users.values() if user.uid == uid), None)

    def by_sid(self, wanted: Sid) -> User | None:
        """The account with a SID."""
        return next((user for user in self.users.values() if user.sid == wanted), None)

    def is_group(self, wanted: Sid) -> bool:
        """Whether a SID is that of a group of this file."""
        return any(group == wanted for _, group in self.groups.values())

    def group_sid(self, name: str) -> Sid:
        """The SID of a group: its name here, a well-known name, or `S-1-…`. Raises UsersFileError."""
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
        """The SIDs of the groups of an account."""
        return frozenset(self.group_sid(name) for name in user.groups)

    def name_of(self, wanted: Sid) -> str:
        """The name of a SID, empty if it has none here."""
        user = self.by_sid(wanted)
        if user is not None:
            return user.name
        for name, group in self.groups.values():
            if group == wanted:
                return name
        return next((name for name, known in WELL_KNOWN.items() if known == wanted), "")

    def sid_of(self, name: str) -> Sid:
        """The SID of an account or group, or of `S-1-…`. Raises UsersFileError."""
        user = self.find(name)
        if user is not None:
            return user.sid
        try:
            return self.group_sid(name)
        except UsersFileError:
            raise UsersFileError(f"there is no user or group {name!r}") from None

    # ---- changes

    def add(self, name: str, *, uid: int | None, groups: Iterable[str], own_sid: Sid | None = None) -> User:
        """Add an account; groups that do not exist are created. Raises UsersFileError."""
        self._check_name(name)
        if self.find(name) is not None or name.casefold() in self.groups:
            raise UsersFileError(f"there is a user or group {name!r}")
        if uid is not None and self.by_uid(uid) is not None:
            raise UsersFileError(f"uid {uid} belongs to a user already")
        if own_sid is not None and self.name_of(own_sid):
            raise UsersFileError(f"{own_sid} belongs to {self.name_of(own_sid)!r} already")
        names = tuple(groups)
        for group in names:
            self._need_group(group)
        user = User(name, own_sid or self._new_sid(), uid, names)
        self.users[name.casefold()] = user
        return user

    def remove(self, name: str) -> User:
        """Remove an account. Raises UsersFileError."""
        try:
            return self.users.pop(name.casefold())
        except KeyError:
            raise UsersFileError(f"there is no user {name!r}") from None

    def set_password(self, name: str, password: str, random_bytes: Callable[[int], bytes]) -> None:
        """Keep a password as salted hash and as NT hash. Raises UsersFileError."""
        user = self._known(name)
        if not password:
            raise UsersFileError("the password is empty")
        hashed = hash_password(password, random_bytes(SALT_SIZE))
        self.users[name.casefold()] = replace(user, password=hashed, nt_hash=nt_hash(password))

    def add_token(self, name: str, digest: bytes) -> None:
        """Keep the SHA-256 of one more token. Raises UsersFileError, also for one token too many."""
        user = self._known(name)
        if len(user.tokens) >= MAX_TOKENS:
            raise UsersFileError(f"{user.name!r} has {MAX_TOKENS} tokens; revoke them first")
        self.users[name.casefold()] = replace(user, tokens=(*user.tokens, digest))

    def revoke_tokens(self, name: str) -> int:
        """Remove all tokens of an account. Return how many there were. Raises UsersFileError."""
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
