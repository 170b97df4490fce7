"""The WindowSize that sessions advertise, which slows peers down while resources are short (MS-MQMQ
2.2.20.4, note 15)."""

from __future__ import annotations


class WindowSizes:
    """`size` is 1 while resources are short; afterwards it doubles every `interval` seconds up to `full`."""

    def __init__(self, full: int, interval: float) -> None:
        self.full = full
        self.size = full
        self._interval = interval
        self._deadline: float | None = None

    def short(self) -> None:
        """Resources run short."""
        self.size, self._deadline = 1, None

    def enough(self, now: float) -> None:
        """There is enough again: the window begins to grow."""
        if self.size < self.full:
            self._deadline = now + self._interval

    def next_deadline(self) -> float | None:
        """When `expire` is to be called."""
        return self._deadline

    def expire(self, now: float) -> bool:
        """Double the window if that is due; whether it has changed."""
        if self._deadline is None or now < self._deadline:
            return False
        self.size = min(2 * self.size, self.full)
        self._deadline = now + self._interval if self.size < self.full else None
        return True
