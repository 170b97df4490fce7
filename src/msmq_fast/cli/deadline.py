"""The end of waiting that `--timeout` and `--follow` define."""

from __future__ import annotations

import argparse
import time

__all__ = ["Deadline"]


class Deadline:
    """The end of `--timeout`, counted from the creation of this object. With `--follow`, it is counted from
    the last message, and there is no end without `--timeout`.
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
        """Count the time of `--follow` anew."""
        if self._follow:
            self._began = time.monotonic()
