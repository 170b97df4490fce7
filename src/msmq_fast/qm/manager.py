"""The queue manager (MS-MQDMPR 3.1.1.1): constructs and connects its parts. Front ends use it through the
class `QueueManager`.

To add a part:

1. Write it in the package it belongs to, and pass what it uses to its constructor. It imports from its own
   package and from those below it in tools/layers.toml.
2. Construct it in `QueueManager.__init__`, after the parts that it uses. Nothing below imports this module.
3. If it has deadlines, give it `next_deadline` and `expire` (timed.py), and add it to `_timed`.
4. If it stores records, name the key in `MetaName` or the table in `Table` (store/schema.py says which, and
   how), and add the part to the list that `Recovery` gets, behind the parts that it needs: its method
   `recover` is called at start, inside a unit, when queues and messages are loaded.
5. If its work can be pending at shutdown, end that work in `stop`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from random import Random
from uuid import UUID

from msmq_fast._native.queue import QueueCore
from msmq_fast.directory.notices import NOTIFY_QUEUE, TIME_TO_REACH_S, Notice, encode_notice
from msmq_fast.directory.provider import DirectoryProvider
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.audit.trail import AuditTrail
from msmq_fast.qm.bulk.bounds import Bounds
from msmq_fast.qm.bulk.leases import Leases
from msmq_fast.qm.bulk.staging import Staging
from msmq_fast.qm.clock import Clock
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.feed.eventfeed import EventFeed
from msmq_fast.qm.handles.handle import HandleServices, OpenQueue
from msmq_fast.qm.handles.opener import Opener
from msmq_fast.qm.operator.directorychanges import DirectoryChanges
from msmq_fast.qm.operator.jobs import Jobs
from msmq_fast.qm.operator.queueadmin import QueueAdmin
from msmq_fast.qm.operator.resubmission import Resubmission
from msmq_fast.qm.operator.routes import RouteExplainer
from msmq_fast.qm.operator.series import QueueSeries
from msmq_fast.qm.outgoing.ackpolicy import AckPolicy
from msmq_fast.qm.outgoing.answers import AnswerQueues
from msmq_fast.qm.outgoing.destinations import Destinations
from msmq_fast.qm.outgoing.idlecleanup import IdleQueueCleanup
from msmq_fast.qm.outgoing.loopback import LoopbackDelivery
from msmq_fast.qm.outgoing.messagelog import MessageLog
from msmq_fast.qm.outgoing.queues import OutgoingQueues
from msmq_fast.qm.outgoing.sequences import OutgoingStreams
from msmq_fast.qm.queues.changes import QueueChanges
from msmq_fast.qm.queues.connector import Connectors
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.expiry import Expiry
from msmq_fast.qm.queues.flow import FlowControl
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.qm.queues.housekeeping import Housekeeping
from msmq_fast.qm.queues.incoming import IncomingProtocols
from msmq_fast.qm.queues.journal import without_journal
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.queuerecords import QueueRecords
from msmq_fast.qm.queues.registry import Ordered, QueueRegistry
from msmq_fast.qm.queues.subqueue import Subqueues
from msmq_fast.qm.reading.remote import RemoteReader
from msmq_fast.qm.records import Store
from msmq_fast.qm.recovery import Recovery
from msmq_fast.qm.services import Services, State
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.qm.timed import TimedGroup
from msmq_fast.qm.transactions.multiple import MultipleOpener, MultipleQueue
from msmq_fast.qm.transactions.poison import PoisonHandling
from msmq_fast.qm.transactions.transaction import Transactions
from msmq_fast.security.audit import Audit
from msmq_fast.security.authorizer import Authorizer
from msmq_fast.security.defaults import DefaultPolicy
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName

__all__ = ["QueueManager"]

_log = logging.getLogger(__name__)


class _LedgerOwner:
    """Forwards callbacks of the ledger to the parts of the queue manager that handle them, since these parts
    are constructed after the ledger.
    """

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager

    def on_removed(
        self, role: int, packet: bytes, reason: int, ack_flags: int, chosen: int
    ) -> tuple[int, bool, QueueCore | None]:
        return self._manager.ack_policy(role, packet, reason, ack_flags, chosen)

    def reserve_sequence(self, limit: int) -> None:
        self._manager.services.reserve_sequence(limit)

    def new_stream(self) -> int:
        return self._manager.streams.new()

    def discarded(self, ordinal: int) -> None:
        self._manager.ack_policy.no_room(ordinal)

    def expired(self, messages: list[tuple[int, bytes, int]], more: int) -> None:
        self._manager.message_log.expired(messages, more)

    def memory_changed(self, level: int) -> None:
        self._manager.flow.memory_changed(level)

    def poisoned(self, ordinal: int, keys: list[int]) -> None:
        self._manager.poison.poisoned(ordinal, keys)

    def read_failed(self, ordinal: int, key: int, status: int) -> None:
        self._manager.services.read_failed(ordinal, key, status)


class QueueManager:
    """The interface of the queue manager. All methods run on one thread. Call `tick` to update the time
    before other methods.

    The owner sets the writer's `before_seal` to `before_submit`, and calls `ledger.serve` in every turn of
    the loop, even while a commit is pending.
    """

    def __init__(
        self,
        store: Store,
        settings: QueueManagerSettings,
        clock: Clock,
        random: Random,
        directory: DirectoryProvider | None = None,
        guard: Guard | None = None,
        faults: Faults | None = None,
    ) -> None:
        services = Services(store, settings, clock, random, _LedgerOwner(self), faults)
        self.services = services
        self.store = store
        self.settings = settings
        self.records = services.records
        self.faults = services.faults
        self.damage = services.damage
        self.guid = services.guid
        self.name = services.name
        self.ledger = ledger = services.ledger
        self.message_ordinals = services.message_ordinals
        self.guard = guard or Guard(Authorizer(Audit(clock.monotonic)), DefaultPolicy())
        self.audit = audit = AuditTrail(services, settings.audit_entries, settings.audit_size)
        self.guard.authorizer.audit.written.connect(audit.denied)

        # Queues
        self.registry = registry = QueueRegistry(services)
        self.events = EventFeed(services, enabled=settings.feed)
        self.message_log = MessageLog(clock.monotonic, settings.log_lines, registry.by_ordinal)
        self.bounds = Bounds(ledger)
        self.flow = FlowControl(ledger)
        self.flow.limit_memory(settings.express_memory)
        self.expiry = Expiry(ledger, clock, settings.expire_batch, services.faults)
        self.incoming = IncomingProtocols()
        self._queue_records = QueueRecords(services)
        self.changes = QueueChanges(services, registry, self._queue_records, self.events)
        self._housekeeping = Housekeeping(services, registry, self._queue_records, self.events, audit)
        self.subqueues = Subqueues(services, registry, self.changes)
        self.directory = DirectoryClient(services, registry, self.changes, self._announce, directory)
        self.connectors = Connectors(services, registry, self.changes, self.directory)

        # Messages that leave
        loopback = LoopbackDelivery(services, registry, self.connectors, self.guard, self.incoming)
        self.outgoing_queues = OutgoingQueues(
            services,
            registry,
            self._queue_records,
            self.events,
            self.directory,
            loopback,
            audit,
            self.message_log,
        )
        self.answer_queues = AnswerQueues(
            services, self.outgoing_queues, self._queue_records, settings.answers_per_address
        )
        self.idle_cleanup = IdleQueueCleanup(
            services, self.outgoing_queues, self.answer_queues, settings.outgoing_idle
        )
        self.destinations = Destinations(
            services, registry, self.outgoing_queues, self.answer_queues, self.directory, self.connectors
        )
        self.ack_policy = AckPolicy(
            services,
            registry,
            self.flow,
            self.answer_queues,
            self.destinations,
            self.incoming,
            self.message_log,
            insecure_nacks=settings.insecure_nacks,
        )
        self.streams = OutgoingStreams(services, registry)

        # Programs
        callers = self.events.callers
        parts = HandleServices(
            services, registry, self.expiry, self.subqueues, self._housekeeping, callers, self.message_log
        )
        self._opener = Opener(parts, self.guard, self.directory, self.outgoing_queues, self.destinations)
        self.transactions = Transactions(services, settings.transaction_idle)
        self.poison = PoisonHandling(services, registry, self.subqueues)
        self._multiple = MultipleOpener(parts, self._opener, self.directory, self.transactions)
        self.staging = Staging(services, self.transactions, settings.stage_lifetime, settings.writer_lifetime)
        self.leases = Leases(services, registry, callers)
        self.changes.removed.connect(self.leases.forget)

        # Operators
        self.queue_admin = QueueAdmin(
            services, registry, self.changes, self.guard, self.directory, self.outgoing_queues, audit
        )
        self.directory_changes = DirectoryChanges(self.directory, registry, self.queue_admin)
        self.jobs = Jobs(services.records, registry)
        self.routes = RouteExplainer(services, registry, self.directory, self.flow)
        self.resubmission = Resubmission(services, self.transactions, self._opener, callers)
        self.series = QueueSeries(ledger, clock, settings.metric_queues)  # its owner calls it when it is due
        self.remote: RemoteReader | None = None  # reads queues of other computers

        self._recovery = Recovery(
            services,
            registry,
            self.guard,
            self.events,
            self.subqueues,
            self.outgoing_queues,
            self.streams,
            self.transactions,
            [audit, self.leases, self.staging],
        )
        self._timed = TimedGroup(services.faults)
        for name, timed in (
            ("messages and reads", self.expiry),
            ("records of queues", self._queue_records),
            ("housekeeping", self._housekeeping),
            ("transactions", self.transactions),
            ("stages", self.staging),
            ("subqueues", self.subqueues),
            ("idle outgoing queues", self.idle_cleanup),
            ("answers", self.answer_queues),
            ("FinalAcks", self.ack_policy.unsent),
            ("the directory", self.directory),
            ("leases", self.leases),
            ("audit", audit),
        ):
            self._timed.add(name, timed)

    @property
    def state(self) -> State:
        """The state of this queue manager (QueueManagerState)."""
        return self.services.state

    def random_bytes(self, count: int) -> bytes:
        """Returns random bytes from the source that the constructor got."""
        return self.services.random_bytes(count)

    # ---- lifecycle

    def start(self) -> Completion[None]:
        """Recover the stored state (REC-02 … REC-10) and become ready.

        Everything that the recovery writes is durable on return, in particular the first block of every
        counter (DU-18). Raises StoreError.
        """
        self.services.state = State.INITIALIZING
        self.tick()

        def fill() -> None:
            if self.records.meta(MetaName.GUID) is None:
                self.records.set_meta(MetaName.GUID, self.guid.bytes_le)
            descriptor = self.records.meta(MetaName.SECURITY)
            if descriptor is not None:
                self.guard.machine = SecurityDescriptor.from_bytes(descriptor)
            self.events.started()
            self._recovery.run()
            self.events.load()
            self.registry.reserve()
            self.streams.ordinals.reserve()
            self.services.reserve()

        done = self.records.unit(fill)
        self.directory.start()
        self.store.commit()
        self.records.unit(self._complete_journals)
        self.records.unit(self.streams.settle)
        self.services.state = State.READY
        return done

    def _complete_journals(self) -> None:
        """Create the journals of queues that were stored by a version without journals."""
        for queue in without_journal(self.registry.local()):
            self.registry.add(self.changes.make_journal(queue))

    def stop(self) -> None:
        """Accept no new work; waiting reads end with OPERATION_CANCELLED. Pending work still becomes
        durable.
        """
        self.services.state = State.STOPPING
        self.directory.close()
        self.events.stopped()
        self.transactions.stop()
        self.staging.stop()
        self.audit.stop()
        for queue in self.queues():
            for handle in list(queue.descriptors):
                try:
                    handle.close()
                except Exception as error:
                    self.faults.note("closing a queue", error)

    def counters(self) -> dict[bytes, int]:
        """Returns the last number assigned by each counter, for a clean close of the store.

        The next start continues after these numbers instead of after the reserved blocks.
        """
        return {
            MetaName.SEQUENCE_HW: self.ledger.sequence,
            MetaName.MESSAGE_ID_HW: self.message_ordinals.last,
            **self.registry.counters(),
            MetaName.TX_SEQUENCE_HW: self.streams.ordinals.last,
        }

    def monotonic(self) -> float:
        """Monotonic seconds of the clock that the constructor got."""
        return self.services.monotonic()

    def tick(self) -> None:
        """Update the time from the clock."""
        self.services.tick()

    def before_submit(self) -> None:
        """Serve waiting readers: first with messages that are available, then with messages that the coming
        commit makes durable.

        In the second case one commit both stores and removes the message (a fused receive). An exception of
        one reader does not affect others.
        """
        self._queue_records.before_submit()
        try:
            self.ledger.serve()
        except Exception as error:
            self.faults.note("serving readers", error)
        for readers in list(self.registry.waited):
            if readers.core.positions.pending:
                try:
                    readers.serve(True)
                except Exception as error:
                    self.faults.note("serving readers", error)

    def expire(self, now: float) -> None:
        """Call `expire(now)` of the parts of the queue manager that have deadlines; this includes a batch of
        deferred removals.
        """
        self.tick()
        self._timed.expire(now)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        return self._timed.next_deadline()

    # ---- queues

    def queues(self) -> Iterable[Queue]:
        """Returns the user, system and outgoing queues; `Queue.kind` tells them apart."""
        return self.registry.queues()

    def in_order(self, kinds: tuple[QueueKind, ...]) -> Ordered:
        """Returns the queues of some kinds, ordered by their case-folded names."""
        return self.registry.in_order(kinds)

    def outgoing(self) -> Collection[OutgoingQueue]:
        """Returns all outgoing queues."""
        return self.registry.outgoing()

    def find(self, name: str) -> Queue:
        """Returns the local or outgoing queue with a path or format name.

        Raises QUEUE_NOT_FOUND, and what QueueRegistry.resolve raises.
        """
        return self.registry.named(name)

    def find_field(self, kind: int, wire: bytes) -> Queue | None:
        """Returns the local queue that a packet's destination field denotes (see
        QueueRegistry.find_field).
        """
        return self.registry.find_field(kind, wire)

    def create_queue(
        self,
        path: str,
        *,
        guid: UUID | None = None,
        token: Token | None = None,
        security: SecurityDescriptor | None = None,
        **properties: object,
    ) -> Completion[Queue]:
        """See `QueueAdmin.create`."""
        return self.queue_admin.create(path, guid=guid, token=token, security=security, **properties)

    def set_properties(
        self,
        queue: Queue,
        *,
        token: Token | None = None,
        security: SecurityDescriptor | None = None,
        **properties: object,
    ) -> Completion[None]:
        """See `QueueAdmin.set_properties`."""
        return self.queue_admin.set_properties(queue, token=token, security=security, **properties)

    def set_security(
        self, queue: Queue | None, given: SecurityDescriptor, *, token: Token | None = None
    ) -> Completion[SecurityDescriptor]:
        """See `QueueAdmin.set_security`."""
        return self.queue_admin.set_security(queue, given, token=token)

    def delete_queue(self, path: str, *, token: Token | None = None) -> Completion[None]:
        """See `QueueAdmin.delete`."""
        return self.queue_admin.delete(path, token=token)

    def purge(self, queue: Queue, *, token: Token | None = None) -> Completion[int]:
        """See `Housekeeping.purge`."""
        return self._housekeeping.purge(queue, token)

    # ---- opening

    def open(
        self,
        name: str,
        access: Access,
        share: Share = Share.DENY_NONE,
        *,
        internal: bool = False,
        token: Token | None = None,
    ) -> OpenQueue:
        """Open one queue; see `Opener.open`."""
        return self._opener.open(name, access, share, internal=internal, token=token)

    def open_destinations(
        self, name: str, access: Access, share: Share = Share.DENY_NONE, *, token: Token | None = None
    ) -> OpenQueue | MultipleQueue:
        """Open one queue or several; see `MultipleOpener.open`."""
        return self._multiple.open(name, access, share, token=token)

    def elsewhere(self, name: str) -> FormatName | None:
        """See `Opener.elsewhere`."""
        return self._opener.elsewhere(name)

    def dead_letter_queue(self, name: str, token: Token | None) -> int:
        """See `Opener.dead_letter_queue`."""
        return self._opener.dead_letter_queue(name, token)

    # ---- outgoing queues

    def outgoing_for(self, name: FormatName, manager: UUID) -> OutgoingQueue:
        """See `OutgoingQueues.passing`."""
        return self.outgoing_queues.passing(name, manager)

    def pause(self, queue: OutgoingQueue, *, token: Token | None = None) -> Completion[None]:
        """See `OutgoingQueues.pause`."""
        return self.outgoing_queues.pause(queue, token)

    def resume(self, queue: OutgoingQueue, *, token: Token | None = None) -> Completion[None]:
        """See `OutgoingQueues.resume`."""
        return self.outgoing_queues.resume(queue, token)

    def kick(self, queue: OutgoingQueue, *, token: Token | None = None) -> None:
        """See `OutgoingQueues.kick`."""
        self.outgoing_queues.kick(queue, token)

    def set_online(self, online: bool, *, token: Token | None = None) -> None:
        """See `OutgoingQueues.set_online`."""
        self.outgoing_queues.set_online(online, token)

    # ---- the rest

    def report_corrupt(self, kind: str, text: str, count: int = 1) -> None:
        """See `Services.report_corrupt`."""
        self.services.report_corrupt(kind, text, count)

    def serving(self) -> None:
        """See `Services.require_ready`."""
        self.services.require_ready()

    def _announce(self, owner: UUID, notice: Notice) -> None:
        """Send a notice of a changed directory object, as an express message, to the notification queue of
        the queue manager that owns the object (DS-31).
        """
        try:
            handle = self.open(f"PRIVATE={owner}\\{NOTIFY_QUEUE:08x}", Access.SEND, internal=True)
            try:
                handle.send(Message(body=encode_notice(notice), time_to_reach_queue=TIME_TO_REACH_S))
            finally:
                handle.close()
        except MSMQError as error:
            _log.warning("notifying the owner %s of a changed object failed: %s", owner, error)
