"""Detects that a store is a copy or an older state of itself.

A queue manager that continues from a copy or an old state of its store would use numbers of messages and of
transactional sequences a second time, and receivers would silently drop the new messages as duplicates. So
each start compares the location of the store, and the token in its lock file, with the values written in the
store. If they differ, the store gets a new incarnation.

Two facts are kept in META and compared:
- the location: the inode of the data file, which is another one in a copy, and the file system and the
  machine. The latter count only if both differ: a container that is restarted on the same volume is not a
  copy, a cloned disk in another machine is;
- a random token, new at every start and written to the lock file first: an older state that was restored
  under the same inode holds neither of the last two tokens.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

DATA_NAME: Final = "data.mdb"
_MACHINE_FILES: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


class Identity(NamedTuple):
    """Identifies a store: its location (inode of the data file, file system, machine), and the random token
    of its last start.
    """

    inode: int
    file_system: int
    machine: str
    token: str

    def stored(self) -> list[Any]:
        """Returns the identity as the list that is stored in META."""
        return list(self)


def machine_id() -> str:
    """Returns the id of this machine (/etc/machine-id), '' if it has none."""
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
    """Returns whether the store must take a new incarnation. `stored` is the identity in META, `now` the
    present one. `tokens` are the tokens in the lock file, empty if there was no such file.
    """
    if not isinstance(stored, list) or len(stored) != len(Identity._fields):
        return stored is not None
    before = Identity._make(stored)
    if before.inode != now.inode:
        return True
    if before.file_system != now.file_system and before.machine != now.machine:
        return True
    return bool(tokens) and before.token not in tokens
