"""The differences between two states of the users file, in words for the audit; no secrets."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.security.users import User, Users

__all__ = ["UserChange", "user_changes"]


@dataclass(frozen=True, slots=True)
class UserChange:
    """One user that was added, removed or changed."""

    operation: str
    name: str
    detail: str = ""


def user_changes(before: Users, after: Users) -> list[UserChange]:
    """Return the users that differ, in the order of their names."""
    found = []
    for key in sorted(before.users.keys() | after.users.keys()):
        old, new = before.users.get(key), after.users.get(key)
        if old is None and new is not None:
            found.append(UserChange("add user", new.name, "; ".join(_changes(User("", new.sid), new))))
        elif old is not None and new is None:
            found.append(UserChange("remove user", old.name))
        elif old is not None and new is not None and old != new:
            found.append(UserChange("change user", new.name, "; ".join(_changes(old, new))))
    return found


def _changes(old: User, new: User) -> list[str]:
    parts = []
    if old.sid != new.sid:
        parts.append(f"SID: {new.sid}")
    if old.uid != new.uid:
        parts.append(f"uid: {'none' if new.uid is None else new.uid}")
    joined = sorted(set(new.groups) - set(old.groups))
    left = sorted(set(old.groups) - set(new.groups))
    if joined or left:
        parts.append("groups: " + " ".join([f"+{name}" for name in joined] + [f"-{name}" for name in left]))
    if (old.password, old.nt_hash) != (new.password, new.nt_hash):
        parts.append("password set" if new.password or new.nt_hash else "password removed")
    added = len(set(new.tokens) - set(old.tokens))
    revoked = len(set(old.tokens) - set(new.tokens))
    if added:
        parts.append(f"tokens added: {added}")
    if revoked:
        parts.append(f"tokens revoked: {revoked}")
    return parts
