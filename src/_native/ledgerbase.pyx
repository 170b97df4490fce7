# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The state that all queues share: sequence numbers, the budget, the feed, and removals that are not durable yet."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from msmq_fast._native.batch cimport STATUS_OK, CommitListener, Writer, in_unit
from msmq_fast._native.positions cimport FLAG_RECOVERABLE, Slot
from msmq_fast._native.record cimport SEQUENCE_MASK, FeedEntry
from msmq_fast._native.sources cimport SourceTable
from msmq_fast._native.tablenumbers cimport TABLE_FEED
from msmq_fast._native.tables cimport Reader
from msmq_fast._native.wheel cimport TimerWheel

SEQUENCE_BLOCK = 1 << 20

cdef enum:
    FINAL_GRACE = 21600         # the last step of the resend ladder: 6 hours


cdef int log_in_ledger(LedgerBase ledger, int kind, uint64_t token, object kept) except -1:
    cdef QueueUndo undo
    undo.kind = kind
    ledger.writer.undo.add(ledger, token, &undo, sizeof(undo), kept)
    return 0


cdef int log_reaped(LedgerBase ledger, const PendingDelete* entry) except -1:
    cdef ReapUndo undo
    undo.head.kind = UNDO_REAPED
    undo.entry = entry[0]
    memcpy(undo.source, ledger.sources.guid(entry.source), 16)
    ledger.writer.undo.add(ledger, 0, &undo, sizeof(undo), None)
    return 0


cdef int undo_in_ledger(LedgerBase ledger, uint64_t token, const QueueUndo* undo, object kept) except -1:
    cdef PendingDelete entry
    if undo.kind == UNDO_PENDING_DELETE:
        ledger._pending_count -= 1
        ledger.sources.release(ledger._pending[ledger._pending_count].source)
    elif undo.kind == UNDO_REAPED:
        entry = (<const ReapUndo*>undo).entry
        entry.source = ledger.sources.intern((<const ReapUndo*>undo).source)
        ledger.defer_delete(&entry)
    elif undo.kind == UNDO_RESERVING:
        ledger._reserving = False
    elif undo.kind == UNDO_STREAM:
        if kept is None:
            ledger._streams.pop(token, None)
        else:
            ledger._streams[token] = kept
    elif kept is None:
        ledger._finals.pop(<uint32_t>token, None)
    else:
        ledger._finals[<uint32_t>token] = kept
    return 0


cdef int reserve_sequence(LedgerBase ledger) except -1:
    """Requests the next block of SequentialIDs, unless a request is in progress."""
    if ledger._reserving or ledger.reserve is None:
        return 0
    ledger._reserving = True
    log_in_ledger(ledger, UNDO_RESERVING, 0, None)
    try:
        ledger.reserve(ledger.sequence_limit + SEQUENCE_BLOCK)
    except BaseException:
        ledger._reserving = False
        raise
    return 0


cdef class LedgerBase:
    """``LedgerBase(guid, writer, reader, seed=0)``: `guid` is the GUID of the queue manager, 16 bytes as on the wire; `seed` is random."""

    def __init__(self, bytes guid, Writer writer, Reader reader, uint64_t seed=0, owner=None):
        if len(guid) != 16:
            raise ValueError("a GUID has 16 bytes")
        memcpy(self._guid, PyBytes_AS_STRING(guid), 16)
        self.writer = writer
        self.reader = reader
        self.quota_bytes = <uint64_t>0xFFFFFFFFFFFFFFFF
        self.cache_limit = 64 << 20
        self.express_low = self.express_mid = self.express_high = <uint64_t>0xFFFFFFFFFFFFFFFF
        self.feed = True
        self.wheel = TimerWheel(0)
        self._cores = {}
        self._streams = {}
        self._finals = {}
        self.final_grace = FINAL_GRACE
        self._dirty = []
        self._last_owner = OWNER_FIRST
        self._drains = []
        self._returned = []
        self.sources = SourceTable(seed)
        self._own_source = self.sources.intern(self._guid)
        self.removals = Removals.__new__(Removals)
        self.removals._ledger = self
        if owner is not None:
            self.on_removed = owner.on_removed
            self.reserve = owner.reserve_sequence
            self.open_stream = owner.new_stream
            self.on_discard = owner.discarded
            self.on_expired = owner.expired
            self.on_memory = owner.memory_changed
            self.on_poison = owner.poisoned
            self.on_read_error = owner.read_failed

    def __dealloc__(self):
        free(self._pending)

    def tick(self, uint64_t now_us) -> None:
        """Sets the wall clock, in Unix microseconds. Call it at the start of every turn of the loop that does work."""
        self.now_us = now_us
        self.now_s = <uint32_t>(now_us // 1000000)

    cdef int fill(self) except -1:
        """Reports the level of memory use to `on_memory` if it has changed; called when express messages use more memory than the middle
        threshold.
        """
        return self._set_memory(MEMORY_FULL if self.express_bytes > self.express_high or self.memory == MEMORY_FULL else MEMORY_SHORT)

    cdef int empty(self, uint32_t size) except -1:
        """Subtracts the `size` bytes of an express message that was removed from memory from `express_bytes`; reports MEMORY_ENOUGH to
        `on_memory` once the low threshold is reached.
        """
        self.express_bytes -= size
        if self.memory and self.express_bytes <= self.express_low:
            self._set_memory(MEMORY_ENOUGH)
        return 0

    cdef int _set_memory(self, int memory) except -1:
        if memory != self.memory:
            self.memory = memory
            if self.on_memory is not None:
                self.on_memory(memory)
        return 0

    def new_owner(self, bint transfer=False, bint lease=False) -> int:
        """Returns a new owner number, under which a session or subscription locks messages. A number is reused only after very many others.

        `transfer`: the owner is a session with another queue manager; messages that it has locked still expire. `lease`: a purge also
        removes messages that the owner has locked. Any other lock is ended only by its owner.
        """
        self._last_owner += 1
        if not OWNER_FIRST <= self._last_owner < <uint32_t>OWNER_LEASE:
            self._last_owner = OWNER_FIRST
        return self._last_owner | (<uint32_t>OWNER_TRANSFER if transfer else 0) | (<uint32_t>OWNER_LEASE if lease else 0)

    cdef uint64_t next_sequence(self) except 0:
        """Returns the next SequentialID (DM-099), and reserves the next block in time (DU-18)."""
        if not sequence_left(self):
            raise OverflowError("no SequentialID is reserved: the store does not keep up")
        self.sequence += 1
        if self.sequence + SEQUENCE_MARGIN > self.sequence_limit:
            reserve_sequence(self)
        return self.sequence

    def reserved(self, uint64_t limit) -> None:
        """Releases the SequentialIDs up to `limit` for use, because their reservation is durable. A `limit` of 0 means that the reservation
        failed; it is retried.
        """
        self._reserving = False
        if limit > self.sequence_limit:
            self.sequence_limit = limit

    cdef int defer_delete(self, const PendingDelete* entry) except -1:
        """Adds a stored message that reap() must delete. From then on the ledger owns the reference to the source of the message."""
        cdef size_t capacity
        cdef PendingDelete* grown
        if self._pending_count == self._pending_capacity:
            capacity = self._pending_capacity * 2 if self._pending_capacity else 256
            grown = <PendingDelete*>realloc(self._pending, capacity * sizeof(PendingDelete))
            if grown == NULL:
                raise MemoryError("no memory for removals")
            self._pending = grown
            self._pending_capacity = capacity
        self._pending[self._pending_count] = entry[0]
        self._pending_count += 1
        log_in_ledger(self, UNDO_PENDING_DELETE, 0, None)
        return 0

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        return undo_in_ledger(self, token, <const QueueUndo*>data, kept)

    cdef int _delete_stored(self, uint32_t queue, uint8_t role, const Slot* slot, int event, int reason, bint moved) except -1:
        """Deletes a stored message with the current unit. If the commit fails, reap() repeats the deletion and its side effects.

        Takes one more reference to the source of the message until the deletion is durable. `moved`: the content now belongs to another
        queue and is not deleted.
        """
        cdef PendingDelete entry
        assert in_unit(self.writer), "call inside a unit"
        pending_delete_of(&entry, queue, role, slot, event, reason)
        self.writer.delete_position(queue, slot.key)
        if moved:
            mark_side_effects(&entry, role, slot, reason)
        else:
            self.writer.delete_content(slot.content_id, slot.size)
        self.removals.add(&entry)
        self.sources.retain(slot.source)
        return 0

    def _reap_ended(self, sink):
        def ended(int status):
            self.reaping = False
            self._reaped = 0
            if sink is not None:
                sink(status)

        return ended

    cdef int event(self, int kind, uint32_t queue, bint outgoing, const Slot* slot, bint lazy, int reason=REASON_NONE,
                   uint64_t identifier=0, uint32_t number=0) except -1:
        cdef FeedEntry entry
        memset(&entry, 0, sizeof(entry))
        entry.kind = <uint8_t>kind
        entry.flags = TRANSPORT_MQQB if outgoing or slot.source != self._own_source else TRANSPORT_LOCAL
        entry.message_class = slot.message_class
        entry.queue = queue
        entry.arrival_seq = slot.key & SEQUENCE_MASK
        entry.lookup_id = slot.key
        entry.time_us = self.now_us
        entry.ordinal = slot.ordinal
        entry.size = slot.size
        entry.sequence_id = identifier
        entry.sequence_number = number
        entry.abort_count = slot.abort_count
        entry.reason = failure(reason)
        memcpy(entry.source, self.sources.guid(slot.source), 16)
        self.writer.append_entry(TABLE_FEED, <const uint8_t*>&entry, sizeof(entry), lazy)
        return 0

    cdef int untaken(self, int kind, int transport, uint32_t queue, const uint8_t* source, uint32_t ordinal, uint32_t size,
                     uint16_t message_class, uint16_t reason, uint64_t identifier, uint32_t number) except -1:
        cdef FeedEntry entry
        if not self.feed:
            return 0
        memset(&entry, 0, sizeof(entry))
        entry.kind = <uint8_t>kind
        entry.flags = <uint8_t>transport
        entry.message_class = message_class
        entry.reason = reason
        entry.queue = queue
        entry.time_us = self.now_us
        memcpy(entry.source, source, 16)
        entry.ordinal = ordinal
        entry.size = size
        entry.sequence_id = identifier
        entry.sequence_number = number
        self.writer.append_entry(TABLE_FEED, <const uint8_t*>&entry, sizeof(entry), True)
        return 0

    def turned_away(self, int kind, uint32_t queue, bytes source not None, uint32_t ordinal, uint32_t size, uint16_t message_class,
                    uint16_t reason=0, uint64_t identifier=0, uint32_t number=0) -> None:
        """Adds a feed event for a message that arrived by SRMP and was not accepted; `kind` is NACKED or DUPLICATE
        (store.schema.EventKind).

        `queue` is the ordinal of its local queue, or 0; `source` the GUID of its identifier, as on the wire; `identifier` and `number` its
        position in its stream. The event is written with the next commit, but does not cause one.
        """
        if PyBytes_GET_SIZE(source) != 16:
            raise ValueError("a GUID has 16 bytes")
        self.untaken(
            kind, TRANSPORT_SRMP, queue, <const uint8_t*>PyBytes_AS_STRING(source), ordinal, size, message_class, reason, identifier, number
        )

    def next_deadline(self) -> int | None:
        """Returns a time in Unix seconds that is not later than the first expiry of a message; None if no message expires."""
        return self.wheel.next_deadline()


cdef class Removals(CommitListener):
    def __dealloc__(self):
        free(self._entries)

    cdef int add(self, const PendingDelete* entry) except -1:
        cdef uint64_t capacity, index
        cdef PendingDelete* entries
        if self._tail - self._head == self._capacity:
            capacity = self._capacity * 2 if self._capacity else 256
            entries = <PendingDelete*>realloc(NULL, capacity * sizeof(PendingDelete))
            if entries == NULL:
                raise MemoryError("no memory for removals")
            for index in range(self._head, self._tail):
                entries[index & (capacity - 1)] = self._entries[index & (self._capacity - 1)]
            free(self._entries)
            self._entries = entries
            self._capacity = capacity
        self._entries[self._tail & (self._capacity - 1)] = entry[0]
        self._tail += 1
        self._ledger.writer.undo.add(self, self._told, NULL, 0, None)
        return 0

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        """Undoes the latest `add`. `token` is the number of entries whose outcome was already to be reported before it."""
        self._tail -= 1
        self._told = token
        self._ledger.sources.release(self._entries[self._tail & (self._capacity - 1)].source)
        return 0

    cdef int watch(self) except -1:
        assert in_unit(self._ledger.writer), "call inside a unit"
        if self._told != self._tail:
            self._told = self._tail
            self._ledger.writer.notify(self, self._tail)
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef PendingDelete* entry
        while self._head < token:
            entry = &self._entries[self._head & (self._capacity - 1)]
            self._head += 1
            if status == STATUS_OK:
                self._ledger.sources.release(entry.source)
            else:
                self.failed += 1
                self._ledger.defer_delete(entry)
        return 0

    cdef int settled(self) except -1:
        return 0


cdef void pending_delete_of(PendingDelete* entry, uint32_t queue, uint8_t role, const Slot* slot, int event, int reason) noexcept:
    """Fills `entry` with the data that is needed to delete a message from the store later."""
    memset(entry, 0, sizeof(entry[0]))
    entry.key = slot.key
    entry.content_id = slot.content_id
    entry.queue = queue
    entry.size = slot.size
    entry.source = slot.source
    entry.ordinal = slot.ordinal
    entry.message_class = slot.message_class
    entry.event = <uint8_t>event
    entry.role = role
    entry.reason = failure(reason)
    entry.abort_count = slot.abort_count
    entry.move_count = slot.move_count
    entry.dead_letter = slot.dead_letter
    if slot.ack_flags & flags_for(role, reason):
        mark_side_effects(entry, role, slot, reason)


cdef void mark_side_effects(PendingDelete* entry, uint8_t role, const Slot* slot, int reason) noexcept:
    """Notes in `entry` that the removal has side effects, for which the packet is needed."""
    entry.has_side_effects = True
    entry.role = role
    entry.reason = <uint16_t>reason
    entry.ack_flags = slot.ack_flags


cdef void slot_of(Slot* slot, const PendingDelete* entry) noexcept:
    """Fills `slot` with the fields of a message, from `entry`, that its removal needs."""
    memset(slot, 0, sizeof(slot[0]))
    slot.key = entry.key
    slot.content_id = entry.content_id
    slot.size = entry.size
    slot.source = entry.source
    slot.ordinal = entry.ordinal
    slot.message_class = entry.message_class
    slot.flags = FLAG_RECOVERABLE
    slot.abort_count = entry.abort_count
    slot.move_count = entry.move_count
    slot.dead_letter = entry.dead_letter
    slot.ack_flags = entry.ack_flags
