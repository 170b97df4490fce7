"""A token bucket (RFC 3208, 5.1.2)."""

from __future__ import annotations

_ROUNDING = 0.01
"""Octets that may be missing, so that times computed in floating point are late enough."""


class TokenBucket:
    """Over any interval of t seconds at most `rate`·t + `depth` octets are taken. Begins full."""

    def __init__(self, rate: float, depth: float) -> None:
        self.rate = rate
        self.depth = depth
        self._tokens = depth
        self._at: float | None = None

    def _refill(self, now: float) -> None:
        if self._at is not None and now > self._at:
            self._tokens = min(self.depth, self._tokens + (now - self._at) * self.rate)
        if self._at is None or now > self._at:
            self._at = now

    def has(self, size: float, now: float) -> bool:
        """Whether so many octets may be taken now."""
        self._refill(now)
        return self._tokens + _ROUNDING >= size

    def take(self, size: float) -> None:
        """Takes what `has` has just allowed."""
        self._tokens -= size

    def ready_at(self, size: float, now: float) -> float:
        """When `has(size)` becomes true if nothing else is taken; never earlier than `now`."""
        self._refill(now)
        return now + max(0.0, min(size, self.depth) - self._tokens) / self.rate
