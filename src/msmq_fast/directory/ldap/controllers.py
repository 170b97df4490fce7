"""Which domain controller to ask next.

1. The controllers have an order, that of the configuration. The first one that may be tried is asked.
2. A controller that fails is left alone for FIRST_PAUSE seconds, doubled at each further failure up to
   LONGEST_PAUSE, so that one that hangs does not cost each operation a time-out.
3. While all are left alone, operations fail at once, with the reason for each controller.
4. A connection stays with its controller until that fails: each controller counts changes for itself, so that
   another one costs a complete reading.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["ControllerState", "Controllers"]

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
FOUND_FOR: Final = 86_400.0
"""Seconds after which controllers are looked for again while one answers."""
LOOK_AGAIN: Final = 60.0
"""The same while none answers."""
_SPREAD: Final = 0.2  # so that the servers of a company do not come back all at once


@dataclass(frozen=True, slots=True)
class ControllerState:
    """What is known about a domain controller. `failing` is "" if its last answer was a good one, and
    `pause_s` says how many seconds it is left alone.
    """

    url: str
    in_use: bool
    failing: str
    pause_s: float


@dataclass(slots=True)
class _Failures:
    count: int
    until: float
    reason: str


class Controllers:
    """The domain controllers `urls`, or those that `find` returns: it is called once a day, and at most once
    a minute while no controller answers. It may block, and raises OSError. `source` says for people where
    the controllers come from. `monotonic` returns seconds. Functions may be called by any thread.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        find: Callable[[], Sequence[str]] | None = None,
        source: Callable[[], str] = lambda: "directory.url",
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._urls = tuple(urls)
        self._find = find
        self._source = source
        self._found_at: float | None = None
        self._not_found = ""
        self._monotonic = monotonic
        self._uniform = uniform
        self._failures: dict[str, _Failures] = {}
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._current = ""

    @property
    def current(self) -> str:
        """The URL of the controller that answered last, "" while none does."""
        return self._current

    @property
    def urls(self) -> tuple[str, ...]:
        """All controllers, in their order."""
        return self._urls

    @property
    def source(self) -> str:
        """Where the controllers come from, for people."""
        return self._source()

    def candidates(self) -> list[str]:
        """Return the controllers that may be tried now, in the order in which they are to be tried. Looks for
        controllers, if that is due.
        """
        self._look()
        now = self._monotonic()
        with self._lock:
            return [
                url for url in self._urls if url not in self._failures or self._failures[url].until <= now
            ]

    def _look(self) -> None:
        """The Directory Server List Update Timer of MS-MQDMPR 3.1.3, whose period no document states."""
        if self._find is None or not self._looking.acquire(blocking=not self._urls):
            return  # another thread looks; what was found before may be used meanwhile
        try:
            self._look_if_due(self._find)
        finally:
            self._looking.release()

    def _look_if_due(self, find: Callable[[], Sequence[str]]) -> None:
        now = self._monotonic()
        period = FOUND_FOR if self._current else LOOK_AGAIN
        if self._found_at is not None and now < self._found_at + period:
            return
        self._found_at = now
        try:
            found = tuple(find())
        except OSError as error:  # those that were found before may still be right
            self._not_found = str(error)
            return
        with self._lock:
            self._not_found = ""
            self._urls = found
            self._failures = {url: kept for url, kept in self._failures.items() if url in found}

    def answered(self, url: str) -> None:
        """Record that a controller accepted a connection."""
        with self._lock:
            self._failures.pop(url, None)
            self._current = url

    def failed(self, url: str, reason: str) -> None:
        """Record that a controller did not answer, or refused the connection."""
        with self._lock:
            count = self._failures[url].count + 1 if url in self._failures else 1
            pause = min(FIRST_PAUSE * 2 ** min(count - 1, 10), LONGEST_PAUSE)
            pause *= self._uniform(1 - _SPREAD, 1)
            self._failures[url] = _Failures(count, self._monotonic() + pause, reason)
            if self._current == url:
                self._current = ""

    @property
    def better(self) -> bool:
        """Whether a controller may be tried that comes before the current one."""
        found = self.candidates()
        return bool(found) and bool(self._current) and found[0] != self._current

    def next_try(self) -> float:
        """Return the seconds until a controller may be tried, 0 if one may be tried now."""
        now = self._monotonic()
        with self._lock:
            waits = [
                max(0.0, self._failures[url].until - now) if url in self._failures else 0.0
                for url in self._urls
            ]
        return min(waits, default=LOOK_AGAIN)

    def states(self) -> list[ControllerState]:
        """Return what is known about each controller."""
        now = self._monotonic()
        with self._lock:
            found = []
            for url in self._urls:
                failing = self._failures.get(url)
                pause = 0.0 if failing is None else max(0.0, failing.until - now)
                reason = "" if failing is None else failing.reason
                found.append(ControllerState(url, url == self._current, reason, pause))
            return found

    def explain(self) -> str:
        """Return one line that says why no controller can be asked."""
        lines = [f"{one.url}: {one.failing}" for one in self.states() if one.failing]
        reasons = "; ".join(filter(None, [*lines, self._not_found]))
        return f"{reasons or 'no domain controller is known'} (next attempt in {self.next_try():.0f} s)"
