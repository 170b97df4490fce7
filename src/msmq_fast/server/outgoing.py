"""Which way messages leave: outgoing queues are handed to those who carry them, by the kind of their
destination.
"""

from __future__ import annotations

from msmq_fast.packet.names import NameKind
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.outgoing.queues import Carrier
from msmq_fast.qm.queues.opening import is_http
from msmq_fast.qm.queues.outgoing import OutgoingQueue

__all__ = ["Dispatcher"]


class Dispatcher:
    """A `Carrier` for all outgoing queues. Those by MULTICAST and HTTP names have carriers of
    their own; without one they wait until they expire. All others are `usual`.
    """

    def __init__(
        self, manager: QueueManager, usual: Carrier, http: Carrier | None, multicast: Carrier | None
    ) -> None:
        self._manager = manager
        self._usual = usual
        self._http = http
        self._multicast = multicast
        self._left = 0  # messages that left queues which are no more

    def start(self) -> None:
        """Carriers are there: what waits is handed to them."""
        self._manager.outgoing_queues.connect(self)

    def stop(self) -> None:
        """Nothing is handed to anybody any more."""
        self._manager.outgoing_queues.disconnect(self)

    @property
    def messages_out(self) -> int:
        """Messages that left outgoing queues since the start: acknowledged, expired or purged."""
        return self._left + sum(queue.core.removed_total for queue in self._manager.outgoing())

    def _carrier(self, queue: OutgoingQueue) -> Carrier | None:
        if queue.destination.kind is NameKind.MULTICAST:
            return self._multicast
        return self._http if is_http(queue.destination) else self._usual

    def has_work(self, queue: OutgoingQueue) -> None:
        """Hand a queue with messages to its carrier."""
        carrier = self._carrier(queue)
        if carrier is not None:
            carrier.has_work(queue)

    def held(self, queue: OutgoingQueue, on_hold: bool) -> None:
        """A queue was paused or resumed."""
        carrier = self._carrier(queue)
        if carrier is not None:
            carrier.held(queue, on_hold)

    def retired(self, queue: OutgoingQueue) -> None:
        """A queue exists no more."""
        carrier = self._carrier(queue)
        if carrier is not None:
            carrier.retired(queue)
        self._left += queue.core.removed_total
