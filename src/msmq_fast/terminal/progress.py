"""A progress bar on stderr if stderr is a terminal. Elsewhere, a command with a Heartbeat writes a line every
30 s, and others write nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

__all__ = ["Heartbeat", "Progress"]

_WIDTH = 30  # characters of the bar
_PAUSE = 0.1  # seconds between two drawings
_BEAT_S = 30.0  # seconds between two lines of a Heartbeat


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
        heartbeat = _HEARTBEAT.get()
        self._shown = self._stream.isatty() and not (heartbeat is not None and heartbeat.quiet)
        self._drawn = 0.0
        if heartbeat is not None:
            heartbeat.watch(self)

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


class Heartbeat:
    """Writes a line about a running command to stderr every 30 s, unless stderr is a terminal:

        with Heartbeat("msmq-lake audit"), Progress("audit", total) as progress: ...

    The line has the numbers of the latest Progress that was created inside of the context. With `quiet`,
    there are neither lines nor progress bars. `wait` waits for a number of seconds, and returns whether the
    command has ended.
    """

    def __init__(
        self,
        title: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        self.quiet = quiet
        self._title = title
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._started = clock()
        self._ended = threading.Event()
        self._wait = self._ended.wait if wait is None else wait
        self._watched: list[Progress] = []
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._token = _HEARTBEAT.set(self)
        if not self.quiet and not self._stream.isatty():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        _HEARTBEAT.reset(self._token)

    def watch(self, progress: Progress) -> None:
        """Write the numbers of `progress` from now on."""
        self._watched.append(progress)

    def _beat(self) -> None:
        while not self._wait(_BEAT_S):
            seconds = self._clock() - self._started
            self._stream.write(f"{self._title}: running for {seconds:.0f} s{self._done()}\n")
            self._stream.flush()

    def _done(self) -> str:
        if not self._watched:
            return ""
        progress = self._watched[-1]
        total = f" of {progress.total}" if progress.total >= progress.count and progress.total else ""
        return f", {progress.count}{total} done"


_HEARTBEAT: ContextVar[Heartbeat | None] = ContextVar("heartbeat", default=None)
