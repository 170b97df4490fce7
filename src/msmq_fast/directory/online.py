"""Whether the directory can be reached, and when to look again (MS-MQDMPR 3.1.2.5, ST-8)."""

from __future__ import annotations

PROBE_SECONDS = 60.0  # the Directory Online Timer


class OnlineState:
    """DirectoryOffline and the Directory Online Timer; monotonic seconds are passed in."""

    def __init__(self, interval: float = PROBE_SECONDS) -> None:
        self.offline = False
        self._interval = interval
        self._due: float | None = None

    @property
    def due(self) -> float | None:
        """When the directory is to be asked again, None while it is connected or being asked."""
        return self._due

    def lost(self, now: float) -> None:
        """An operation ended with DirectoryNotConnected: the timer starts, if it does not run."""
        self.offline = True
        if self._due is None:
            self._due = now + self._interval

    def take_due(self, now: float) -> bool:
        """Whether the timer has expired; it is stopped then."""
        if self._due is None or now < self._due:
            return False
        self._due = None
        return True

    def restored(self) -> None:
        """The directory answered."""
        self.offline = False
        self._due = None
