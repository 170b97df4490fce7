"""How long a command waits for messages, according to `--timeout` and `--follow`."""

from __future__ import annotations

import argparse
import time

__all__ = ["Deadline"]


class Deadline:
    """The time at which a command stops waiting: `--timeout` after this object was created; with `--follow`,
    `--timeout` after the last message. With `--follow` and without `--timeout`, there is no limit.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._follow: bool = arguments.follow
        self._seconds: float | None = arguments.timeout
        if self._seconds is None and not self._follow:
            self._seconds = 0.0
        self._began = time.monotonic()

    def left(self) -> float | None:
        """Return the remaining seconds, at least 0; None means no limit."""
        if self._seconds is None:
            return None
        return max(0.0, self._began + self._seconds - time.monotonic())

    def message_came(self) -> None:
        """Restart `--timeout` if `--follow` is set, because a message was received."""
        if self._follow:
            self._began = time.monotonic()
