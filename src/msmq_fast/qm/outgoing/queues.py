"""Opens, pauses and deletes the outgoing queues of a queue manager.

A transport connects a `Channel` to each outgoing queue, which carries its messages. The directory resolves
the names of the queues; the module `answers` limits outgoing queues for acknowledgments.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.protocol.errors import (
    IllegalFormatName,
    InsufficientResources,
    QueueNotActive,
    SharingViolation,
)
from msmq_fast.protocol.text import quoted
from msmq_fast.qm.audit.trail import AuditTrail
from msmq_fast.qm.feed.eventfeed import EventFeed
from msmq_fast.qm.outgoing.loopback import LoopbackDelivery
from msmq_fast.qm.outgoing.messagelog import MessageLog
from msmq_fast.qm.outgoing.stalls import stall_of
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.queues.outgoing import ConnectionEvent, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queue import QueueState
from msmq_fast.qm.queues.queuerecords import QueueRecords
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.queues.stall import StallCause
from msmq_fast.qm.services import Services
from msmq_fast.security.token import Token
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["MOST_OUTGOING", "OutgoingQueues"]

MOST_OUTGOING = 65_536
"""Number of outgoing queues up to which messages in transit may open new ones."""


class OutgoingQueues:
    """The outgoing queues of a queue manager.

    Emits `opened` for each queue that was created or read from the store, `removed` for each that was
    deleted, and `claimed` for each that a program or a message in transit uses. `most` is the number of
    outgoing queues up to which messages in transit may open new ones.
    """

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        records: QueueRecords,
        events: EventFeed,
        directory: DirectoryClient,
        loopback: LoopbackDelivery,
        audit: AuditTrail,
        message_log: MessageLog,
    ) -> None:
        self._services = services
        self._message_log = message_log
        self._registry = registry
        self._records = records
        self._events = events
        self._directory = directory
        self._loopback = loopback
        self._audit = audit
        self.most = MOST_OUTGOING
        self.connection_active = True  # ConnectionActive
        self.opened: Signal[[OutgoingQueue]] = Signal()
        self.removed: Signal[[OutgoingQueue]] = Signal()
        self.claimed: Signal[[OutgoingQueue]] = Signal()

    @property
    def all(self) -> Collection[OutgoingQueue]:
        """All outgoing queues."""
        return self._registry.outgoing()

    def find(self, name: FormatName | None) -> OutgoingQueue | None:
        """Returns the outgoing queue of a destination; None if there is none."""
        return self._registry.outgoing_of(name)

    # ---- queues come

    def to(self, name: FormatName) -> OutgoingQueue:
        """Returns the outgoing queue of a destination, creating it if needed, without asking the
        directory.
        """
        found = self.find(name)
        if found is not None:
            self.claimed(found)
        return found or self._create(name)

    def open_for_answers(self, name: FormatName, group: str) -> OutgoingQueue:
        """Create an outgoing queue for answers that peers of an address group cause; see `AnswerQueues`."""
        return self._create(name, answers_for=group)

    def passing(self, name: FormatName, manager: UUID) -> OutgoingQueue:
        """Returns the outgoing queue for messages in transit to a queue of another queue manager.

        Raises INSUFFICIENT_RESOURCES if a new queue would be needed but there are already `most` queues: the
        number is limited, because senders choose the names. Raises ILLEGAL_FORMATNAME if `_check_legal`
        rejects the name.
        """
        _check_legal(name)
        found = self.find(name)
        if found is None and len(self.all) >= self.most:
            raise InsufficientResources(f"there are {self.most} outgoing queues; that is the limit")
        if found is not None:
            self.claimed(found)
        return found or self._create(name, manager)

    def _create(self, name: FormatName, manager: UUID | None = None, answers_for: str = "") -> OutgoingQueue:
        """Create an outgoing queue (DM-080). Its record is written in the same batch as its first message, or
        in an earlier batch (DU-02).

        The record is written before the queue can be found, so a queue whose record cannot be written does
        not exist. Raises ILLEGAL_FORMATNAME if `_check_legal` rejects the name.
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
        """Register an outgoing queue that was created or read from the store."""
        if queue.destination.kind is NameKind.PUBLIC:
            queue.properties.base_priority = self._directory.base_priority(queue.destination)
            _, queue.manager = self.locate(queue.destination, queue.manager)
        queue.harden(self._services.settings.hardened)
        queue.set_online(self.connection_active)
        self._registry.add_outgoing(queue)
        self.opened(queue)

    def _forget(self, queue: OutgoingQueue) -> None:
        """Undo the registration of a queue that could not be added."""
        queue.close()
        self._registry.remove_outgoing(queue)
        self.removed(queue)
        queue.core.abandon()

    # ---- queues go

    def hindrance(self, queue: OutgoingQueue) -> str:
        """Returns the reason why a queue cannot be deleted now; empty if it can be deleted."""
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
        """Delete an unused outgoing queue; resolved when the deletion is durable (DU-09).

        Raises SHARING_VIOLATION if the queue is in use.
        """
        reason = self.hindrance(queue)
        if reason:
            raise SharingViolation(f"{queue.name} cannot be deleted: {reason}")
        return self.discard(queue)

    def discard(self, queue: OutgoingQueue) -> Completion[None]:
        """Delete an outgoing queue with its messages; resolved when the deletion is durable."""
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
        """Bring Online: transfer waiting messages. With `online` False, Take Offline: transfer no messages
        until the next Bring Online (DM-043).

        Open sessions continue until they are idle.
        """
        self.connection_active = online
        for queue in self.all:
            queue.set_online(online)

    def set_online(self, online: bool, token: Token | None) -> None:
        """Take Offline or Bring Online, for an operator; see `bring_online`. A restart brings the queue
        manager online. The act is audited.
        """
        self.bring_online(online)
        self._audit.act(token, "bring online" if online else "take offline", "the queue manager")

    def pause(self, queue: OutgoingQueue, token: Token | None) -> Completion[None]:
        """Pause Queue: send no messages of the queue until `resume`; resolved when durable (DA-051). The act
        is audited.
        """
        by = "" if token is None else token.name or str(token.user)
        done = self._audit.recorded(self._hold(queue, True, by), token, "pause outgoing queue", queue.name)
        self._message_log.paused(queue)
        return done

    def resume(self, queue: OutgoingQueue, token: Token | None) -> Completion[None]:
        """Resume Queue; resolved when durable. The act is audited."""
        queue.reported.discard(StallCause.ON_HOLD)
        return self._audit.recorded(self._hold(queue, False), token, "resume outgoing queue", queue.name)

    def _hold(self, queue: OutgoingQueue, on_hold: bool, by: str = "") -> Completion[None]:
        queue.hold(on_hold, by)
        return self._records.write(queue)

    def kick(self, queue: OutgoingQueue, token: Token | None) -> None:
        """Connect now, and send now what the receiver has not acknowledged in order. The act is audited.

        Raises QUEUE_NOT_ACTIVE if the queue is paused, or locked by hardened mode.
        """
        if not queue.may_send:
            raise QueueNotActive(f"{queue.name} sends nothing: {stall_of(queue).reason or 'it is paused'}")
        queue.kick()
        self._audit.act(token, "kick outgoing queue", queue.name)

    # ---- what the queues ask (`OutgoingOwner`)

    def locate(self, name: FormatName, manager: UUID | None) -> tuple[str, UUID | None]:
        """Returns (host, GUID of the queue manager) of a destination; see `DirectoryClient.locate`."""
        return self._directory.locate(name, manager)

    def deliver_locally(self, queue: OutgoingQueue) -> bool:
        """Starts to move messages of the queue to a local queue. Returns whether a local queue accepts them;
        see `LoopbackDelivery`.
        """
        return self._loopback(queue)

    def noted(self, queue: OutgoingQueue, event: ConnectionEvent) -> None:
        """Logs failed connections of a queue that holds messages."""
        self._message_log.connection(queue, event)


def _check_legal(name: FormatName) -> None:
    """Raises ILLEGAL_FORMATNAME if the name violates MS-MQMQ 2.1.2.

    No queue can have such a name, and an outgoing queue with such a name could not be read back from the
    store.
    """
    if name.is_illegal:
        raise IllegalFormatName(f"{quoted(str(name))} is not a valid direct format name (MS-MQMQ 2.1.2)")
