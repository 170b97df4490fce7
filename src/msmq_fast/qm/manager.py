"""The queue manager (MS-MQDMPR 3.1.1.1): queues by name, opening, sending, purging, recovery, deadlines."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from random import Random
from uuid import UUID

from msmq_fast._native.queue import SEQUENCE_BLOCK, Ledger
from msmq_fast.directory.provider import DirectoryProvider
from msmq_fast.packet.errors import (
    IllegalQueuePathName,
    MSMQError,
    PropertyError,
    QueueExists,
    QueueNotFound,
    ServiceNotAvailable,
    SharingViolation,
    UnsupportedAccessMode,
    UnsupportedFormatNameOperation,
)
from msmq_fast.packet.names import FormatName, NameKind, QueuePart, Scope
from msmq_fast.packet.text import printable, quoted
from msmq_fast.qm.access import Access, Share, excludes
from msmq_fast.qm.clock import Clock
from msmq_fast.qm.disposition import Disposition
from msmq_fast.qm.expiry import Expiry
from msmq_fast.qm.guard import Guard
from msmq_fast.qm.handle import OpenQueue
from msmq_fast.qm.housekeeping import Housekeeping
from msmq_fast.qm.ids import MESSAGE_BLOCK, QUEUE_BLOCK, Ordinals
from msmq_fast.qm.jobs import Jobs
from msmq_fast.qm.journal import JournalQueue, without_journal
from msmq_fast.qm.lookup import Directory, Target
from msmq_fast.qm.outgoing import OutgoingQueue
from msmq_fast.qm.poison import PoisonHandling
from msmq_fast.qm.publication import Publication
from msmq_fast.qm.queue import Queue, QueueKind, QueueProperties, QueueState, kind_of
from msmq_fast.qm.reading import Readers
from msmq_fast.qm.records import Records, Store
from msmq_fast.qm.recovery import recover
from msmq_fast.qm.settings import QueueManagerSettings, quota_bytes
from msmq_fast.qm.subqueue import Subqueues
from msmq_fast.qm.system import FIRST_FREE_NUMBER, INTERNAL_KEYS, RESERVED_ORDINALS
from msmq_fast.qm.transaction import Transactions
from msmq_fast.security.audit import Audit
from msmq_fast.security.authorizer import Authorizer
from msmq_fast.security.defaults import DefaultPolicy
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName

_log = logging.getLogger(__name__)

_MOVABLE = (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.SUBQUEUE)


class State(IntEnum):
    """QueueManagerState (ST-7)."""

    STOPPED = 0
    INITIALIZING = 1
    READY = 2
    STOPPING = 3


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
    ) -> None:
        self.store = store
        self.settings = settings
        self.records = Records(store)
        self.state = State.STOPPED
        self.guard = guard or Guard(Authorizer(Audit(clock.monotonic)), DefaultPolicy())
        self._clock = clock
        self._random = random
        self.guid = self._identity()
        self.name = settings.computer_name
        seed = int.from_bytes(self.random_bytes(8))
        self.ledger = Ledger(self.guid.bytes_le, store.writer, store.reader, seed)
        self.ledger.tables = store.tables
        self.ledger.quota_bytes = quota_bytes(settings.quota_kb)
        self.ledger.cache_limit = settings.cache_bytes
        self.ledger.feed = settings.feed
        self.ledger.reserve = self._reserve_sequence
        self.ledger.on_read_error = self._read_error
        self.directory = Directory(self.guid, settings)
        self.expiry = Expiry(self.ledger, clock, settings.expire_batch)
        self._outgoing: dict[str, OutgoingQueue] = {}
        self._on_outgoing: Callable[[OutgoingQueue], None] | None = None
        self.on_changed: Callable[[], None] | None = None  # properties of a queue were changed
        self._handles = 0
        self._cursors = 0
        self.waited: set[Readers] = set()  # with takers that wait
        self.purging: set[Queue] = set()
        self.reaping: set[int] = set()  # ordinals of deleted queues whose messages are still in the store
        self.damage: Counter[str] = Counter()  # what was set aside: records by kind, and packets
        self.disposition = Disposition(self, insecure_nacks=settings.insecure_nacks)
        self.ledger.dispose = self.disposition
        self._housekeeping = Housekeeping(self)
        self.transactions = Transactions(self, settings.transaction_idle)
        self.subqueues = Subqueues(self)
        self.poison = PoisonHandling(self)
        self.publication = Publication(self, directory)
        self.jobs = Jobs(self)
        self.importing: set[bytes] = set()  # jobs of imports that connections work on

    def _identity(self) -> UUID:
        stored = self.records.meta(MetaName.GUID)
        if stored is not None:
            return UUID(bytes_le=stored)
        return UUID(bytes=self.random_bytes(16), version=4)

    def random_bytes(self, count: int) -> bytes:
        """From the injected randomness."""
        return self._random.randbytes(count)

    # ---- lifecycle

    def start(self) -> Completion[None]:
        """Recover (REC-02 … REC-10) and be ready.

        What the start writes is durable on return: in particular the first block of every counter (DU-18).
        Raises StoreError.
        """
        self.state = State.INITIALIZING
        self.tick()
        self.message_ordinals = Ordinals(
            self.records, MetaName.MESSAGE_ID_HW, block=MESSAGE_BLOCK, wraps=True
        )
        self._ordinals = Ordinals(
            self.records, MetaName.QUEUE_ORDINAL_HW, first=RESERVED_ORDINALS, block=QUEUE_BLOCK
        )
        self._numbers = Ordinals(
            self.records, MetaName.PRIVATE_NUMBER_HW, first=FIRST_FREE_NUMBER, block=QUEUE_BLOCK
        )

        def fill() -> None:
            if self.records.meta(MetaName.GUID) is None:
                self.records.set_meta(MetaName.GUID, self.guid.bytes_le)
            descriptor = self.records.meta(MetaName.SECURITY)
            if descriptor is not None:
                self.guard.machine = SecurityDescriptor.from_bytes(descriptor)
            recover(self)
            for counter in (self.message_ordinals, self._ordinals, self._numbers):
                counter.reserve()
            self._reserve_sequence(self.ledger.sequence_limit + SEQUENCE_BLOCK)

        done = self.records.unit(fill)
        self.publication.start()
        self.store.commit()
        self.records.unit(self._complete_journals)
        self.state = State.READY
        return done

    def _complete_journals(self) -> None:
        """Queues of a store that was made before queues had journals get theirs."""
        for queue in without_journal(self.directory.queues()):
            self._make_journal(queue)
            self.add_journal(queue)

    def stop(self) -> None:
        """No new work; waiting reads end with OPERATION_CANCELLED.

        What is under way still becomes durable.
        """
        self.state = State.STOPPING
        self.transactions.stop()
        for queue in self.queues():
            for handle in list(queue.descriptors):
                handle.close()

    def counters(self) -> dict[bytes, int]:
        """The last number given out by each counter, for a clean close of the store: the next start goes on
        behind them instead of behind the reserved blocks.
        """
        return {
            MetaName.SEQUENCE_HW: self.ledger.sequence,
            MetaName.MESSAGE_ID_HW: self.message_ordinals.last,
            MetaName.QUEUE_ORDINAL_HW: self._ordinals.last,
            MetaName.PRIVATE_NUMBER_HW: self._numbers.last,
        }

    def monotonic(self) -> float:
        """Seconds of the injected clock."""
        return self._clock.monotonic()

    def tick(self) -> None:
        """Take over the time."""
        self.ledger.tick(self._clock.wall_us())

    def before_submit(self) -> None:
        """Serve readers: from what is available, then from what the coming commit makes durable (fused
        receive).
        """
        self._housekeeping.before_submit()
        self.ledger.serve()
        for readers in list(self.waited):
            if readers.core.positions.pending:
                readers.serve(True)

    def expire(self) -> None:
        """Run due deadlines and a batch of deferred removals."""
        self.tick()
        self.expiry.run()
        self._housekeeping.run()
        self.transactions.expire()
        self.subqueues.run()
        self.publication.expire()

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        deadlines = (
            self._housekeeping.next_deadline(),
            self.transactions.next_deadline(),
            self.subqueues.next_deadline(),
            self.expiry.next_deadline(),
            self.publication.next_deadline(),
        )
        return min((due for due in deadlines if due is not None), default=None)

    # ---- queues

    def queues(self) -> Iterable[Queue]:
        """User, system and outgoing queues; see Queue.kind."""
        yield from self.directory.queues()
        yield from self._outgoing.values()

    def outgoing(self) -> Iterable[OutgoingQueue]:
        """Outgoing queues."""
        return self._outgoing.values()

    def create_queue(
        self,
        path: str,
        *,
        guid: UUID | None = None,
        token: Token | None = None,
        security: SecurityDescriptor | None = None,
        **properties: object,
    ) -> Completion[Queue]:
        """Create a queue of this computer; resolved when it is durable (DM-055 … DM-063, DU-10).

        `token` is who asks, None for the queue manager itself; without `security` the queue gets the default
        descriptor. Raises ILLEGAL_QUEUE_PATHNAME, QUEUE_EXISTS, PROPERTY, ILLEGAL_PROPERTY_VALUE,
        ACCESS_DENIED. A public queue ends with what the directory says against it.
        """
        self._serving()
        self.guard.create(token)
        part = self.directory.part_of_path(path)
        if part.scope is Scope.SYSTEM or part.subqueue or part.journal:
            raise IllegalQueuePathName(f"{quoted(path)} is not the path of a queue that can be created")
        if part.key in self.directory:
            raise QueueExists(f"a queue {part} exists")
        values = QueueProperties.build(dict(properties))
        descriptor = self.guard.new_descriptor(token, security, self.publication.machine_sid)
        if values.transactional and values.multicast_address:
            raise PropertyError("a transactional queue cannot have a multicast address")
        if kind_of(part) is QueueKind.PUBLIC:
            return self.publication.create_queue(
                part, values, descriptor, guid, lambda guid: self._make(part, values, guid, descriptor)
            )
        made: list[Queue] = []
        guid = guid or UUID(bytes=self.random_bytes(16), version=4)
        done = self.records.unit(lambda: made.append(self._make(part, values, guid, descriptor)))
        (queue,) = made
        done.add_done_callback(lambda done: None if done.exception() is None else self.undo(queue))
        return _with(done, queue)

    def _make(
        self, part: QueuePart, values: QueueProperties, guid: UUID, security: SecurityDescriptor
    ) -> Queue:
        """A queue and, in the current unit, its record."""
        kind = kind_of(part)
        queue = Queue(
            self.ledger,
            self._ordinals.take(),
            guid,
            part,
            self.settings.computer_name,
            kind,
            values,
            private_number=self._numbers.take() if kind is QueueKind.PRIVATE else 0,
            created=self.ledger.now_s,
        )
        queue.security = security
        self.records.set_queue(queue.ordinal, queue.record())
        self._make_journal(queue)
        self.add(queue)
        return queue

    def _make_journal(self, queue: Queue) -> None:
        """The journal of a queue and, in the current unit, its record (DU-10)."""
        guid = UUID(bytes=self.random_bytes(16), version=4)
        journal = JournalQueue(self.ledger, self._ordinals.take(), guid, queue)
        self.records.set_queue(journal.ordinal, journal.record())

    def undo(self, queue: Queue) -> None:
        """A queue whose record was not kept does not exist."""
        if queue.state is QueueState.EXISTING:
            self._remove(queue)

    def add(self, queue: Queue) -> None:
        """A queue of this computer exists."""
        self.directory.add(queue)
        queue.readers.join(self.waited)
        self.add_journal(queue)

    def add_journal(self, queue: Queue) -> None:
        """The journal of a queue exists, if it has one."""
        if queue.journal is not None:
            self.directory.add(queue.journal)
            queue.journal.readers.join(self.waited)

    def set_properties(
        self,
        queue: Queue,
        *,
        token: Token | None = None,
        security: SecurityDescriptor | None = None,
        **properties: object,
    ) -> Completion[None]:
        """Change properties, and the parts of the descriptor that `security` has; resolved when durable
        (DU-17).

        PROPERTY: `transactional` never changes. ACCESS_DENIED: `token` may not change all of it.
        """
        self._serving()
        if queue.kind in (QueueKind.SUBQUEUE, QueueKind.JOURNAL):
            raise UnsupportedFormatNameOperation("a subqueue or journal has the properties of its queue")
        if properties or security is None:
            self.guard.write_properties(token, queue)
        if security is not None:
            security = self.guard.change_permissions(token, queue, security)
        if "transactional" in properties:
            raise PropertyError("whether a queue is transactional is decided when it is created")
        changed = replace(queue.properties)
        changed.update(dict(properties))
        if queue.kind is not QueueKind.PUBLIC:
            return self.apply_properties(queue, properties, security)
        return self.publication.write_queue(
            queue,
            changed,
            security or queue.security,
            lambda: self.apply_properties(queue, properties, security),
        )

    def apply_properties(
        self, queue: Queue, properties: Mapping[str, object], security: SecurityDescriptor | None = None
    ) -> Completion[None]:
        """Take over properties that were checked; resolved when durable."""
        queue.properties.update(dict(properties))
        if security is not None:
            queue.security = security
        queue.modified = self.ledger.now_s
        queue.set_quota()
        if self.on_changed is not None:
            self.on_changed()
        return self.write(queue)

    def set_security(self, queue: Queue | None, descriptor: SecurityDescriptor) -> Completion[None]:
        """Replace the descriptor of a queue, of the queue manager for None; resolved when durable.

        `guard.change_permissions` has seen it before.
        """
        self._serving()
        if queue is not None:
            return self.set_properties(queue, security=descriptor)
        self.guard.machine = descriptor
        return self.records.unit(lambda: self.records.set_meta(MetaName.SECURITY, descriptor.encoded))

    def delete_queue(self, path: str, *, token: Token | None = None) -> Completion[None]:
        """Delete a queue and its messages.

        Resolved when nothing can bring it back (DM-064 … DM-068, DU-09).
        """
        self._serving()
        queue = self.find(path)
        if queue.kind not in (QueueKind.PRIVATE, QueueKind.PUBLIC):
            raise UnsupportedFormatNameOperation(f"{queue.name} cannot be deleted")
        self.guard.delete(token, queue)
        if queue.kind is QueueKind.PUBLIC:
            return self.publication.delete_queue(queue, lambda: self.drop(queue))
        return self.drop(queue)

    def drop(self, queue: Queue) -> Completion[None]:
        """Delete a queue, its subqueues with it; resolved when that is durable."""
        queue.state = QueueState.DELETING
        try:
            done = self.write(queue)
        except Exception:
            queue.state = QueueState.EXISTING
            raise
        self._remove(queue)
        return done

    def _remove(self, queue: Queue) -> None:
        queue.state = QueueState.DELETING
        if queue.journal is not None:
            self._remove(queue.journal)
        for subqueue in list(queue.subqueues.values()):
            self._remove(subqueue)
        if queue.part is not None:
            queue.family.subqueues.pop(queue.part.subqueue.casefold(), None)
        self.directory.remove(queue)
        for handle in list(queue.descriptors):
            handle.orphan()
        queue.descriptors.clear()
        queue.core.abandon()
        self.purging.discard(queue)
        self.reaping.add(queue.ordinal)

    def find(self, name: str) -> Queue:
        """The queue of a path or format name, local or outgoing.

        QUEUE_NOT_FOUND, or what Directory.resolve raises.
        """
        target = self.directory.resolve(name)
        queue = self.directory.find(target) if target.local else self._outgoing_of(target.name)
        if queue is None:
            raise QueueNotFound(f"there is no queue {printable(name)}")
        return queue

    def find_field(self, kind: int, wire: bytes) -> Queue | None:
        """The local queue that a packet's destination field means (see Directory.find_field)."""
        return self.directory.find_field(kind, wire)

    def open(
        self,
        name: str,
        access: Access,
        share: Share = Share.DENY_NONE,
        *,
        internal: bool = False,
        token: Token | None = None,
    ) -> OpenQueue:
        """Open a queue (DM-069 … DM-086).

        A queue of another computer can be opened for sending: an outgoing queue takes the messages.
        `internal` opens queues that applications cannot; `token` is who asks, None for the queue manager
        itself. Raises QUEUE_NOT_FOUND, SHARING_VIOLATION, ACCESS_DENIED, UNSUPPORTED_ACCESS_MODE,
        UNSUPPORTED_FORMATNAME_OPERATION, and what Directory.resolve raises.
        """
        self._serving()
        if access is Access.SEND and share is not Share.DENY_NONE:
            raise UnsupportedAccessMode("a queue is opened for sending with share mode DENY_NONE only")
        if name[:3].upper() == "DL=":
            name = self.publication.expand(name)
        target = self.directory.resolve(name)
        queue = self._queue_to_open(target, name, access, token)
        if queue.key in INTERNAL_KEYS and not internal:
            raise UnsupportedAccessMode("the queue is internal")
        if access is Access.SEND and queue.kind is QueueKind.SUBQUEUE:
            raise UnsupportedAccessMode("nothing is sent to a subqueue")
        if access is Access.SEND and queue.kind is QueueKind.SYSTEM and not internal:
            raise UnsupportedAccessMode("nothing is sent to a system queue")
        if access is Access.SEND and queue.kind is QueueKind.JOURNAL:
            raise UnsupportedAccessMode("nothing is sent to a journal")
        if access is Access.MOVE and queue.kind not in _MOVABLE:
            raise UnsupportedAccessMode("messages are moved between a queue and its subqueues only")
        self.guard.open(token, queue, access)
        for existing in queue.descriptors:
            if excludes(existing.access, existing.share, access, share):
                raise SharingViolation(f"{queue.name} is open in a mode that excludes this one")
        self._handles += 1
        format_name = target.name if target.name is not None else queue.format_name(self.guid)
        handle = OpenQueue(self, queue, access, share, format_name, self._handles)
        queue.descriptors.append(handle)
        return handle

    def _new_subqueue(self, target: Target, access: Access, token: Token | None) -> Queue | None:
        """DM-087: opening a subqueue creates it, for those who may open its queue."""
        found = self.directory.parent(target)
        if found is None:
            return None
        if access is Access.SEND:
            raise UnsupportedAccessMode("nothing is sent to a subqueue")
        parent, subqueue = found
        self.guard.open(token, parent, access)
        return self.subqueues.make(parent, subqueue)

    def _queue_to_open(self, target: Target, name: str, access: Access, token: Token | None) -> Queue:
        if access.admin:
            outgoing = self._outgoing_of(target.name)
            if outgoing is None:
                raise QueueNotFound(f"there is no outgoing queue to {name}")
            return outgoing
        if target.local:
            queue = self.directory.find(target) or self._new_subqueue(target, access, token)
            if queue is None:
                raise QueueNotFound(f"there is no queue {printable(name)}")
            return queue
        if access is not Access.SEND:
            raise QueueNotFound(f"{name} is not on this computer")
        if target.name is None or target.name.read_only or target.name.kind is NameKind.SUBQUEUE:
            raise UnsupportedFormatNameOperation(f"{name} cannot be sent to")
        outgoing = self._outgoing_of(target.name)
        if outgoing is None and target.name.kind is NameKind.PUBLIC:
            self.publication.check_remote(target.name)
        return outgoing or self._create_outgoing(target.name)

    def queue_for(self, name: FormatName) -> Queue:
        """Where the queue manager's own messages for a queue go: a local queue of programs or an outgoing
        queue.

        Raises QUEUE_NOT_FOUND, and what Directory.resolve raises.
        """
        queue = self._queue_to_open(self.directory.resolve(str(name)), str(name), Access.SEND, None)
        if queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.OUTGOING):
            raise QueueNotFound(f"nothing is sent to {name}")
        return queue

    def dead_letter_queue(self, name: str, token: Token | None) -> int:
        """For the queue that `token` chose for messages that fail (M-04): what send_packets takes, 0 if there
        is no such queue of programs here.

        ACCESS_DENIED: `token` may not send to it; ILLEGAL_…: it is no name.
        """
        target = self.directory.resolve(name)
        queue = self.directory.find(target) if target.local else None
        if queue is None or queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            return 0
        self.guard.open(token, queue, Access.SEND)
        return queue.ordinal

    def _outgoing_of(self, name: FormatName | None) -> OutgoingQueue | None:
        return None if name is None else self._outgoing.get(name.key)

    def _create_outgoing(self, name: FormatName) -> OutgoingQueue:
        """DM-080; the record is in the batch of the first message or in an earlier one (DU-02)."""
        queue = OutgoingQueue(
            self.ledger,
            self._ordinals.take(),
            UUID(bytes=self.random_bytes(16), version=4),
            name,
            history_length=self.settings.history_length,
            created=self.ledger.now_s,
        )
        self.write(queue)
        self.add_outgoing(queue)
        return queue

    def add_outgoing(self, queue: OutgoingQueue) -> None:
        """An outgoing queue exists."""
        self.publication.attach(queue)
        self._outgoing[queue.key] = queue
        queue.readers.join(self.waited)
        queue.watch(self._on_outgoing)

    @property
    def on_outgoing(self) -> Callable[[OutgoingQueue], None] | None:
        """Who transfers messages."""
        return self._on_outgoing

    @on_outgoing.setter
    def on_outgoing(self, transfer: Callable[[OutgoingQueue], None] | None) -> None:
        self._on_outgoing = transfer
        for queue in self._outgoing.values():
            queue.watch(transfer)

    def pause(self, queue: OutgoingQueue) -> Completion[None]:
        """Pause Queue: nothing is sent until `resume`; resolved when durable (DA-051)."""
        queue.hold(True)
        return self.write(queue)

    def resume(self, queue: OutgoingQueue) -> Completion[None]:
        """Resume Queue; resolved when durable."""
        queue.hold(False)
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

    def new_cursor(self, queue: Queue) -> int:
        """A number for a cursor of a queue, given to no other cursor."""
        self._cursors += 1
        return self._cursors

    def new_ordinal(self) -> int:
        """A number for a queue, never given to another."""
        return self._ordinals.take()

    # ---- removal in the background

    def purge(self, queue: Queue) -> Completion[int]:
        """DU-08: gone from sight at once, resolved when the marker is durable.

        The store gives the space back in small batches.
        """
        self._serving()
        removed = queue.core.purge()
        queue.purged_to = queue.core.purged_to
        done = self.write(queue)
        self.purging.add(queue)
        return _with(done, removed)

    def set_aside(self, kind: str, text: str, count: int = 1) -> None:
        """Something in the store cannot be used: it stays where it is, is counted and told."""
        self.damage[kind] += count
        _log.error("set aside: %s", text)

    def _read_error(self, ordinal: int, lookup_id: int, status: int) -> None:
        self.set_aside(
            "packet", f"the packet of message {lookup_id} of queue {ordinal} cannot be read (status {status})"
        )

    # ---- numbers

    def _reserve_sequence(self, limit: int) -> None:
        done = self.records.unit(lambda: self.records.set_meta(MetaName.SEQUENCE_HW, limit))
        done.add_done_callback(lambda done: self.ledger.reserved(0 if done.exception() else limit))

    def write(self, queue: Queue) -> Completion[None]:
        """Write the record of a queue; resolved when durable, and tried again until it is."""
        return self._housekeeping.write(queue)

    def _serving(self) -> None:
        if self.state is not State.READY:
            raise ServiceNotAvailable(f"the queue manager is {self.state.name.lower()}")


def _with(done: Completion[None], value: object) -> Completion:  # type: ignore[type-arg]
    completion: Completion = Completion()  # type: ignore[type-arg]

    def resolve(done: Completion[None]) -> None:
        error = done.exception()
        if error is None:
            completion.resolve(value)
        else:
            completion.fail(error)

    done.add_done_callback(resolve)
    return completion
