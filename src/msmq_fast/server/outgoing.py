"""Assigns outgoing queues to transports: each gets a channel of the carrier for its kind of destination."""

from __future__ import annotations

from typing import Protocol

from msmq_fast.packet.names import NameKind
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.opening import is_http
from msmq_fast.qm.queues.outgoing import Channel, OutgoingQueue
from msmq_fast.server.front_end import Bound, FrontEnd

__all__ = ["Carrier", "Dispatcher"]


class Carrier(Protocol):
    """Carries the messages of outgoing queues of one kind."""

    def channel_of(self, queue: OutgoingQueue) -> Channel:
        """Returns the channel that gets the messages of a queue."""

    def removed(self, queue: OutgoingQueue) -> None:
        """Called after a queue was deleted."""


class Dispatcher(FrontEnd):
    """Opens one channel for each outgoing queue; from then on, the queue reports its messages to the channel.
    Queues with MULTICAST and HTTP names have their own carriers; without one, their messages wait until they
    expire. All other queues use the carrier `usual`.
    """

    def __init__(
        self, manager: QueueManager, usual: Carrier, http: Carrier | None, multicast: Carrier | None
    ) -> None:
        self._manager = manager
        self._usual = usual
        self._http = http
        self._multicast = multicast
        self._left = 0  # messages that left queues which are no more

    async def listen(self, bound: Bound) -> None:
        """Hand queues with waiting messages to the carriers."""
        self._manager.outgoing_queues.opened.connect(self._added)
        self._manager.outgoing_queues.removed.connect(self._removed)
        for queue in self._manager.outgoing():
            self._added(queue)

    async def stop(self) -> None:
        """Stop handing queues to the carriers."""
        self._manager.outgoing_queues.bring_online(False)

    @property
    def messages_out(self) -> int:
        """Number of messages that left outgoing queues since the start: acknowledged, expired or purged."""
        return self._left + sum(queue.core.removed_total for queue in self._manager.outgoing())

    def _carrier(self, queue: OutgoingQueue) -> Carrier | None:
        if queue.destination.kind is NameKind.MULTICAST:
            return self._multicast
        return self._http if is_http(queue.destination) else self._usual

    def _added(self, queue: OutgoingQueue) -> None:
        carrier = self._carrier(queue)
        if carrier is not None:
            queue.connect(carrier.channel_of(queue))

    def _removed(self, queue: OutgoingQueue) -> None:
        carrier = self._carrier(queue)
        if carrier is not None:
            carrier.removed(queue)
        self._left += queue.core.removed_total
