"""The outgoing queues of a queue manager: they are opened, paused, and deleted.

What carries their messages connects a `Channel` to each of them. What a name means is for the directory; what
outgoing queues for acknowledgments may cost is in `answers`.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.protocol.errors import IllegalFormatName, InsufficientResources, SharingViolation
from msmq_fast.protocol.text import quoted
from msmq_fast.qm.feed.eventfeed import EventFeed
from msmq_fast.qm.outgoing.loopback import LoopbackDelivery
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.queues.outgoing import OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queue import QueueState
from msmq_fast.qm.queues.queuerecords import QueueRecords
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.services import Services
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["MOST_OUTGOING", "OutgoingQueues"]

MOST_OUTGOING = 65_536
"""Outgoing queues beyond which messages from elsewhere open no more."""


class OutgoingQueues:
    """Emits `opened` for each queue that is there from now on, `removed` for each that is gone, and `claimed`
    for each that something other than an answer uses. `most` bounds those that messages passing through open.
    """

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        records: QueueRecords,
        events: EventFeed,
        directory: DirectoryClient,
        loopback: LoopbackDelivery,
    ) -> None:
        self._services = services
        self._registry = registry
        self._records = records
        self._events = events
        self._directory = directory
        self._loopback = loopback
        self.most = MOST_OUTGOING
        self.connection_active = True  # ConnectionActive
        self.opened: Signal[[OutgoingQueue]] = Signal()
        self.removed: Signal[[OutgoingQueue]] = Signal()
        self.claimed: Signal[[OutgoingQueue]] = Signal()

    @property
    def all(self) -> Collection[OutgoingQueue]:
        """All of them."""
        return self._registry.outgoing()

    def find(self, name: FormatName | None) -> OutgoingQueue | None:
        """The outgoing queue of a destination, if there is one."""
        return self._registry.outgoing_of(name)

    # ---- queues come

    def to(self, name: FormatName) -> OutgoingQueue:
        """The outgoing queue of a destination, whatever the directory says of it."""
        found = self.find(name)
        if found is not None:
            self.claimed(found)
        return found or self._create(name)

    def open_for_answers(self, name: FormatName, group: str) -> OutgoingQueue:
        """A new outgoing queue that answers to an address group open, see `AnswerQueues`."""
        return self._create(name, answers_for=group)

    def passing(self, name: FormatName, manager: UUID) -> OutgoingQueue:
        """Returns the outgoing queue for messages in transit to a queue of another queue manager.

        INSUFFICIENT_RESOURCES: there are `most`, and names are what senders claim. ILLEGAL_FORMATNAME: see
        `_check_legal`.
        """
        _check_legal(name)
        found = self.find(name)
        if found is None and len(self.all) >= self.most:
            raise InsufficientResources(f"{self.most} outgoing queues")
        if found is not None:
            self.claimed(found)
        return found or self._create(name, manager)

    def _create(self, name: FormatName, manager: UUID | None = None, answers_for: str = "") -> OutgoingQueue:
        """DM-080; the record is in the batch of the first message or in an earlier one (DU-02).

        It is written before the queue can be found: what cannot be written does not exist.
        ILLEGAL_FORMATNAME: see `_check_legal`.
        """
        _check_legal(name)
        services = self._services
        queue = OutgoingQueue(
            services.ledger,
            self._registry.new_ordinal(),
            services.new_guid(),
            name,
            history_length=services.settings.history_length,
            created=services.ledger.now_s,
            manager=manager,
            answers_for=answers_for,
            owner=self,
        )
        with services.store.writer.unit():
            self._records.write_new(queue, lambda: self._events.created(queue))
            try:
                self.add(queue)
            except BaseException:
                self._forget(queue)
                raise
        self._records.repeat(queue)
        return queue

    def add(self, queue: OutgoingQueue) -> None:
        """An outgoing queue exists, made now or read from the store."""
        if queue.destination.kind is NameKind.PUBLIC:
            queue.properties.base_priority = self._directory.base_priority(queue.destination)
            _, queue.manager = self.locate(queue.destination, queue.manager)
        queue.harden(self._services.settings.hardened)
        queue.set_online(self.connection_active)
        self._registry.add_outgoing(queue)
        self.opened(queue)

    def _forget(self, queue: OutgoingQueue) -> None:
        """A queue that could not be added: nothing refers to it."""
        queue.close()
        self._registry.remove_outgoing(queue)
        self.removed(queue)
        queue.core.abandon()

    # ---- queues go

    def hindrance(self, queue: OutgoingQueue) -> str:
        """Why a queue stays; empty if it may go."""
        core = queue.core
        if queue.descriptors:
            return "it is open"
        if core.positions.live or core.used_bytes or self._services.ledger.returned:
            return "it holds messages"
        if queue.outgoing_state is OutgoingState.ON_HOLD:
            return "on hold"
        if queue in self._registry.purging:
            return "it is being purged"
        return ""

    def delete(self, queue: OutgoingQueue) -> Completion[None]:
        """Deletes an unused outgoing queue; resolved when the deletion is durable (DU-09).

        SHARING_VIOLATION: it is in use.
        """
        reason = self.hindrance(queue)
        if reason:
            raise SharingViolation(f"{queue.name} cannot be deleted: {reason}")
        return self.discard(queue)

    def discard(self, queue: OutgoingQueue) -> Completion[None]:
        """Delete an outgoing queue with what is in it."""
        queue.state = QueueState.DELETING
        try:
            done = self._records.write(queue)
        except Exception:
            queue.state = QueueState.EXISTING
            raise
        queue.close()
        self._registry.remove_outgoing(queue)
        self._events.deleted(queue, kind_of(queue))
        queue.core.abandon()
        self._registry.reaping.add(queue.ordinal)
        self.removed(queue)
        return done

    # ---- transfer

    def bring_online(self, online: bool = True) -> None:
        """Bring Online: what waits is transferred. Take Offline (False): no outgoing queue is transferred
        until `bring_online` (DM-043); sessions that are open go on until they are idle.
        """
        self.connection_active = online
        for queue in self.all:
            queue.set_online(online)

    def pause(self, queue: OutgoingQueue) -> Completion[None]:
        """Pause Queue: nothing is sent until `resume`; resolved when durable (DA-051)."""
        return self._hold(queue, True)

    def resume(self, queue: OutgoingQueue) -> Completion[None]:
        """Resume Queue; resolved when durable."""
        return self._hold(queue, False)

    def _hold(self, queue: OutgoingQueue, on_hold: bool) -> Completion[None]:
        queue.hold(on_hold)
        return self._records.write(queue)

    # ---- what the queues ask (`OutgoingOwner`)

    def locate(self, name: FormatName, manager: UUID | None) -> tuple[str, UUID | None]:
        """Host and queue manager of a destination, see `DirectoryClient.locate`."""
        return self._directory.locate(name, manager)

    def deliver_locally(self, queue: OutgoingQueue) -> bool:
        """Whether the next messages of the queue go to a local one, see `LoopbackDelivery`."""
        return self._loopback(queue)


def _check_legal(name: FormatName) -> None:
    """ILLEGAL_FORMATNAME: the name breaks the rules of MS-MQMQ 2.1.2. No queue has it, and its outgoing queue
    could not be read back from the store by the rules for names.
    """
    if name.is_illegal:
        raise IllegalFormatName(f"{quoted(str(name))} breaks the rules of direct format names")
