"""Monitors the free space for the store, and stops accepting messages while there is too little."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msmq_fast.store.watermark import SpaceFigures, Watermark

__all__ = ["DISK_LOW", "DiskGuard"]

DISK_LOW = "disk space is low"

_log = logging.getLogger("msmq_fast.disk")


class DiskGuard:
    """Checks the free space every `interval` seconds. `throttle(True)` stops accepting messages,
    `throttle(False)` resumes.

    `failures` returns the number of commits that have failed. After a failed commit the disk counts as full,
    whatever free space it reports: no messages are accepted for one interval, after which the server tries
    again.
    """

    def __init__(
        self,
        low: int,
        interval: float,
        monotonic: Callable[[], float],
        measure: Callable[[], SpaceFigures],
        failures: Callable[[], int],
        throttle: Callable[[bool], None],
    ) -> None:
        self._interval = interval
        self._measure = measure
        self._failures = failures
        self._failed = failures()
        self._throttle = throttle
        self._due = monotonic()
        self._full = False  # commits failed, and no whole interval has passed without a failure
        # An eighth more than the mark ends the alarm, so that it does not flap.
        self._mark = Watermark(low, low + max(1, low // 8), self._changed)
        self.space = SpaceFigures(0, 0, 0, 0)

    @property
    def low(self) -> bool:
        """Whether free disk space is so low that the server accepts no messages."""
        return self._mark.throttled

    def next_deadline(self) -> float:
        """Return the time at which the next check is due."""
        return self._due

    def expire(self, now: float) -> None:
        """Check the free space."""
        self._due = now + self._interval
        failed, self._failed = self._failed, self._failures()
        if self._failed != failed:
            if not self._full:
                _log.error("the disk is full: a commit failed, the server accepts no messages")
            self._full = True
            self._mark.storage_full()
            return
        if self._full and not self._mark.throttled:
            self._full = False
            _log.info("the disk has space again: commits succeed")
        try:
            self.space = self._measure()
        except OSError as error:
            _log.warning("cannot measure the free space of the data directory: %s", error.strerror or error)
            return
        self._mark.update(self.space.available)

    def _changed(self, low: bool) -> None:
        self._throttle(low)
        if self._full:
            return  # the intake opens once per interval as a test; a success is logged
        if low:
            _log.error(
                "disk space is low: %d bytes left, the server accepts no messages", self.space.available
            )
        else:
            _log.info("disk space is sufficient again: %d bytes left", self.space.available)
