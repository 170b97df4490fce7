"""Events that an address group may cause in a second, and all groups together.

1. A group has a budget of `rate` events. It is full at first and refills evenly within a second.
2. All groups together have a budget of `total` events, which refills in the same way.
3. A group whose budget is full again is forgotten: a new budget is equal to it. So the table holds at most
   the groups of the last second, and rule 2 bounds these.
"""

from __future__ import annotations

from msmq_fast.security.addresses import address_group

__all__ = ["AddressRate"]

_SECOND = 1 + 1e-9  # sums of fractions of a second are not exact


class AddressRate:
    """Sans-IO. Times are monotonic seconds that do not decrease."""

    def __init__(self, rate: float, total: float) -> None:
        self._cost = 1 / rate
        self._cost_in_all = 1 / total
        # When each budget is full again. Ordered by the last event, which is also roughly by that time.
        self._full_at: dict[str, float] = {}
        self._all_full_at = 0.0

    def take(self, address: str, now: float) -> bool:
        """Count an event of `address`, or return False: there is no budget left."""
        all_full_at = max(self._all_full_at, now) + self._cost_in_all
        if all_full_at > now + _SECOND:
            return False
        group = address_group(address)
        full_at = max(self._full_at.get(group, now), now) + self._cost
        if full_at > now + _SECOND:
            return False
        self._all_full_at = all_full_at
        self._full_at.pop(group, None)
        self._full_at[group] = full_at
        self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        """Drop up to two groups with a full budget: more than one event can add."""
        for _ in range(2):
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now:
                break
            del self._full_at[oldest]

    def __len__(self) -> int:
        """The groups whose budget is not full."""
        return len(self._full_at)
