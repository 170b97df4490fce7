"""Decides when a source sends SPMs (RFC 3208, 5.1.4 to 5.1.6; [MC-MQSRM] 2.1.3.1)."""

from __future__ import annotations

from msmq_fast.srmp.pgm.settings import PgmSettings


class Heartbeat:
    """Schedules SPMs: the opening ones, ambient ones while data is sent, and heartbeats at growing intervals
    while no data is sent.
    """

    def __init__(self, settings: PgmSettings) -> None:
        self._settings = settings
        self._at_once = settings.opening_spms
        self._data_since = 0
        self._sent_at = 0.0
        self._interval = settings.heartbeat_first
        self._beat_at: float | None = None

    def urge(self) -> None:
        """Make an SPM due at once and restart the heartbeat interval (RFC 3208, 9.7 and 9.8)."""
        self._at_once = max(self._at_once, 1)
        self._interval = self._settings.heartbeat_first

    def data_sent(self, now: float) -> None:
        self._data_since += 1
        self._interval = self._settings.heartbeat_first
        self._beat_at = now + self._interval

    def spm_sent(self, now: float) -> None:
        if not self._at_once and not self._data_since:
            self._interval = min(2 * self._interval, self._settings.heartbeat_last)
        self._at_once = max(0, self._at_once - 1)
        self._data_since = 0
        self._sent_at = now
        self._beat_at = now + self._interval

    @property
    def due_at(self) -> float:
        """The time at which the next SPM is due; in the past if it is due now."""
        if self._at_once or self._beat_at is None or self._data_since >= self._settings.ambient_packets:
            return 0.0
        if self._data_since:
            return self._sent_at + self._settings.ambient_seconds
        return self._beat_at
