"""Snapshots of a running store: one at a time, in a thread of its own, at a limited rate."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.store.backup import Backup, Manifest
from msmq_fast.store.completion import Completion
from msmq_fast.store.errors import BackupError

__all__ = ["Snapshot", "SnapshotBusy", "Snapshots"]

_log = logging.getLogger(__name__)

MIN_RATE: Final = 1 << 16
"""Lowest rate in bytes a second. At a lower rate, a snapshot would keep pages of the store in use for
days.
"""


class SnapshotBusy(BackupError):
    """Another snapshot is in progress."""


class Snapshot:
    """A snapshot in progress. `done` is resolved with the manifest of the snapshot. If the snapshot fails,
    its directory is removed, and then `done` fails with BackupError.
    """

    def __init__(self, backup: Backup, total: int) -> None:
        self.done: Completion[Manifest] = Completion()
        self.total = total
        self._backup = backup

    @property
    def written(self) -> int:
        """Number of bytes written until now; about `total` bytes will be written in all."""
        return self._backup.written

    def cancel(self) -> None:
        """Stop the snapshot soon; no effect if it is already done."""
        self._backup.cancel()


class Snapshots:
    """Makes snapshots of the store that has the tables `tables`. `deliver` runs a function on the server's
    thread. `last_s` is the time of the last snapshot, in Unix seconds, None if there was none; `keep` stores
    that of a new one.
    """

    def __init__(
        self,
        tables: LmdbTables,
        now_s: Callable[[], int],
        deliver: Callable[[Callable[[], object]], object],
        last_s: int | None = None,
        keep: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._tables = tables
        self._now_s = now_s
        self._deliver = deliver
        self._thread: threading.Thread | None = None
        self.current: Snapshot | None = None
        self._keep = keep
        self.last_s = last_s
        """Unix seconds of the last complete snapshot; None if there was none."""

    def begin(self, directory: str, bytes_per_second: int | None = None) -> Snapshot:
        """Start a snapshot into `directory`, a new directory of this machine; at most at `bytes_per_second`
        (None: without limit).

        Raises BackupError for an unusable path, too little free space, or a rate that is too low. Raises
        SnapshotBusy while another snapshot is in progress.
        """
        if self.current is not None:
            raise SnapshotBusy("another snapshot is being made; try again when it is done")
        if bytes_per_second is not None and bytes_per_second < MIN_RATE:
            raise BackupError(
                f"a rate of {bytes_per_second} bytes a second is too low; it must be {MIN_RATE} or more"
            )
        space = self._tables.space()
        total = space["pages"] * space["page_size"]
        target = _checked(directory, total)
        backup = Backup(self._tables, target, now_s=self._now_s(), bytes_per_second=bytes_per_second)
        snapshot = self.current = Snapshot(backup, total)
        self._thread = threading.Thread(target=self._run, args=(backup, snapshot), name="snapshot")
        self._thread.start()
        return snapshot

    def close(self) -> None:
        """Cancel the snapshot in progress, and wait until its thread has ended."""
        if self.current is not None:
            self.current.cancel()
        if self._thread is not None:
            self._thread.join()

    def _run(self, backup: Backup, snapshot: Snapshot) -> None:
        try:
            manifest = backup.run()
        except Exception as error:
            failure = (
                error if isinstance(error, BackupError) else BackupError(f"the snapshot failed: {error}")
            )
            _log.warning("no snapshot in %s: %s", backup.target, failure)
            self._deliver(lambda: self._end(lambda: snapshot.done.fail(failure)))
        else:
            _log.info("snapshot in %s: %d bytes", backup.target, manifest.size)
            self._deliver(lambda: self._complete(snapshot, manifest))

    def _complete(self, snapshot: Snapshot, manifest: Manifest) -> None:
        self.last_s = manifest.created_s
        self._keep(manifest.created_s)
        self._end(lambda: snapshot.done.resolve(manifest))

    def _end(self, complete: Callable[[], object]) -> None:
        self.current = None
        complete()


def _checked(directory: str, size: int) -> Path:
    if not directory or "\0" in directory:
        raise BackupError("a snapshot needs the path of a directory")
    target = Path(directory)
    if not target.is_absolute():
        raise BackupError(
            f"{directory} is not a full path; give the full path of a new directory on the server's machine"
        )
    try:
        if target.exists() or target.is_symlink():
            raise BackupError(f"{directory} exists already; give the path of a new directory")
        place = next(parent for parent in target.parents if parent.exists())
        if not place.is_dir():
            raise BackupError(f"{place} is not a directory")
        free = shutil.disk_usage(place).free
    except OSError as error:
        raise BackupError(f"{directory}: {error.strerror}") from None
    if free < size:
        raise BackupError(f"{place} has {free} bytes free, but the store has {size} bytes")
    return target
