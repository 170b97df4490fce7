"""Telling a store from a copy of it.

A queue manager that runs on from a copy or an old state of its store would number its messages and
transactional sequences anew, and receivers would silently drop them as duplicates. So each start compares
where the store lies, and what it said when it was last open, with what is written in it; a difference makes a
new incarnation.

Two facts are kept in META and compared:
- the inode of the data file (a copy has another one), and, only if both differ, the file system and the
  machine: a container that is started again on the same volume is not a copy, a cloned disk in another
  machine is;
- a token drawn at every start, which is also written to the lock file before: an older state put back under
  the same inode does not hold one of the last two tokens.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

DATA_NAME: Final = "data.mdb"
_MACHINE_FILES: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


class Identity(NamedTuple):
    """The place of a store, and the token of its last start."""

    inode: int
    file_system: int
    machine: str
    token: str

    def stored(self) -> list[Any]:
        """As kept in META."""
        return list(self)


def machine_id() -> str:
    """The machine's id, '' where there is none."""
    for path in _MACHINE_FILES:
        try:
            return path.read_text().strip()
        except OSError:
            continue
    return ""


def identity_of(directory: Path, token: str) -> Identity:
    """The identity that the store in `directory` would have now."""
    path = directory / DATA_NAME
    return Identity(path.stat().st_ino, os.statvfs(path).f_fsid, machine_id(), token)


def is_copy(stored: Any, now: Identity, tokens: list[str]) -> bool:
    """True when the store must take a new incarnation; `tokens` are those of the lock file, none if it was
    not there.
    """
    if not isinstance(stored, list) or len(stored) != len(Identity._fields):
        return stored is not None
    before = Identity._make(stored)
    if before.inode != now.inode:
        return True
    if before.file_system != now.file_system and before.machine != now.machine:
        return True
    return bool(tokens) and before.token not in tokens
