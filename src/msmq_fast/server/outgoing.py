"""Assigns outgoing queues to transports: each queue gets a channel from the carrier for its kind of
destination.
"""

from __future__ import annotations

from typing import Protocol

from msmq_fast.packet.names import NameKind
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.opening import is_http
from msmq_fast.qm.queues.outgoing import Channel, OutgoingQueue
from msmq_fast.server.front_end import Bound, FrontEnd

__all__ = ["Carrier", "Dispatcher"]


class Carrier(Protocol):
    """A transport that sends the messages of outgoing queues with one kind of names."""

    def channel_of(self, queue: OutgoingQueue) -> Channel:
        """Return the channel that sends the messages of a queue."""

    def removed(self, queue: OutgoingQueue) -> None:
        """Called after an outgoing queue was deleted."""


class Dispatcher(FrontEnd):
    """Opens one channel for each outgoing queue; from then on, the queue reports its messages to the channel.
    Queues with MULTICAST and HTTP names have carriers of their own; if such a carrier is off, the messages of
    its queues wait until they expire. All other queues use the carrier `usual`.
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
        """Assign the existing and all later outgoing queues to the carriers."""
        self._manager.outgoing_queues.opened.connect(self._added)
        self._manager.outgoing_queues.removed.connect(self._removed)
        for queue in self._manager.outgoing():
            self._added(queue)

    async def stop(self) -> None:
        """Take all outgoing queues offline: they send no more messages, except in sessions that are still
        open.
        """
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
