"""A cache as MS-MQQB 3.1.1.3 requires it: when it is full, it drops the older half of its entries, and a
timer drops entries that are too old.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

__all__ = ["AgingCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_GRACE: Final = 60.0  # seconds that a restarted timer adds


class AgingCache(Generic[K, V]):
    """The cache type of SendSymmetricKeyCache, ReceiveSymmetricKeyCache and UserCertCache. Times are
    monotonic seconds.

    The age of an entry counts from when it was put, not from its last use.
    """

    def __init__(self, size: int, lifetime: float) -> None:
        if size < 2 or lifetime <= 0:
            raise ValueError("a cache needs a size of at least 2 and a positive lifetime")
        self._size = size
        self._lifetime = lifetime
        self._entries: dict[K, tuple[float, V]] = {}  # oldest first
        self._due: float | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """Returns the value of a key, None if it is not in the cache."""
        found = self._entries.get(key)
        return None if found is None else found[1]

    def put(self, key: K, value: V, now: float) -> None:
        """Store a value, and start the timer if it is not running (QB-245, QB-252, QB-349)."""
        self._entries.pop(key, None)
        if len(self._entries) >= self._size:
            for oldest in list(self._entries)[: self._size // 2]:
                del self._entries[oldest]
        self._entries[key] = (now, value)
        if self._due is None:
            self._due = now + self._lifetime

    def clear(self) -> None:
        """Drop all entries, because the data from which they were made has changed."""
        self._entries.clear()

    def next_deadline(self) -> float | None:
        """Return the time at which `expire` is due, None if the timer is not running."""
        return self._due

    def expire(self, now: float) -> None:
        """Handle the timer: drop entries that are too old, and restart it if any are left (QB-318 …
        QB-321).
        """
        if self._due is None or now < self._due:
            return
        for key, (cached, _) in list(self._entries.items()):
            if now - cached < self._lifetime:
                break
            del self._entries[key]
        oldest = next(iter(self._entries.values()), None)
        self._due = None if oldest is None else now + self._lifetime + _GRACE - (now - oldest[0])
