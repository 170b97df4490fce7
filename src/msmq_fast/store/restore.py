"""Restores a backup. The restored store takes a new incarnation and a new time stamp for its transactional
sequences.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Final, Protocol

from msmq_fast.store.backup import Manifest
from msmq_fast.store.errors import BackupError
from msmq_fast.store.files import make_directory, sync_directory
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.lock import StoreLock
from msmq_fast.store.offline import edit_store
from msmq_fast.store.schema import LOGGED_SCHEMA_VERSION
from msmq_fast.store.store import renew_incarnation

_STEP: Final = 1 << 20


class Source(Protocol):
    """Where a backup comes from. Its text names it in messages."""

    def manifest(self) -> Manifest:
        """Return the manifest. Raises BackupError if the backup is unfinished or damaged."""

    def copy(self, target: Path, manifest: Manifest) -> None:
        """Write the data file to the new file `target`, durably. Raises BackupError if it is damaged."""


class DirectorySource:
    """A backup in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __str__(self) -> str:
        return str(self._directory)

    def manifest(self) -> Manifest:
        """Read the manifest file."""
        return Manifest.read(self._directory)

    def copy(self, target: Path, manifest: Manifest) -> None:
        """Copy the data file, and compare its size and checksum with the manifest."""
        _copy_checked(self._directory / DATA_NAME, target, manifest)


def restore(backup: Path | Source, directory: Path, *, now_s: int) -> Manifest:
    """Restores `backup` into a directory that does not hold a store. `now_s` is Unix seconds.

    Raises BackupError if the backup is unfinished, damaged or written by a newer version of this program, and
    StoreLockedError if a server has the directory open. After a failure the directory holds no store.
    """
    source = DirectorySource(backup) if isinstance(backup, Path) else backup
    manifest = source.manifest()
    if manifest.schema_version > LOGGED_SCHEMA_VERSION:
        raise BackupError(
            f"{source} has schema version {manifest.schema_version}; known are 0 to {LOGGED_SCHEMA_VERSION}"
        )
    make_directory(directory)
    lock = StoreLock(directory)
    try:
        if (directory / DATA_NAME).exists():
            raise BackupError(f"{directory} already holds a store; move it away first")
        draft = directory / "restore.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        try:
            source.copy(draft / DATA_NAME, manifest)
            with edit_store(draft) as (tables, writer):
                renew_incarnation(tables, writer, now_s)
            (draft / DATA_NAME).rename(directory / DATA_NAME)
            lock.write({})
            sync_directory(directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    finally:
        lock.release()
    return manifest


def _copy_checked(source: Path, target: Path, manifest: Manifest) -> None:
    digest = hashlib.sha256()
    size = 0
    try:
        with source.open("rb") as reading, target.open("xb") as writing:
            while part := reading.read(_STEP):
                digest.update(part)
                size += len(part)
                writing.write(part)
            writing.flush()
            os.fsync(writing.fileno())
    except OSError as error:
        raise BackupError(f"cannot copy {source}: {error.strerror}") from error
    if size != manifest.size or digest.hexdigest() != manifest.sha256:
        raise BackupError(f"{source} is damaged: its size or checksum differs from the manifest")
