"""The lock file of a store. It names the process that has the store open, and that process holds an flock on
it in addition to LMDB's lock.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Final

from msmq_fast.store.errors import StoreLockedError, StorePlaceError

LOCK_NAME: Final = "store.lock"


class StoreLock:
    """Exclusive right to one data directory, held until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Raises StoreLockedError if another process holds the lock, StorePlaceError if the directory is not
        writable.
        """
        self.path = directory / LOCK_NAME
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = f"cannot write in {directory}: {error.strerror}"
            if isinstance(error, PermissionError):
                reason += (
                    f"; this process is user {os.geteuid()}, group {os.getegid()}: give it the directory by "
                    f"chown {os.geteuid()}:{os.getegid()}, in Kubernetes with fsGroup: {os.getegid()}"
                )
            raise StorePlaceError(reason, error.errno or 0) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = self.read()
            os.close(self._fd)
            raise StoreLockedError(_describe(directory, holder), error.errno or 0) from error

    def read(self) -> dict[str, Any]:
        """Returns the contents that the last holder of the lock wrote, an empty dictionary if the file is not
        readable.
        """
        try:
            found = json.loads(os.pread(self._fd, 1 << 16, 0) or b"{}")
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, holder: dict[str, Any]) -> None:
        """Replaces the contents of the file and makes them durable."""
        data = json.dumps(holder).encode() + b"\n"
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))
        os.fsync(self._fd)

    def release(self) -> None:
        """Releases the lock; the contents of the file stay."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _describe(directory: Path, holder: dict[str, Any]) -> str:
    if "pid" not in holder:
        return f"the store in {directory} is held by another process"
    return (
        f"the store in {directory} is held by process {holder['pid']} ({holder.get('name', 'unnamed')}) "
        f"on {holder.get('host', 'an unknown host')} since {holder.get('started', 'an unknown time')}"
    )
