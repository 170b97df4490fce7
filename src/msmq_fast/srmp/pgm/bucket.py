"""A token bucket (RFC 3208, 5.1.2)."""

from __future__ import annotations

_ROUNDING = 0.01
"""Octets that may be missing, because times computed in floating point may be slightly too early."""


class TokenBucket:
    """Allows at most `rate`·t + `depth` octets over any interval of t seconds. The bucket begins full."""

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
        """Return whether `size` octets may be taken now."""
        self._refill(now)
        return self._tokens + _ROUNDING >= size

    def take(self, size: float) -> None:
        """Take `size` octets. Call only after `has` has returned True for them."""
        self._tokens -= size

    def ready_at(self, size: float, now: float) -> float:
        """Return the time from which `has(size)` is True if nothing is taken until then; `now` or later."""
        self._refill(now)
        return now + max(0.0, min(size, self.depth) - self._tokens) / self.rate
