"""The users file: the users that may log on, with their SIDs, groups and secrets. TOML, mode 0600.

domain = "S-1-5-21-1-2-3"        # SIDs of new users and groups belong to it
next_rid = 1002

[[groups]]
name = "operators"
sid = "S-1-5-21-1-2-3-1001"

[[users]]
name = "alice"
sid = "S-1-5-21-1-2-3-1000"
uid = 1000                       # the Unix user with this account
groups = ["operators", "administrators"]
password = "scrypt$…"
nt_hash = "…"
tokens = ["…"]                   # SHA-256 of each, in hexadecimal
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import FIRST_ACCOUNT_RID, sid
from msmq_fast.security.users import MAX_TOKENS, User, Users, UsersFileError

__all__ = ["UsersSource", "load_users", "save_users"]


_LARGEST: Final = 16 << 20
"""Bytes of a file: some 40,000 users."""


def load_users(path: Path) -> Users:
    """Read the file. Raises UsersFileError, FileNotFoundError and other OSErrors."""
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise UsersFileError(f"{path}: is larger than {_LARGEST >> 20} MiB")
    try:
        return _from_toml(tomllib.loads(content.decode()))
    except (tomllib.TOMLDecodeError, UsersFileError, SecurityDataError, UnicodeDecodeError) as error:
        raise UsersFileError(f"{path}: {error}") from None


def _from_toml(content: dict[str, Any]) -> Users:
    _only(content, {"domain", "next_rid", "groups", "users"}, "the file")
    users = Users(sid(_text(content, "domain")), _number(content, "next_rid", FIRST_ACCOUNT_RID))
    for entry in _tables(content, "groups"):
        _only(entry, {"name", "sid"}, "a group")
        name = _text(entry, "name")
        if name.casefold() in users.groups:
            raise UsersFileError(f"group {name!r} occurs twice")
        users.groups[name.casefold()] = (name, sid(_text(entry, "sid")))
    for entry in _tables(content, "users"):
        _only(entry, {"name", "sid", "uid", "groups", "password", "nt_hash", "tokens"}, "a user")
        user = _user(entry)
        if users.find(user.name) is not None or users.by_sid(user.sid) is not None:
            raise UsersFileError(f"user {user.name!r} or its SID occurs twice")
        if user.uid is not None and users.by_uid(user.uid) is not None:
            raise UsersFileError(f"uid {user.uid} belongs to two users")
        users.users[user.name.casefold()] = user
        users.group_sids(user)
    return users


def _user(entry: dict[str, Any]) -> User:
    groups = entry.get("groups", [])
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise UsersFileError("groups must be a list of names")
    try:
        hashed = bytes.fromhex(_text(entry, "nt_hash", ""))
    except ValueError:
        raise UsersFileError("nt_hash is not hexadecimal") from None
    if len(hashed) not in (0, 16):
        raise UsersFileError("nt_hash must have 32 hexadecimal digits")
    uid = _number(entry, "uid", 0) if "uid" in entry else None
    return User(
        _text(entry, "name"),
        sid(_text(entry, "sid")),
        uid,
        tuple(groups),
        _text(entry, "password", ""),
        hashed,
        _digests(entry),
    )


def _digests(entry: dict[str, Any]) -> tuple[bytes, ...]:
    """Return the token digests of a user. Raises UsersFileError."""
    given = entry.get("tokens", [])
    if not isinstance(given, list) or len(given) > MAX_TOKENS:
        raise UsersFileError(f"tokens must be a list of at most {MAX_TOKENS} SHA-256 digests")
    for text in given:
        if not isinstance(text, str) or not re.fullmatch("[0-9a-fA-F]{64}", text):
            raise UsersFileError("each token must have 64 hexadecimal digits")
    return tuple(map(bytes.fromhex, given))


def _only(entry: dict[str, Any], known: set[str], what: str) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        raise UsersFileError(f"unknown key {unknown[0]!r} in {what}")


def _tables(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = content.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsersFileError(f"{key} must be a list of TOML tables, each written as [[{key}]]")
    return entries


def _text(entry: dict[str, Any], key: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise UsersFileError(f"{key} must be text")
    return value


def _number(entry: dict[str, Any], key: str, default: int) -> int:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise UsersFileError(f"{key} must be a number from 0 to 4294967295")
    return value


def save_users(path: Path, users: Users) -> None:
    """Replace the file atomically, mode 0600. Raises OSError."""
    text = _to_toml(users)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _to_toml(users: Users) -> str:
    lines = [f'domain = "{users.domain}"', f"next_rid = {users.next_rid}"]
    for name, group in users.groups.values():
        lines += ["", "[[groups]]", f"name = {_quoted(name)}", f'sid = "{group}"']
    for user in users.users.values():
        lines += ["", "[[users]]", f"name = {_quoted(user.name)}", f'sid = "{user.sid}"']
        if user.uid is not None:
            lines.append(f"uid = {user.uid}")
        if user.groups:
            lines.append(f"groups = [{', '.join(map(_quoted, user.groups))}]")
        if user.password:
            lines.append(f"password = {_quoted(user.password)}")
        if user.nt_hash:
            lines.append(f'nt_hash = "{user.nt_hash.hex()}"')
        if user.tokens:
            lines.append(f"tokens = [{', '.join(_quoted(digest.hex()) for digest in user.tokens)}]")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a TOML basic string; its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


class UsersSource:
    """The users file of a running server. It is read again whenever it has changed.

    A missing file counts as one without users. If a changed file is invalid, the accounts that were read
    before stay in force, and `on_error` is called once.
    """

    def __init__(self, path: Path, empty: Users, on_error: Callable[[str], None]) -> None:
        self.path = path
        self._empty = self._users = empty
        self._on_error = on_error
        self._seen: tuple[int, int, int] | None = None

    def __call__(self) -> Users:
        try:
            status = self.path.stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:
            self._users, self._seen = self._empty, None
            return self._users
        except OSError as error:
            self._on_error(f"{self.path}: {error.strerror}")
            return self._users
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._users = load_users(self.path)
            except (UsersFileError, OSError) as error:
                self._on_error(str(error))
        return self._users
