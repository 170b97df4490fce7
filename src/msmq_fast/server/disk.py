"""Free space of the data directory: below the low mark nothing is taken in, above it the intake goes on."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["DiskGuard"]

_log = logging.getLogger("msmq_fast.disk")


class DiskGuard:
    """Looks every `interval` seconds; `throttle(True)` stops the intake, `throttle(False)` resumes it."""

    def __init__(
        self,
        directory: Path,
        low: int,
        interval: float,
        monotonic: Callable[[], float],
        throttle: Callable[[bool], None],
        free_space: Callable[[Path], int] | None = None,
    ) -> None:
        self._directory = directory
        self._low = low
        self._interval = interval
        self._monotonic = monotonic
        self._throttle = throttle
        self._free_space = free_space or free_bytes
        self._due = monotonic()
        self.low = False
        self.free = 0

    def next_deadline(self) -> float:
        """When the next look is due."""
        return self._due

    def expire(self) -> None:
        """Look."""
        self._due = self._monotonic() + self._interval
        try:
            self.free = self._free_space(self._directory)
        except OSError as error:
            _log.warning("free space of %s: %s", self._directory, error.strerror or error)
            return
        # An eighth more than the mark ends the alarm, so that it does not flap.
        low = self.free < (self._low + self._low // 8 if self.low else self._low)
        if low == self.low:
            return
        self.low = low
        self._throttle(low)
        if low:
            _log.error(
                "disk space is low: %d bytes free in %s, nothing is taken in", self.free, self._directory
            )
        else:
            _log.info("disk space suffices again: %d bytes free in %s", self.free, self._directory)


def free_bytes(directory: Path) -> int:
    """Bytes that this user may still write. Raises OSError."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
