"""Whether the directory can be reached, and when to check again (MS-MQDMPR 3.1.2.5, ST-8)."""

from __future__ import annotations

PROBE_SECONDS = 60.0  # the Directory Online Timer


class OnlineState:
    """Whether the directory is offline (DirectoryOffline), and the Directory Online Timer.

    The caller passes times in monotonic seconds.
    """

    def __init__(self, interval: float = PROBE_SECONDS) -> None:
        self.offline = False
        self._interval = interval
        self._due: float | None = None

    @property
    def due(self) -> float | None:
        """The time of the next check, None while the directory is connected or a check is running."""
        return self._due

    def lost(self, now: float) -> None:
        """Record that an operation failed with DirectoryNotConnected. Starts the timer unless it is
        running.
        """
        self.offline = True
        if self._due is None:
            self._due = now + self._interval

    def take_due(self, now: float) -> bool:
        """Return whether the timer has expired, and stop it if so."""
        if self._due is None or now < self._due:
            return False
        self._due = None
        return True

    def restored(self) -> None:
        """Record that the directory has answered."""
        self.offline = False
        self._due = None
