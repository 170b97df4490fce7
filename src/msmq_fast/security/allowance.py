"""Rate limits for the peers of each address group, on anything countable."""

from __future__ import annotations

from typing import Final

from msmq_fast.security.addresses import address_group

__all__ = ["Allowance"]

_MOST: Final = 4096  # groups that are remembered


class Allowance:
    """A leaky bucket for each address group: it allows `amount` at once, and refills within `seconds`.

    Times are monotonic seconds. Buckets that have refilled completely are dropped. If there are still too
    many buckets, the least recently used one is dropped.
    """

    def __init__(self, amount: float, seconds: float) -> None:
        self._seconds = seconds
        self._cost = seconds / amount if amount else 0.0
        self._empty = not amount
        self._full_at: dict[str, float] = {}  # by group, the least recently used first

    def take(self, address: str, amount: float, now: float) -> bool:
        """Take `amount` from the bucket of the group of `address`. Return False, and take nothing, if the
        bucket does not hold that much.
        """
        if not self.has(address, amount, now):
            return False
        group = address_group(address)
        full_at = max(self._full_at.pop(group, now), now) + amount * self._cost
        if len(self._full_at) >= _MOST:
            self._forget(now)
        self._full_at[group] = full_at
        return True

    def has(self, address: str, amount: float, now: float) -> bool:
        """Whether `take` would succeed with the same arguments."""
        full_at = max(self._full_at.get(address_group(address), now), now) + amount * self._cost
        # Sums of fractions of a second are not exact.
        return not self._empty and full_at - now <= self._seconds * (1 + 1e-9)

    def _forget(self, now: float) -> None:
        self._full_at = {group: due for group, due in self._full_at.items() if due > now}
        if len(self._full_at) >= _MOST:
            del self._full_at[next(iter(self._full_at))]
