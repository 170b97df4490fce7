"""Checks that a directory is suitable for a store. Network and overlay file systems can break LMDB's locks or
lose synced data.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msmq_fast.store.errors import StorePlaceError

MOUNTS: Final = Path("/proc/self/mountinfo")

_UNFIT: Final = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "virtiofs",
        "ceph",
        "glusterfs",
        "afs",
        "lustre",
        "gpfs",
        "beegfs",
        "ocfs2",
        "gfs2",
        "overlay",
        "aufs",
        "ramfs",
    )
)


def file_system_of(directory: Path, mounts: str) -> str:
    """Returns the type of the file system that holds `directory`, '' if it is unknown. `mounts` is the text
    of mountinfo.
    """
    path = os.path.realpath(directory)
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        columns = fields.split(" ")
        if len(columns) < 5 or not rest:
            continue
        point = columns[4].encode().decode("unicode_escape") if "\\" in columns[4] else columns[4]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # of mounts on one point, the last covers the others
            best, kind = len(point), rest.split(" ")[0]
    return kind


def check_place(directory: Path, *, force: bool = False) -> None:
    """Raises StorePlaceError if `directory` is on a file system that may lose acknowledged messages, unless
    `force` is True.
    """
    if force:
        return
    try:
        kind = file_system_of(directory, MOUNTS.read_text())
    except OSError:
        return  # not a Linux with /proc: nothing to go by
    if kind in _UNFIT or kind.startswith("fuse."):
        raise StorePlaceError(
            f"{directory} is on a {kind} file system, which can lose acknowledged messages; "
            "use a local disk, or set store.allow_any_filesystem"
        )
