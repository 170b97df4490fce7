"""The WindowSize that sessions advertise; a small one slows peers down while resources are short (MS-MQMQ
2.2.20.4, note 15).
"""

from __future__ import annotations


class WindowSizes:
    """The advertised window: `size` is 1 during a shortage; afterwards it doubles every `interval` seconds up
    to `full`.
    """

    def __init__(self, full: int, interval: float) -> None:
        self.full = full
        self.size = full
        self._interval = interval
        self._deadline: float | None = None

    def short(self) -> None:
        """Shrink the window, because resources run short."""
        self.size, self._deadline = 1, None

    def enough(self, now: float) -> None:
        """Let the window grow again, because resources are sufficient."""
        if self.size < self.full:
            self._deadline = now + self._interval

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._deadline

    def expire(self, now: float) -> bool:
        """Double the window if the time has come; returns whether the window has changed."""
        if self._deadline is None or now < self._deadline:
            return False
        self.size = min(2 * self.size, self.full)
        self._deadline = now + self._interval if self.size < self.full else None
        return True
