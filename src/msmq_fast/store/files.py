"""Durable files: a change is on the disk when the function returns."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Makes the creation, renaming and removal of files in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Path, *, exist_ok: bool = True) -> None:
    """Creates a directory and its missing parents, each with access for its owner only.

    `Path.mkdir(parents=True, mode=…)` would apply the mode to the last directory only. Raises OSError.
    """
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=exist_ok)


def write_file(path: Path, data: bytes) -> None:
    """Replaces a file atomically: after a crash it holds either the old bytes or the new ones."""
    draft = path.with_name(path.name + ".new")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync_directory(path.parent)
