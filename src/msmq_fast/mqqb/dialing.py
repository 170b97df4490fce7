"""Limits connection attempts to other queue managers, and delays attempts to hosts that failed.

Unauthenticated peers may name the destinations of answers. So there are separate slots for connections that
carry messages of local programs, and answers to invented administration queues cannot delay those messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from enum import Enum

from msmq_fast.mqqb.link import Link

__all__ = ["Backoff", "Dials", "Purpose"]

_NAMES = 2
"""Maximum number of host names that are resolved at a time for links with answers only.

The resolver has few threads, and is slow for names that do not exist.
"""
_REMEMBERED = 16_384
"""Maximum number of routes whose failures are remembered."""


class Purpose(Enum):
    """The purpose of a connection."""

    MESSAGES = "messages of programs, or messages that pass through"
    ANSWERS = "answers alone"
    ANSWERS_BY_NAME = "the address of a host that answers alone go to"


class Dials:
    """Limits concurrent connection attempts: at most `limit` for links with messages of programs or messages
    in transit, and half as many for links with answers only.
    """

    def __init__(self, limit: int) -> None:
        self._most: dict[Purpose, int] = {}
        self.resize(limit)
        self._active: dict[Link, Purpose] = {}
        self._used: Counter[Purpose] = Counter()
        self._waiting: dict[Purpose, dict[Link, None]] = {purpose: {} for purpose in Purpose}

    def resize(self, limit: int) -> None:
        """Change the limit. Attempts under way continue."""
        self._most = {
            Purpose.MESSAGES: limit,
            Purpose.ANSWERS: max(1, limit // 2),
            Purpose.ANSWERS_BY_NAME: _NAMES,
        }

    @property
    def active(self) -> int:
        """Number of links that are connecting."""
        return len(self._active)

    @property
    def waiting(self) -> int:
        """Number of links that wait for a slot to connect."""
        return sum(len(links) for links in self._waiting.values())

    def take(self, link: Link, purpose: Purpose) -> bool:
        """Request a slot for a link. Returns True if the link may connect now; False if it must wait until
        `granted` returns it.
        """
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
        """Release the slot of a link, or remove it from the waiting links. A repeated call has no effect."""
        purpose = self._active.pop(link, None)
        if purpose is not None:
            self._used[purpose] -= 1
        for links in self._waiting.values():
            links.pop(link, None)

    def granted(self) -> list[Link]:
        """Returns the waiting links that have got a slot."""
        found = []
        for purpose, links in self._waiting.items():
            while links and self._used[purpose] < self._most[purpose]:
                link = next(iter(links))
                del links[link]
                self._enter(link, purpose)
                found.append(link)
        return found


class Backoff:
    """Pauses between attempts to a host that does not answer; they double from `first` to `most` seconds.

    The first pause is exact; later ones are up to a quarter shorter, so that hosts that failed together are
    not all dialled together. When a host works again, the rest of the pause is at most about as long as the
    host was down. `chance` returns random numbers from 0 to 1. In all methods, `key` identifies the host, or
    the list of next hops, to which attempts are made.
    """

    def __init__(self, first: float, most: float, chance: Callable[[], float]) -> None:
        self._first = first
        self._most = max(first, most)
        self._chance = chance
        self._failures: dict[Hashable, tuple[int, float]] = {}  # (failed rounds, when the next one is due)

    def failed(self, key: Hashable, now: float) -> float:
        """Note a failed attempt; returns the time of the next attempt in monotonic seconds."""
        rounds, _ = self._failures.pop(key, (0, 0.0))
        wait = min(self._first * 2.0 ** min(rounds, 32), self._most)
        if wait > self._first:
            wait *= 1.0 - 0.25 * self._chance()
        if len(self._failures) >= _REMEMBERED:
            del self._failures[next(iter(self._failures))]
        self._failures[key] = (rounds + 1, now + wait)
        return now + wait

    def until(self, key: Hashable, now: float) -> float | None:
        """Returns the monotonic time before which the host must not be tried; None if it may be tried now."""
        _, due = self._failures.get(key, (0, 0.0))
        return due if due > now else None

    def reset(self, key: Hashable) -> None:
        """End the pause: the host is reachable again, or an operator requests an attempt now."""
        self._failures.pop(key, None)
