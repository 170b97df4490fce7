"""Bounds connection attempts to other queue managers, and delays those to hosts that failed.

Both hold for destinations that strangers may name. Programs of this computer have slots of their own, so that
no number of invented administration queues keeps them waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from enum import Enum

from msmq_fast.mqqb.link import Link

__all__ = ["Backoff", "Dials", "Purpose"]

_NAMES = 2
"""Names that are resolved at a time for answers alone: resolvers are few threads, and slow for names that do
not exist."""
_REMEMBERED = 16_384
"""Ways out whose failures are remembered."""


class Purpose(Enum):
    """The purpose of a connection."""

    MESSAGES = "messages of programs, or messages that pass through"
    ANSWERS = "answers alone"
    ANSWERS_BY_NAME = "the address of a host that answers alone go to"


class Dials:
    """At most `limit` links connect for messages at a time, and half as many for answers alone."""

    def __init__(self, limit: int) -> None:
        self._most: dict[Purpose, int] = {}
        self.resize(limit)
        self._active: dict[Link, Purpose] = {}
        self._used: Counter[Purpose] = Counter()
        self._waiting: dict[Purpose, dict[Link, None]] = {purpose: {} for purpose in Purpose}

    def resize(self, limit: int) -> None:
        """Set another limit. Links that connect already go on."""
        self._most = {
            Purpose.MESSAGES: limit,
            Purpose.ANSWERS: max(1, limit // 2),
            Purpose.ANSWERS_BY_NAME: _NAMES,
        }

    @property
    def active(self) -> int:
        """Links that connect."""
        return len(self._active)

    @property
    def waiting(self) -> int:
        """Links that wait for their turn."""
        return sum(len(links) for links in self._waiting.values())

    def take(self, link: Link, purpose: Purpose) -> bool:
        """Whether a link may go on connecting; if not, `granted` names it when it may."""
        if self._active.get(link) is purpose:
            return True
        self.release(link)
        if self._used[purpose] >= self._most[purpose]:
            self._waiting[purpose][link] = None
            return False
        self._enter(link, purpose)
        return True

    def _enter(self, link: Link, purpose: Purpose) -> None:
        self._active[link] = purpose
        self._used[purpose] += 1

    def release(self, link: Link) -> None:
        """A link does not connect any more, nor wait for its turn; saying it twice changes nothing."""
        purpose = self._active.pop(link, None)
        if purpose is not None:
            self._used[purpose] -= 1
        for links in self._waiting.values():
            links.pop(link, None)

    def granted(self) -> list[Link]:
        """Returns the links that may connect now; each has its slot."""
        found = []
        for purpose, links in self._waiting.items():
            while links and self._used[purpose] < self._most[purpose]:
                link = next(iter(links))
                del links[link]
                self._enter(link, purpose)
                found.append(link)
        return found


class Backoff:
    """Waits that double from `first` to `most` seconds, while a host does not answer.

    The first wait is exact; later ones are up to a quarter shorter, so that hosts that went down together are
    not all dialled together. A host that was down for some time is so tried again within about that time.
    `chance` gives numbers from 0 to 1.
    """

    def __init__(self, first: float, most: float, chance: Callable[[], float]) -> None:
        self._first = first
        self._most = max(first, most)
        self._chance = chance
        self._failures: dict[Hashable, tuple[int, float]] = {}  # (failed rounds, when the next one is due)

    def failed(self, way: Hashable, now: float) -> float:
        """Another attempt was in vain: when the next one is due."""
        rounds, _ = self._failures.pop(way, (0, 0.0))
        wait = min(self._first * 2.0 ** min(rounds, 32), self._most)
        if wait > self._first:
            wait *= 1.0 - 0.25 * self._chance()
        if len(self._failures) >= _REMEMBERED:
            del self._failures[next(iter(self._failures))]
        self._failures[way] = (rounds + 1, now + wait)
        return now + wait

    def until(self, way: Hashable, now: float) -> float | None:
        """Before which time nothing is to be tried; None: it may be tried now."""
        _, due = self._failures.get(way, (0, 0.0))
        return due if due > now else None

    def reset(self, way: Hashable) -> None:
        """Ends the pause: the host is reachable again, or an operator asks for an attempt now."""
        self._failures.pop(way, None)
