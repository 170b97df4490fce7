"""Messages that the queue manager itself sends and of which only the latest matters: acknowledgments of
streams.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msmq_fast._native.queue import QueueCore

__all__ = ["LatestOnly", "Place"]

T = TypeVar("T")

Place = tuple[QueueCore, int]
"""An outgoing queue, and the lookup id of a message in it."""


class LatestOnly(Generic[T]):
    """Keeps at most one waiting message for each subject (for example, for each stream).

    The latest message supersedes older ones. Superseded messages are removed from their queue unless they are
    already being sent; otherwise they would accumulate for a peer that cannot be reached.
    """

    def __init__(self) -> None:
        self._waiting: dict[T, list[Place]] = {}

    def put(self, subject: T, latest: Place) -> None:
        """Record a new message about `subject`, and remove older messages about it that are not being sent
        yet. `latest` says where the new message is: its outgoing queue and its key in this queue.

        Call inside a unit.
        """
        older = _still_there(self._waiting.get(subject, []))
        under_way = [(queue, key) for queue, key in older if not queue.remove(key)]
        self._waiting[subject] = [*under_way, latest]

    def tidy(self) -> None:
        """Forget messages that have left their queues."""
        waiting = ((subject, _still_there(places)) for subject, places in self._waiting.items())
        self._waiting = {subject: places for subject, places in waiting if places}


def _still_there(places: list[Place]) -> list[Place]:
    return [(queue, key) for queue, key in places if queue.positions.state(key)]
