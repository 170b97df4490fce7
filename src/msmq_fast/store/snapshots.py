"""Snapshots of a running store: one at a time, in a thread of its own, at a limited rate.

1. A snapshot into a directory is a copy of the data file (`store/backup.py`).
2. A snapshot into object storage is the same copy in the staging directory. It is then uploaded and removed.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.store.backup import Backup, Manifest
from msmq_fast.store.completion import Completion
from msmq_fast.store.errors import BackupError
from msmq_fast.store.objects.storage import Interruptible, ObjectStorage

__all__ = ["Newest", "Snapshot", "SnapshotBusy", "Snapshots"]

_log = logging.getLogger(__name__)

MIN_RATE: Final = 1 << 16
"""Lowest rate in bytes a second. At a lower rate, a snapshot would keep pages of the store in use for
days.
"""


Newest: TypeAlias = int | BackupError | None
"""The result of a look-up: Unix seconds of the newest snapshot, None if there is none, or the error."""


class SnapshotBusy(BackupError):
    """Another snapshot is in progress."""


class Snapshot:
    """A snapshot in progress. `done` is resolved with the manifest of the snapshot. If the snapshot fails,
    its directory is removed, and then `done` fails with BackupError.

    `place` is where it is made: a directory, or the URL of the object storage. `url` is set with `done`: the
    URL of a snapshot in object storage, "" for one in a directory.
    """

    def __init__(self, backup: Backup, total: int, place: str) -> None:
        self.done: Completion[Manifest] = Completion()
        self.total = total
        self.place = place
        self.url = ""
        self.sent = 0  # bytes
        self.runner = Interruptible()
        self._backup = backup

    @property
    def written(self) -> int:
        """Number of bytes copied and sent until now; about `total` bytes will be in all."""
        return self._backup.written + self.sent

    def cancel(self) -> None:
        """Stop the snapshot soon; no effect if it is already done."""
        self._backup.cancel()
        self.runner.cancel()


class Snapshots:
    """Makes snapshots of the store that has the tables `tables`. `deliver` runs a function on the server's
    thread. `storage` is for snapshots without a directory. `last_s` is the time of the last snapshot, in Unix
    seconds, None if there was none; `keep` stores that of a new one.
    """

    def __init__(
        self,
        tables: LmdbTables,
        now_s: Callable[[], int],
        deliver: Callable[[Callable[[], object]], object],
        storage: ObjectStorage | None = None,
        last_s: int | None = None,
        keep: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._tables = tables
        self._now_s = now_s
        self._deliver = deliver
        self._storage = storage
        self._thread: threading.Thread | None = None
        self._search: tuple[threading.Thread, Interruptible] | None = None
        self.current: Snapshot | None = None
        self._keep = keep
        self.last_s = last_s
        """Unix seconds of the last complete snapshot; None if there was none."""
        self.failed = 0
        """Number of snapshots that failed, those that were cancelled included."""

    def begin(self, directory: str | None, bytes_per_second: int | None = None) -> Snapshot:
        """Start a snapshot into `directory`, a new directory of this machine, or into the object storage
        (None); at most at `bytes_per_second` (None: without limit, or as fast as the object storage allows).

        Raises BackupError for an unusable path, too little free space, a rate that is too low, or without
        object storage. Raises SnapshotBusy while another snapshot is in progress.
        """
        if self.current is not None:
            raise SnapshotBusy("another snapshot is being made; try again when it is done")
        if bytes_per_second is not None and bytes_per_second < MIN_RATE:
            raise BackupError(
                f"a rate of {bytes_per_second} bytes a second is too low; it must be {MIN_RATE} or more"
            )
        space = self._tables.space()
        total = space["pages"] * space["page_size"]
        storage = None
        if directory is not None:
            target, place = _checked(directory, total), directory
        elif self._storage is not None:
            storage = self._storage
            target, place = storage.staging, storage.url
            bytes_per_second = bytes_per_second or storage.rate
            total *= 2
        else:
            raise BackupError("no directory is given, and this server has no object storage (backup.url)")
        backup = Backup(self._tables, target, now_s=self._now_s(), bytes_per_second=bytes_per_second)
        snapshot = self.current = Snapshot(backup, total, place)
        self._thread = threading.Thread(target=self._run, args=(backup, snapshot, storage), name="snapshot")
        self._thread.start()
        return snapshot

    def find_newest(self, owner: str, found: Callable[[Newest], object]) -> None:
        """Look up the newest snapshot of a queue manager (see `owner_of`) in the object storage. Call it
        again only after `found` was called, and only with object storage.
        """
        storage, runner = self._storage, Interruptible()
        assert storage is not None  # noqa: S101 - see the contract

        def search() -> None:
            result: Newest
            try:
                result = storage.newest_s(owner, runner)
            except Exception as error:
                result = error if isinstance(error, BackupError) else BackupError(str(error))
            self._deliver(lambda: self._found(result, found))

        thread = threading.Thread(target=search, name="snapshot-search")
        self._search = (thread, runner)
        thread.start()

    def close(self) -> None:
        """Cancel the snapshot in progress, and wait until its thread has ended."""
        if self._search is not None:
            self._search[1].cancel()
            self._search[0].join()
        if self.current is not None:
            self.current.cancel()
        if self._thread is not None:
            self._thread.join()

    def _found(self, result: Newest, found: Callable[[Newest], object]) -> None:
        if isinstance(result, int):
            self.last_s = max(self.last_s or 0, result)
        found(result)

    def _run(self, backup: Backup, snapshot: Snapshot, storage: ObjectStorage | None) -> None:
        try:
            manifest = backup.run() if storage is None else _stored(backup, snapshot, storage)
        except Exception as error:
            failure = (
                error if isinstance(error, BackupError) else BackupError(f"the snapshot failed: {error}")
            )
            _log.warning("no snapshot in %s: %s", snapshot.place, failure)
            self._deliver(lambda: self._fail(snapshot, failure))
        else:
            _log.info("snapshot in %s: %d bytes", snapshot.url or snapshot.place, manifest.size)
            self._deliver(lambda: self._complete(snapshot, manifest))

    def _fail(self, snapshot: Snapshot, failure: BackupError) -> None:
        self.failed += 1
        self._end(lambda: snapshot.done.fail(failure))

    def _complete(self, snapshot: Snapshot, manifest: Manifest) -> None:
        self.last_s = manifest.created_s
        self._keep(manifest.created_s)
        self._end(lambda: snapshot.done.resolve(manifest))

    def _end(self, complete: Callable[[], object]) -> None:
        self.current = None
        complete()


def _stored(backup: Backup, snapshot: Snapshot, storage: ObjectStorage) -> Manifest:
    """Copy the store into the staging directory, upload the copy, and remove it."""
    shutil.rmtree(storage.staging, ignore_errors=True)  # of a process that was killed
    try:
        _check_space(storage.staging.parent, snapshot.total // 2)
        manifest = backup.run()

        def sent(count: int) -> None:
            snapshot.sent += count

        snapshot.url = storage.store(snapshot.runner, sent, backup.bytes_per_second)
        return manifest
    finally:
        shutil.rmtree(storage.staging, ignore_errors=True)


def _check_space(place: Path, size: int) -> None:
    free = shutil.disk_usage(place).free
    if free < size:
        raise BackupError(f"{place} has {free} bytes free, but the store has {size} bytes")


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
        _check_space(place, size)
    except OSError as error:
        raise BackupError(f"{directory}: {error.strerror}") from None
    return target
