"""The queue manager (MS-MQDMPR 3.1.1.1): queues by name, opening, sending, purging, recovery, deadlines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from random import Random
from uuid import UUID

from msmq_fast.directory.provider import DirectoryProvider
from msmq_fast.packet.errors import (
    IllegalFormatName,
    InsufficientResources,
    MSMQError,
)
from msmq_fast.packet.names import FormatName
from msmq_fast.packet.text import quoted
from msmq_fast.qm.bulk.leases import Leases
from msmq_fast.qm.bulk.staging import Staging
from msmq_fast.qm.clock import Clock
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.feed.bounds import Bounds
from msmq_fast.qm.feed.eventfeed import EventFeed
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.handles.opener import Opener
from msmq_fast.qm.identity.signing import Signing
from msmq_fast.qm.operator.definitions import Definitions
from msmq_fast.qm.operator.jobs import Jobs
from msmq_fast.qm.outgoing.answers import AnswerQueues
from msmq_fast.qm.outgoing.disposition import Disposition
from msmq_fast.qm.outgoing.retirement import Retirement
from msmq_fast.qm.outgoing.sequences import OutgoingStreams
from msmq_fast.qm.publication import Publication
from msmq_fast.qm.queues.connector import Connectors
from msmq_fast.qm.queues.expiry import Expiry
from msmq_fast.qm.queues.flow import FlowControl
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.qm.queues.housekeeping import Housekeeping
from msmq_fast.qm.queues.incoming import Arrival, IncomingTransfer
from msmq_fast.qm.queues.journal import without_journal
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.queues.subqueue import Subqueues
from msmq_fast.qm.reading.remote import RemoteReader
from msmq_fast.qm.records import Store, followed_by
from msmq_fast.qm.recovery import recover
from msmq_fast.qm.services import Services, State
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.qm.timed import TimedGroup
from msmq_fast.qm.transactions.poison import PoisonHandling
from msmq_fast.qm.transactions.transaction import Transactions
from msmq_fast.security.audit import Audit
from msmq_fast.security.authorizer import Authorizer
from msmq_fast.security.defaults import DefaultPolicy
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName

_log = logging.getLogger(__name__)

MOST_OUTGOING = 65_536
"""Outgoing queues beyond which messages from elsewhere open no more."""
MOST_ANSWERED = 10_000
"""The same for acknowledgments: where they go is what senders claim, see `answers.AnswerQueues`."""


class QueueManager:
    """Everything runs on one thread. Whoever calls in sets the time first (`tick`).

    `on_outgoing` is called with each outgoing queue that has messages to be sent and may send them, again
    at every turn as long as messages stay available. Set `before_submit` as the writer's hook before it
    seals a batch, and call `ledger.serve` in every turn, also while a commit is under way.
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
        services = Services(store, settings, clock, random, faults)
        self.services = services
        self.store = store
        self.settings = settings
        self.records = services.records
        self.faults = services.faults
        self.damage = services.damage
        self.guid = services.guid
        self.name = services.name
        self.ledger = services.ledger
        self.message_ordinals = services.message_ordinals
        self.guard = guard or Guard(Authorizer(Audit(clock.monotonic)), DefaultPolicy())
        self.bounds = Bounds(self)
        self.flow = FlowControl(self.ledger)
        self.flow.limit_memory(settings.express_memory)
        self.registry = QueueRegistry(services)
        self.expiry = Expiry(self.ledger, clock, settings.expire_batch, self.faults)
        self.most_outgoing = MOST_OUTGOING
        self.most_answered = MOST_ANSWERED
        self._on_outgoing: Callable[[OutgoingQueue], None] | None = None
        self.connection_active = True  # ConnectionActive
        self.on_changed: Callable[[], None] | None = None  # a queue came, went or was changed
        self.on_hold: Callable[[OutgoingQueue, bool], None] | None = None  # was paused (True) or resumed
        self.purging = self.registry.purging
        self.reaping = self.registry.reaping
        self.incoming: Callable[[], Iterable[IncomingTransfer]] = tuple  # streams that protocols take in
        self.arrival: Arrival | None = None  # how protocols look at what arrives
        self.disposition = Disposition(self, insecure_nacks=settings.insecure_nacks)
        self.ledger.dispose = self.disposition
        self._housekeeping = Housekeeping(self)
        self.transactions = Transactions(self, settings.transaction_idle)
        self.staging = Staging(self, settings.stage_lifetime, settings.writer_lifetime)
        self.subqueues = Subqueues(self)
        self.poison = PoisonHandling(self)
        self.retirement = Retirement(self, settings.outgoing_idle)
        self.answer_queues = AnswerQueues(self, settings.answers_per_address)
        self.publication = Publication(self, directory)
        self.connectors = Connectors(self)
        self.jobs = Jobs(self)
        self.events = EventFeed(self, enabled=settings.feed)
        self.leases = Leases(self)
        self._timed = TimedGroup(self.faults)
        for name, timed in (
            ("messages and reads", self.expiry),
            ("housekeeping", self._housekeeping),
            ("transactions", self.transactions),
            ("stages", self.staging),
            ("subqueues", self.subqueues),
            ("idle outgoing queues", self.retirement),
            ("answers", self.answer_queues),
            ("FinalAcks", self.disposition.unsent),
            ("the directory", self.publication),
            ("leases", self.leases),
        ):
            self._timed.add(name, timed)
        self.definitions = Definitions(self)
        self.create_queue = self.definitions.create
        self.set_properties = self.definitions.set_properties
        self.apply_properties = self.definitions.apply_properties
        self.set_security = self.definitions.set_security
        self.delete_queue = self.definitions.delete
        self.drop = self.definitions.drop
        self.undo = self.definitions.undo
        self._opener = Opener(self)
        self.open = self._opener.open
        self.elsewhere = self._opener.elsewhere
        self.queue_for = self._opener.queue_for
        self.dead_letter_queue = self._opener.dead_letter_queue
        self.signing: Signing | None = None  # signs for local programs
        self.remote: RemoteReader | None = None  # reads queues of other computers
        self.importing: set[bytes] = set()  # jobs of imports that connections work on

    @property
    def state(self) -> State:
        """QueueManagerState."""
        return self.services.state

    def random_bytes(self, count: int) -> bytes:
        """From the injected randomness."""
        return self.services.random_bytes(count)

    # ---- lifecycle

    def start(self) -> Completion[None]:
        """Recover (REC-02 … REC-10) and be ready.

        What the start writes is durable on return: in particular the first block of every counter (DU-18).
        Raises StoreError.
        """
        self.services.state = State.INITIALIZING
        self.tick()
        self.streams = OutgoingStreams(self)

        def fill() -> None:
            if self.records.meta(MetaName.GUID) is None:
                self.records.set_meta(MetaName.GUID, self.guid.bytes_le)
            descriptor = self.records.meta(MetaName.SECURITY)
            if descriptor is not None:
                self.guard.machine = SecurityDescriptor.from_bytes(descriptor)
            self.events.started()
            recover(self)
            self.events.load()
            self.registry.reserve()
            self.streams.ordinals.reserve()
            self.services.reserve()

        done = self.records.unit(fill)
        self.publication.start()
        self.store.commit()
        self.records.unit(self._complete_journals)
        self.records.unit(self.streams.settle)
        self.services.state = State.READY
        return done

    def _complete_journals(self) -> None:
        """Queues of a store that was made before queues had journals get theirs."""
        for queue in without_journal(self.registry.local()):
            journal = self.definitions.make_journal(queue)
            self.registry.add(journal)

    def stop(self) -> None:
        """No new work; waiting reads end with OPERATION_CANCELLED.

        What is under way still becomes durable.
        """
        self.services.state = State.STOPPING
        self.events.stopped()
        self.transactions.stop()
        self.staging.stop()
        for queue in self.queues():
            for handle in list(queue.descriptors):
                try:
                    handle.close()
                except Exception as error:
                    self.faults.note("closing a queue", error)

    def counters(self) -> dict[bytes, int]:
        """The last number given out by each counter, for a clean close of the store: the next start goes on
        behind them instead of behind the reserved blocks.
        """
        return {
            MetaName.SEQUENCE_HW: self.ledger.sequence,
            MetaName.MESSAGE_ID_HW: self.message_ordinals.last,
            **self.registry.counters(),
            MetaName.TX_SEQUENCE_HW: self.streams.ordinals.last,
        }

    def monotonic(self) -> float:
        """Seconds of the injected clock."""
        return self.services.monotonic()

    def tick(self) -> None:
        """Take over the time."""
        self.services.tick()

    def before_submit(self) -> None:
        """Serve readers: from what is available, then from what the coming commit makes durable (fused
        receive). The fault of one reader is no other's.
        """
        self._housekeeping.before_submit()
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
        """Run due deadlines and a batch of deferred removals."""
        self.tick()
        self._timed.expire(now)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        return self._timed.next_deadline()

    # ---- queues

    def queues(self) -> Iterable[Queue]:
        """User, system and outgoing queues; see Queue.kind."""
        return self.registry.queues()

    def outgoing(self) -> Collection[OutgoingQueue]:
        """Outgoing queues."""
        return self.registry.outgoing()

    def find(self, name: str) -> Queue:
        """The queue of a path or format name, local or outgoing.

        QUEUE_NOT_FOUND, or what QueueRegistry.resolve raises.
        """
        return self.registry.named(name)

    def find_field(self, kind: int, wire: bytes) -> Queue | None:
        """The local queue that a packet's destination field means (see QueueRegistry.find_field)."""
        return self.registry.find_field(kind, wire)

    def outgoing_to(self, name: FormatName) -> OutgoingQueue:
        """The outgoing queue of a destination, whatever the directory says of it."""
        found = self.outgoing_of(name)
        if found is not None:
            self.answer_queues.claim(found)
        return found or self._create_outgoing(name)

    def open_for_answers(self, name: FormatName, group: str) -> OutgoingQueue:
        """A new outgoing queue that answers to an address group open, see `AnswerQueues`."""
        return self._create_outgoing(name, answers_for=group)

    def outgoing_of(self, name: FormatName | None) -> OutgoingQueue | None:
        """The outgoing queue of a destination, if there is one."""
        return self.registry.outgoing_of(name)

    def answers(self, name: FormatName) -> bool:
        """Whether a dependent client may open an outgoing queue: it exists, or there are not `most_answered`
        yet, those for answers apart.
        """
        apart = len(self.outgoing()) - len(self.answer_queues)
        return self.outgoing_of(name) is not None or apart < self.most_answered

    def outgoing_for(self, name: FormatName, manager: UUID) -> OutgoingQueue:
        """Where messages that pass through wait for a queue of another queue manager.

        INSUFFICIENT_RESOURCES: there are `most_outgoing`, and names are what senders claim.
        ILLEGAL_FORMATNAME: see `_check_legal`.
        """
        _check_legal(name)
        found = self.outgoing_of(name)
        if found is None and len(self.outgoing()) >= self.most_outgoing:
            raise InsufficientResources(f"{self.most_outgoing} outgoing queues")
        if found is not None:
            self.answer_queues.claim(found)
        return found or self._create_outgoing(name, manager)

    def _create_outgoing(
        self, name: FormatName, manager: UUID | None = None, answers_for: str = ""
    ) -> OutgoingQueue:
        """DM-080; the record is in the batch of the first message or in an earlier one (DU-02).

        It is written before the queue can be found: what cannot be written does not exist.
        ILLEGAL_FORMATNAME: see `_check_legal`.
        """
        _check_legal(name)
        queue = OutgoingQueue(
            self.ledger,
            self.registry.new_ordinal(),
            self.services.new_guid(),
            name,
            history_length=self.settings.history_length,
            created=self.ledger.now_s,
            manager=manager,
            answers_for=answers_for,
        )
        with self.store.writer.unit():
            self.write_new(queue)
            try:
                self.add_outgoing(queue)
            except BaseException:
                self._forget_outgoing(queue)
                raise
        self._housekeeping.repeat(queue)
        return queue

    def _forget_outgoing(self, queue: OutgoingQueue) -> None:
        """A queue that could not be added: nothing refers to it."""
        queue.watch(None)
        self.registry.remove_outgoing(queue)
        self.answer_queues.closed(queue)
        queue.core.abandon()

    def add_outgoing(self, queue: OutgoingQueue) -> None:
        """An outgoing queue exists."""
        self.publication.attach(queue)
        queue.harden(self.settings.hardened)
        self.registry.add_outgoing(queue)
        self.answer_queues.opened(queue)
        queue.watch(self._on_outgoing if self.connection_active else None)

    def remove_outgoing(self, queue: OutgoingQueue) -> None:
        """An empty outgoing queue, whose record says so already, exists no more."""
        queue.watch(None)
        self.registry.remove_outgoing(queue)
        self.answer_queues.closed(queue)
        self.events.deleted(queue)
        queue.core.abandon()
        self.reaping.add(queue.ordinal)

    @property
    def on_outgoing(self) -> Callable[[OutgoingQueue], None] | None:
        """Who transfers messages."""
        return self._on_outgoing

    @on_outgoing.setter
    def on_outgoing(self, transfer: Callable[[OutgoingQueue], None] | None) -> None:
        self._on_outgoing = transfer
        self._watch_outgoing()

    def _watch_outgoing(self) -> None:
        for queue in self.outgoing():
            queue.watch(self._on_outgoing if self.connection_active else None)

    def take_offline(self) -> None:
        """Take Offline: no outgoing queue is transferred until `bring_online` (DM-043). Sessions that are
        open go on until they are idle.
        """
        self.connection_active = False
        self._watch_outgoing()

    def bring_online(self) -> None:
        """Bring Online: what waits is transferred."""
        self.connection_active = True
        self._watch_outgoing()

    def pause(self, queue: OutgoingQueue) -> Completion[None]:
        """Pause Queue: nothing is sent until `resume`; resolved when durable (DA-051)."""
        return self._hold(queue, True)

    def resume(self, queue: OutgoingQueue) -> Completion[None]:
        """Resume Queue; resolved when durable."""
        return self._hold(queue, False)

    def _hold(self, queue: OutgoingQueue, on_hold: bool) -> Completion[None]:
        if queue.hold(on_hold) and self.on_hold is not None:
            self.on_hold(queue, on_hold)
        return self.write(queue)

    def forget(self, handle: OpenQueue, queue: Queue | None) -> None:
        """A handle was closed."""
        if queue is not None and handle in queue.descriptors:
            queue.descriptors.remove(handle)
            self.subqueues.idle(queue)

    def cancel_waiting(self, queue: Queue, tag: int, error: MSMQError | None = None) -> bool:
        """Cancel Waiting Message Read Request: end the first waiting read of a queue with a tag, whoever
        waits (DM-148); False if there is none (DM-149). OpenQueue.cancel looks at one handle's reads only.
        """
        waiting = queue.readers.with_tag(tag)
        return waiting is not None and waiting.cancel(error)

    # ---- removal in the background

    def purge(self, queue: Queue) -> Completion[int]:
        """DU-08: gone from sight at once, resolved when the marker is durable.

        The store gives the space back in small batches.
        """
        self.serving()
        removed = queue.core.purge()
        queue.purged_to = queue.core.purged_to
        done = self.write(queue)
        self.purging.add(queue)
        return followed_by(done, removed)

    def set_aside(self, kind: str, text: str, count: int = 1) -> None:
        """See `Services.report_corrupt`."""
        self.services.report_corrupt(kind, text, count)

    def write(self, queue: Queue) -> Completion[None]:
        """Write the record of a queue; resolved when durable, and tried again until it is."""
        return self._housekeeping.write(queue)

    def write_new(self, queue: Queue) -> None:
        """Write the record of a queue that nothing can find yet; the caller registers it after that."""
        self._housekeeping.write_new(queue, lambda: self.events.created(queue))

    def serving(self) -> None:
        """SERVICE_NOT_AVAILABLE: it is not ready, or not any more."""
        self.services.require_ready()


def _check_legal(name: FormatName) -> None:
    """ILLEGAL_FORMATNAME: the name breaks the rules of MS-MQMQ 2.1.2. No queue has it, and its outgoing queue
    could not be read back from the store by the rules for names.
    """
    if name.is_illegal:
        raise IllegalFormatName(f"{quoted(str(name))} breaks the rules of direct format names")
