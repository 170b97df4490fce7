"""Makes snapshots in object storage at a fixed interval.

1. At the start the schedule looks up the newest snapshot of this queue manager in the object storage, so a
   restart neither delays the next snapshot nor makes one too many.
2. After a failure, of the look-up or of a snapshot, it tries again after ten minutes, or after the interval
   if that is shorter. The failure is in the log, and in the metric `failed_snapshots_total`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from msmq_fast.store.backup import Manifest
from msmq_fast.store.completion import Completion
from msmq_fast.store.errors import BackupError
from msmq_fast.store.snapshots import Newest, SnapshotBusy, Snapshots

__all__ = ["RETRY_S", "SnapshotSchedule"]

_log = logging.getLogger("msmq_fast.server")

RETRY_S: Final = 600.0
"""Seconds after a failure until the next attempt."""
_BUSY_S: Final = 60.0  # seconds until the next attempt while an administrator's snapshot is made


class SnapshotSchedule:
    """Starts a snapshot every `every` seconds. `monotonic` and `now_s` (Unix seconds) are the clocks, `owner`
    names the queue manager (see `owner_of`).
    """

    def __init__(
        self,
        snapshots: Snapshots,
        every: float,
        owner: str,
        monotonic: Callable[[], float],
        now_s: Callable[[], float],
    ) -> None:
        self._snapshots = snapshots
        self._every = every
        self._owner = owner
        self._monotonic = monotonic
        self._now_s = now_s
        self._known = False
        self._due: float | None = monotonic()

    def next_deadline(self) -> float | None:
        """Return the time of the next attempt; None while one runs."""
        return self._due

    def expire(self, now: float) -> None:
        """Look up the newest snapshot, or start one."""
        if self._due is None or now < self._due:
            return
        self._due = None
        if not self._known:
            self._snapshots.find_newest(self._owner, self._found)
            return
        try:
            snapshot = self._snapshots.begin(None)
        except SnapshotBusy:
            self._due = now + _BUSY_S
        except BackupError as error:
            _log.warning("no snapshot: %s", error)
            self._retry()
        else:
            snapshot.done.add_done_callback(self._ended)

    def _found(self, result: Newest) -> None:
        if isinstance(result, BackupError):
            _log.warning("cannot look up the last snapshot: %s", result)
            self._retry()
            return
        self._known = True
        age = self._every if result is None else max(0.0, self._now_s() - result)
        self._due = self._monotonic() + max(0.0, self._every - age)

    def _ended(self, done: Completion[Manifest]) -> None:
        if done.exception() is None:
            self._due = self._monotonic() + self._every
        else:
            self._retry()

    def _retry(self) -> None:
        self._due = self._monotonic() + min(self._every, RETRY_S)
