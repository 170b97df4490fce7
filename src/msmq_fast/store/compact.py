"""Shrinks a store: makes an offline copy without free pages and renames it over the old data file."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.store.datafile import check_data_file
from msmq_fast.store.errors import StorePlaceError
from msmq_fast.store.files import sync_directory
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.lock import StoreLock
from msmq_fast.store.offline import edit_store


@dataclass(frozen=True, slots=True)
class Compaction:
    """Size of the data file in bytes, before and after compacting."""

    before: int
    after: int


def compact(directory: Path) -> Compaction:
    """Compacts the store in `directory`, while no server has it open.

    Raises StoreLockedError if a server has the store open, StorePlaceError if the disk has no room for the
    copy. A crash leaves either the old store or the new one.
    """
    data = directory / DATA_NAME
    if not data.exists():
        raise StorePlaceError(f"{directory} holds no store")
    lock = StoreLock(directory)
    draft = directory / "compact.tmp"
    try:
        check_data_file(directory, used=True)
        before = data.stat().st_size
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        tables = LmdbTables(directory)
        try:
            space = tables.space()
            needed = (space["pages"] - space["free_pages"]) * space["page_size"]
            disk = os.statvfs(directory)
            if disk.f_bavail * disk.f_frsize < needed:
                raise StorePlaceError(
                    f"the copy needs {needed} bytes, more than the disk of {directory} has free"
                )
            with (draft / DATA_NAME).open("xb") as copy:
                tables.copy(copy.fileno(), compact=True)
                os.fsync(copy.fileno())
        finally:
            tables.close()
        with edit_store(draft):
            pass
        (draft / DATA_NAME).rename(data)
        sync_directory(directory)
        return Compaction(before, data.stat().st_size)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        lock.release()
