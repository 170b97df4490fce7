"""Limits the context handles that the clients of an endpoint may have open.

1. An address group (for IPv6 the /64) has at most `per_group` handles.
2. All groups together have at most twice as many handles. A group must also not have more handles than remain
   free. Therefore a further group that takes as many as it can leaves half of the free handles, and a few
   addresses never use up all handles.
"""

from __future__ import annotations

from collections import Counter

from msmq_fast.security.addresses import address_group

__all__ = ["HandleBudget", "HandleShare"]


class HandleBudget:
    """Counts the handles that are open at an endpoint, in total and by address group."""

    def __init__(self, per_group: int) -> None:
        self._per_group = per_group
        self._left = 2 * per_group
        self._taken: Counter[str] = Counter()

    def share(self, address: str) -> HandleShare:
        """Returns the object that counts the handles of a new association with a client at `address`."""
        return HandleShare(self, address_group(address))

    def take(self, group: str) -> bool:
        """Counts one more handle of the group. Returns False, and does not count it, if the group has reached
        its limit.
        """
        if self._taken.get(group, 0) >= min(self._per_group, self._left):
            return False
        self._taken[group] += 1
        self._left -= 1
        return True

    def release(self, group: str, count: int) -> None:
        """Releases `count` handles of the group after they were closed."""
        self._left += count
        self._taken[group] -= count
        if not self._taken[group]:
            del self._taken[group]


class HandleShare:
    """Counts the handles of one association in the budget of the client's address group."""

    __slots__ = ("_budget", "_group")

    def __init__(self, budget: HandleBudget, group: str) -> None:
        self._budget = budget
        self._group = group

    def take(self) -> bool:
        """Counts one more handle. Returns False, and does not count it, if the limit is reached."""
        return self._budget.take(self._group)

    def release(self, count: int = 1) -> None:
        """Releases handles after they were closed."""
        self._budget.release(self._group, count)
