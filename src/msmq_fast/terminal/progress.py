"""A progress bar on stderr if stderr is a terminal, else no output."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

__all__ = ["Progress"]

_WIDTH = 30  # characters of the bar
_PAUSE = 0.1  # seconds between two drawings


class Progress:
    """A progress bar: `with Progress("export", total) as progress: progress.add(n)`. `total` is the number of
    items; it may be an estimate, and the caller may change the attribute later.
    """

    def __init__(
        self,
        title: str,
        total: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.count = 0
        self.started = clock()
        self._title = title
        self.total = total
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._shown = self._stream.isatty()
        self._drawn = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._drawn:
            self._draw()
            self._stream.write("\n")
            self._stream.flush()

    @property
    def seconds(self) -> float:
        """Seconds since this object was created."""
        return self._clock() - self.started

    def add(self, count: int) -> None:
        """Report that `count` more items are done."""
        self.count += count
        now = self._clock()
        if self._shown and now - self._drawn >= _PAUSE:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        total = max(self.total, self.count)
        full = _WIDTH * self.count // total if total else _WIDTH
        rate = self.count / self.seconds if self.seconds > 0 else 0.0
        bar = "#" * full + "-" * (_WIDTH - full)
        self._stream.write(f"\r{self._title} [{bar}] {self.count}/{total} {rate:.0f}/s ")
        self._stream.flush()
