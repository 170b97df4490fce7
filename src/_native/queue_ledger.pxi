# What all queues share: sequence, quotas, time, and the removals that are still to be made durable.

@cython.freelist(1024)
@cython.no_gc
cdef class Received:
    @property
    def arrived_time(self) -> int:
        """ArrivalTime, Unix seconds."""
        return self.arrived_us // 1000000

    @property
    def priority(self) -> int:
        """The effective priority: of the queue's order."""
        return 7 - (self.lookup_id >> 56)


cdef int reserve_sequence(Ledger ledger) except -1:
    """Asks for the next block of SequentialIDs, unless that is under way."""
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


cdef bint sequence_left(Ledger ledger) except -1:
    """Whether there is a SequentialID; if not, the reservation that failed is tried again."""
    if ledger.sequence < ledger.sequence_limit:
        return True
    reserve_sequence(ledger)
    return False


cdef class Ledger:
    """``Ledger(guid, writer, reader, seed=0)``: `guid` is the queue manager's, 16 bytes as on the wire; `seed` is random."""

    def __init__(self, bytes guid, Writer writer, Reader reader, uint64_t seed=0):
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

    def __dealloc__(self):
        free(self._doomed)

    def tick(self, uint64_t now_us) -> None:
        """The wall clock, Unix microseconds. To be called at the start of every turn of the loop that does work."""
        self.now_us = now_us
        self.now_s = <uint32_t>(now_us // 1000000)

    cdef bint stopped(self) noexcept:
        """Whether flow control lets nothing in (DM-096, X-38)."""
        return self.throttled or self.memory == MEMORY_FULL

    cdef int fill(self) except -1:
        """Express messages take more memory than the mark in the middle."""
        return self._set_memory(MEMORY_FULL if self.express_bytes > self.express_high or self.memory == MEMORY_FULL else MEMORY_SHORT)

    cdef int empty(self, uint32_t size) except -1:
        """An express message has left the memory."""
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
        """A number under which a session or subscription locks positions, not given to another one while it could still matter.

        `transfer`: for a session with another queue manager. What it locks still expires, all others' locks are theirs to end; but a
        purge takes along what is locked for a `lease`.
        """
        self._last_owner += 1
        if not OWNER_FIRST <= self._last_owner < <uint32_t>OWNER_LEASE:
            self._last_owner = OWNER_FIRST
        return self._last_owner | (<uint32_t>OWNER_TRANSFER if transfer else 0) | (<uint32_t>OWNER_LEASE if lease else 0)

    cdef uint64_t next_sequence(self) except 0:
        """The next SequentialID (DM-099), and with it the reservation of the next block in good time (DU-18)."""
        if not sequence_left(self):
            raise OverflowError("no SequentialID is reserved: the store does not keep up")
        self.sequence += 1
        if self.sequence + SEQUENCE_MARGIN > self.sequence_limit:
            reserve_sequence(self)
        return self.sequence

    cdef bint _begin_stream(self, QueueCore core) except -1:
        """A new transactional sequence of an outgoing queue (QB-112); False: no identifier is reserved."""
        cdef uint64_t identifier = self.open_stream()
        if not identifier:
            return False
        leave_sequence(core)
        core.sequence.begin(identifier)
        send_stream(self, identifier, core)
        return True

    def reserved(self, uint64_t limit) -> None:
        """The reservation up to `limit` is durable; 0: it failed, and is tried again."""
        self._reserving = False
        if limit > self.sequence_limit:
            self.sequence_limit = limit

    cdef int doom(self, const Doomed* entry) except -1:
        """A stored message that reap() has to delete; the reference to its source goes along."""
        cdef size_t capacity
        cdef Doomed* grown
        if self._doomed_count == self._doomed_capacity:
            capacity = self._doomed_capacity * 2 if self._doomed_capacity else 256
            grown = <Doomed*>realloc(self._doomed, capacity * sizeof(Doomed))
            if grown == NULL:
                raise MemoryError("no memory for removals")
            self._doomed = grown
            self._doomed_capacity = capacity
        self._doomed[self._doomed_count] = entry[0]
        self._doomed_count += 1
        log_in_ledger(self, UNDO_DOOMED, 0, None)
        return 0

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        return undo_in_ledger(self, token, <const QueueUndo*>data, kept)

    cdef int _condemn(self, uint32_t queue, uint8_t role, const Slot* slot, int event, int reason, bint moved) except -1:
        """Deletes a stored message with the current unit, and again, with what follows, should its commit fail.

        The source gets a reference.
        """
        cdef Doomed entry
        doomed_of(&entry, queue, role, slot, event, reason)
        self.writer.delete_position(queue, slot.key)
        if moved:
            let_follow(&entry, role, slot, reason)
        else:
            self.writer.delete_content(slot.content_id, slot.size)
        self.removals.add(&entry)
        self.sources.retain(slot.source)
        return 0

    @property
    def doomed(self) -> int:
        """Messages of purged or deleted queues, or whose removal failed, that are not surely out of the store."""
        cdef Drain drain
        cdef uint64_t count = self._doomed_count + self._reaped + self._disposing
        for drain in self._drains:
            count += drain._positions.live
        return count

    def reap(self, size_t limit=1000, sink=None) -> int:
        """Delete up to `limit` doomed messages from the store in one unit (DU-08). Returns how many are left.

        `sink(status)` is called when that is durable. Until then another call does nothing: the deletions of a great queue
        never crowd out what others commit. Those whose packets are needed for what follows are read first, in smaller numbers.
        """
        cdef Doomed entry
        cdef Disposal disposal = None
        cdef Drain drain
        cdef size_t done = 0, drained = 0, tail = self.removals._tail
        cdef Slot slot
        if self.reaping or not (self._doomed_count or self._drains):
            return self.doomed
        while done < limit and self._doomed_count and self._doomed[self._doomed_count - 1].follows:
            if disposal is None:
                disposal = Disposal.__new__(Disposal)
                disposal._ledger = self
            if not disposal.add(&self._doomed[self._doomed_count - 1]):
                break
            self._doomed_count -= 1
            done += 1
        if disposal is not None:
            self.reaping = True
            self._disposing = done
            disposal.start(sink)
            return self.doomed
        self.writer.begin_unit()
        try:
            while done < limit and self._doomed_count and not self._doomed[self._doomed_count - 1].follows:
                entry = self._doomed[self._doomed_count - 1]
                log_reaped(self, &entry)
                self._doomed_count -= 1
                slot_of(&slot, &entry)
                self._condemn(entry.queue, ROLE_NONE, &slot, entry.event, REASON_NONE, False)
                if self.feed and entry.event:
                    self.event(entry.event, entry.queue, entry.role == ROLE_OUTGOING, &slot, False, entry.reason)
                self.sources.release(entry.source)
                done += 1
            while done < limit and not self._doomed_count and drained < len(self._drains):
                drain = self._drains[drained]
                done += drain.run(limit - done)
                drained += drain._positions.live == 0
            if self.removals._tail != tail:
                self.removals.watch()
                self.writer.notify(Callback(self._reap_ended(sink)), 0)
        except BaseException:
            self.writer.roll_back()
            raise
        self.writer.keep_unit()
        del self._drains[:drained]
        if self.removals._tail != tail:
            self._reaped = self.removals._tail - tail
            self.reaping = True
        if self._doomed_count == 0:
            free(self._doomed)
            self._doomed = NULL
            self._doomed_capacity = 0
        return self.doomed

    @property
    def returned(self) -> int:
        """Messages that were given back but could not be stored again: in no queue until return_again() succeeds."""
        return len(self._returned)

    def return_again(self) -> None:
        """Give back once more what could not be stored. A message for which that raises waits for the next time, and none but it."""
        cdef QueueCore core
        cdef object fault = None
        returned, self._returned = self._returned, []
        for core, message in returned:
            try:
                core.give_back([message])
            except Exception as error:
                fault = also(fault, error)      # give_back has put it into the list again
        if fault is not None:
            raise fault

    def _reap_ended(self, sink):
        def ended(int status):
            self.reaping = False
            self._reaped = 0
            if sink is not None:
                sink(status)

        return ended

    cdef int event(self, int kind, uint32_t queue, bint outgoing, const Slot* slot, bint ride, int reason=REASON_NONE,
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
        self.writer.append_entry(TABLE_FEED, <const uint8_t*>&entry, sizeof(entry), ride)
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
        """The feed hears of a message that came by SRMP and was not taken: NACKED or DUPLICATE (store.schema.EventKind).

        `queue` is the ordinal of the local queue that it is for, or 0; `source` the GUID of its identifier, as on the wire; `identifier`
        and `number` its place in its stream. With the next commit, which it does not cause.
        """
        if PyBytes_GET_SIZE(source) != 16:
            raise ValueError("a GUID has 16 bytes")
        self.untaken(
            kind, TRANSPORT_SRMP, queue, <const uint8_t*>PyBytes_AS_STRING(source), ordinal, size, message_class, reason, identifier, number
        )

    def serve(self) -> None:
        """Call `ready` of every queue that got something since the last call. What one raises, or `on_poison`, is raised after all were called."""
        cdef QueueCore core
        cdef object fault = None
        while self._dirty:
            dirty, self._dirty = self._dirty, []
            for core in dirty:
                core._dirty = False
                try:
                    if core._poisoned:
                        keys, core._poisoned = core._poisoned, []
                        self.on_poison(core.ordinal, keys)
                except Exception as error:
                    fault = also(fault, error)
                try:
                    if core.interested and core.ready is not None:
                        core.ready()
                except Exception as error:
                    fault = also(fault, error)
        if fault is not None:
            raise fault

    def expire(self, uint32_t limit=1000) -> int:
        """Remove up to `limit` messages whose time is over (DM-213, X-04). Returns how many timers fired.

        A message whose removal raises is tried again after EXPIRE_AGAIN seconds and holds up no other one; what was raised is raised at the end.
        """
        cdef object fault = None
        cdef Timer timer
        cdef QueueCore core
        cdef Slot* slot = NULL
        cdef uint32_t fired = 0
        self.wheel.advance(self.now_s)
        while fired < limit and self.wheel.pop_due(&timer):
            fired += 1
            core = self._cores.get(timer.first)
            slot = core.positions.find(timer.second) if core is not None else NULL
            if slot == NULL:
                self._disarm(timer.first, timer.second)
                continue
            slot.timer = NO_TIMER
            try:
                core._expire(slot)
            except Exception as error:
                fault = also(fault, error)
                core._expire_later(timer.second)
                if self.writer.failed:
                    break   # the others would raise as well
        if fault is not None:
            raise fault
        return fired

    def _disarm(self, uint32_t queue, uint64_t key):
        """The timer of a message that is being drained went off."""
        cdef Drain drain
        cdef Slot* slot = NULL
        for drain in self._drains:
            if drain._queue == queue:
                slot = drain._positions.find(key)
                if slot != NULL:
                    slot.timer = NO_TIMER

    def next_deadline(self) -> int | None:
        """Unix seconds, not later than the first message expires; None if none does."""
        return self.wheel.next_deadline()

    def core(self, uint32_t ordinal) -> "QueueCore | None":
        """The queue of an ordinal."""
        return self._cores.get(ordinal)

    def totals(self) -> tuple:
        """(messages, bytes) of all queues."""
        cdef QueueCore core
        cdef uint64_t messages = 0, size = 0
        for core in self._cores.values():
            messages += core.messages
            size += core.bytes
        return messages, size


cdef class Removals(CommitListener):
    def __dealloc__(self):
        free(self._entries)

    cdef int add(self, const Doomed* entry) except -1:
        cdef uint64_t capacity, index
        cdef Doomed* entries
        if self._tail - self._head == self._capacity:
            capacity = self._capacity * 2 if self._capacity else 256
            entries = <Doomed*>realloc(NULL, capacity * sizeof(Doomed))
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
        """Takes the latest entry back; the end of `token` was told of before."""
        self._tail -= 1
        self._told = token
        self._ledger.sources.release(self._entries[self._tail & (self._capacity - 1)].source)
        return 0

    cdef int watch(self) except -1:
        if self._told != self._tail:
            self._told = self._tail
            self._ledger.writer.notify(self, self._tail)
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef Doomed* entry
        while self._head < token:
            entry = &self._entries[self._head & (self._capacity - 1)]
            self._head += 1
            if status == STATUS_OK:
                self._ledger.sources.release(entry.source)
            else:
                self.failed += 1
                self._ledger.doom(entry)
        return 0

    cdef int settled(self) except -1:
        return 0


cdef class Drain:
    cdef size_t run(self, size_t limit) except? 0:
        """Lets go of up to `limit` messages, inside a unit. Returns how many."""
        cdef Ledger ledger = self._ledger
        cdef PositionList positions = self._positions
        cdef size_t count = 0
        cdef Slot* slot = NULL
        cdef Doomed entry
        cdef bint recoverable, moved
        while count < limit:
            slot = positions.following(0, EVERY_STATE)
            if slot == NULL:
                break
            count += 1
            # The slot forgets what was let go of before anything can raise: the next run finds the same slot again.
            if slot.timer != NO_TIMER:
                ledger.wheel.stop(slot.timer)
                slot.timer = NO_TIMER
            if slot.flags & FLAG_CACHED:
                slot.flags &= ~FLAG_CACHED
                ledger.cached_bytes -= slot.size
            recoverable = slot.flags & FLAG_RECOVERABLE
            if slot.flags & FLAG_COUNTED:
                slot.flags &= ~FLAG_COUNTED
                if not recoverable:
                    ledger.empty(slot.size)
            moved = False
            if slot.wishes & concerning(self._role, self._reason):
                if slot.body == NULL:
                    doomed_of(&entry, self._queue, self._role, slot, EVENT_PURGED, self._reason)
                    ledger.doom(&entry)
                    log_removed(self, ledger, slot, 0)
                    positions.remove(slot)
                    continue
                # An acknowledgment cannot come into this list: the queue has another one by now.
                moved = hand_on(ledger, self._queue, self._role, None, slot, <bytes>slot.body, self._reason)
            if recoverable:
                ledger._condemn(self._queue, self._role, slot, EVENT_PURGED, self._reason, moved)
            if ledger.feed:
                ledger.event(EVENT_PURGED, self._queue, self._outgoing, slot, not recoverable, self._reason)
            log_removed(self, ledger, slot, 0)
            ledger.sources.release(slot.source)
            positions.remove(slot)
        return count

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        put_back(self._positions, self._ledger, <const RemovalUndo*>data, kept).timer = NO_TIMER
        return 0
