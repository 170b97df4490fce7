"""Finds the queues of messages that arrive by SRMP (3.1.5.1.3, 3.1.5.1.12).

The queue of each URL is looked up once and remembered until queues change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueState
from msmq_fast.qm.queues.system import ORDER
from msmq_fast.security.sid import ANONYMOUS, EVERYONE, Sid
from msmq_fast.security.token import Token
from msmq_fast.srmp.redirection import Destination, Redirector

__all__ = ["SENDER", "Destinations", "Place"]

SENDER: Final = Token(ANONYMOUS, frozenset((ANONYMOUS, EVERYONE)), "anonymous over HTTP")
"""The token of a sender over SRMP, which is not authenticated (3.1.5.1.12, A-68)."""

_MOST = 4096  # senders choose URLs, which must not fill the memory
_BOUND = (QueueKind.PUBLIC, QueueKind.PRIVATE)


class Place:
    """The destination of messages to a URL. `everybody`: every sender may send to it. `internal`: it is the
    queue order_queue$.
    """

    __slots__ = ("destination", "everybody", "internal", "queue")

    def __init__(self, destination: Destination, *, everybody: bool) -> None:
        self.destination = destination
        self.queue = destination.queue
        self.internal = self.queue is not None and self.queue.key == ORDER.part.key
        self.everybody = everybody


class Destinations:
    """Finds the destinations of arriving messages; `queues` returns all queues of this computer."""

    def __init__(self, redirector: Redirector, guard: Guard, queues: Callable[[], Iterable[Queue]]) -> None:
        self._redirector = redirector
        self._guard = guard
        self._queues = queues
        self._places: dict[str, Place] = {}
        self._groups: dict[str, list[Queue]] | None = None

    def forget(self) -> None:
        """Forget the URLs that were looked up, because queues were created, deleted or changed."""
        self._places.clear()
        self._groups = None

    def find(self, to: str) -> Place:
        """Returns the destination of messages to the URL `to`. Raises ValueError if the URL is invalid."""
        place = self._places.get(to)
        if place is not None and (place.queue is None or place.queue.state is QueueState.EXISTING):
            return place
        found = self._redirector.destination(to)
        queue = found.queue
        place = Place(found, everybody=queue is not None and self._guard.open_to_everybody(queue))
        if queue is not None or found.forward:
            if len(self._places) >= _MOST:
                self._places.clear()
            self._places[to] = place
        return place

    def bound(self, group: str) -> list[Queue]:
        """Return the queues that receive the messages to a multicast group, `address:port` (SR-144)."""
        if self._groups is None:
            self._groups = self._by_group()
        return self._groups.get(group, [])

    def _by_group(self) -> dict[str, list[Queue]]:
        groups: dict[str, list[Queue]] = {}
        for queue in self._queues():
            group = queue.properties.multicast_address.strip()
            if group and queue.kind in _BOUND:
                groups.setdefault(group, []).append(queue)
        return groups

    def admits(self, queue: Queue, user: Sid | None = None) -> bool:
        """Return whether a message may be put into a queue (SR-179, SR-180); audits refusals.

        `user` has signed the message; None: its sender is anonymous.
        """
        if self._guard.open_to_everybody(queue):
            return True
        try:
            self._guard.open(SENDER if user is None else _signed(user), queue, Access.SEND)
        except AccessDenied:
            return False
        return True


def _signed(user: Sid) -> Token:
    return Token(user, SENDER.sids | {user}, "signed, over HTTP")
