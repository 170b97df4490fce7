"""Bounds the context handles of the clients of an endpoint.

1. An address group (of IPv6 the /64) holds at most `per_group`.
2. All groups together hold at most twice as many. A group may also hold no more than what is left, so each
   further one that takes all it can leaves half of the rest: a few addresses never take the last ones.
"""

from __future__ import annotations

from collections import Counter

from msmq_fast.security.addresses import address_group

__all__ = ["HandleBudget", "HandleShare"]


class HandleBudget:
    """The handles that are open at an endpoint, by address group."""

    def __init__(self, per_group: int) -> None:
        self._per_group = per_group
        self._left = 2 * per_group
        self._taken: Counter[str] = Counter()

    def share(self, address: str) -> HandleShare:
        """Returns a share in the budget of the clients at this address."""
        return HandleShare(self, address_group(address))

    def take(self, group: str) -> bool:
        """Count one more handle of the group; return False if the group has reached its limit."""
        if self._taken.get(group, 0) >= min(self._per_group, self._left):
            return False
        self._taken[group] += 1
        self._left -= 1
        return True

    def release(self, group: str, count: int) -> None:
        """Counts closed handles of the group."""
        self._left += count
        self._taken[group] -= count
        if not self._taken[group]:
            del self._taken[group]


class HandleShare:
    """The handles of one association, counted in its budget."""

    __slots__ = ("_budget", "_group")

    def __init__(self, budget: HandleBudget, group: str) -> None:
        self._budget = budget
        self._group = group

    def take(self) -> bool:
        """Count one more handle; return False if there are too many."""
        return self._budget.take(self._group)

    def release(self, count: int = 1) -> None:
        """Counts closed handles."""
        self._budget.release(self._group, count)
