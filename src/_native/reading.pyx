# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads messages of a queue; see reading.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport ENOSPC
from libc.stddef cimport size_t
from libc.stdint cimport uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memset
from msmq_fast._native.batch cimport STATUS_OK, Callback, Writer, also
from msmq_fast._native.framing cimport SOURCE_OFFSET, UserMessage, parse_user_message
from msmq_fast._native.ledgerbase cimport (
    COUNT_LIMIT,
    EVENT_ACKED,
    EVENT_PURGED,
    EVENT_RECEIVED,
    EVENT_RETURNED,
    MDB_CORRUPTED,
    OWNER_DAMAGED,
    OWNER_PURGED,
    OWNER_RETURNED,
    OWNER_STORE,
    ACK_NEGATIVE_RECEIVE,
    ACK_POSITIVE_RECEIVE,
    REASON_RECEIVED,
    LedgerBase,
)
from msmq_fast._native.numbering cimport number
from msmq_fast._native.outsequence cimport ANSWER_OTHER, ANSWER_OVER
from msmq_fast._native.positions cimport (
    FLAG_CACHED,
    FLAG_EXPIRE_WHEN_UNLOCKED,
    FLAG_FETCHING,
    FLAG_RECOVERABLE,
    FLAG_REMOVING,
    NO_TIMER,
    STATE_AVAILABLE,
    STATE_LOCKED,
    STATE_PENDING,
    STATE_PURGE_PENDING,
    Slot,
)
from msmq_fast._native.queuebase cimport (
    Received,
    describe,
    is_packet,
    log_changed,
    mark_dead_letter,
    note_latency,
    note_out_of_order,
    reason_of,
)
from msmq_fast._native.record cimport POSITION_FINAL, NumberedPosition
from msmq_fast._native.removal cimport QueueRemoval, retire, retire_one, undo_side_effects
from msmq_fast._native.tables cimport ReadListener

cdef enum:
    EXPIRE_AGAIN = 60           # seconds after which the expiry of a message is retried if it raised
    AHEAD_COUNT = 4096          # bodies read ahead of a reader
    AHEAD_BYTES = 8 << 20
    AHEAD_STEP = 1024           # messages consumed between two calls to read ahead


cdef class BodyFetcher:
    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        return self._core._fetched(token, body, status)


cdef class BodyRead(ReadListener):
    """Reads one packet from the store for a peek or a lookup. The packet is not cached."""
    cdef Received _received
    cdef object _sink

    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        if status == STATUS_OK and not is_packet(<bytes>body):
            status = MDB_CORRUPTED
        if status == STATUS_OK:
            self._received.packet = body
            self._sink(self._received, STATUS_OK)
        else:
            self._sink(None, status)
        return 0


cdef class QueueReading(QueueRemoval):
    """The reading part of a queue: locks messages, removes them for readers, and puts them back."""

    def acked(self, const uint64_t[::1] keys not None, uint32_t owner, sink=None, uint32_t caller=0) -> int:
        """Removes messages that `owner` has locked and that were acknowledged, by the next queue manager or by the application.

        Skips messages that `owner` has not locked. `sink(status)` is called when the removal is durable. Returns how many were removed. If
        the commit of a removal fails, reap() repeats the removal. If this raises, the messages are no longer locked: they are available,
        and are sent or handed out again.
        """
        cdef size_t removed = 0
        cdef Writer writer = self.ledger.writer
        writer.begin_unit()
        self.ledger.caller = caller
        try:
            if keys.shape[0] and self.sequence is not None and self.sequence.held():
                removed = self._transferred(keys, owner)
            elif keys.shape[0]:
                removed = self.remove_keys(&keys[0], keys.shape[0], owner, EVENT_ACKED if self.outgoing else EVENT_RECEIVED)
            if sink is not None:
                writer.notify(Callback(sink), 0)
        except BaseException:
            self.ledger.caller = 0
            writer.roll_back()
            self.release(keys, owner)
            raise
        self.ledger.caller = 0
        writer.keep_unit()
        return removed

    cdef size_t _transferred(self, const uint64_t[::1] keys, uint32_t owner) except? 0:
        """Removes messages that the next queue manager has acknowledged as stored, except numbered ones, which wait for an OrderAck
        (QB-125). Returns how many it removed.
        """
        cdef Py_ssize_t index, start = 0, count = keys.shape[0]
        cdef size_t removed = 0
        cdef int answer
        for index in range(count):
            answer = self.sequence.acknowledged(keys[index])
            if answer == ANSWER_OTHER:
                continue
            if index > start:
                removed += self.remove_keys(&keys[start], index - start, owner, EVENT_ACKED)
            start = index + 1
            if answer == ANSWER_OVER:
                retire(self, keys[index])
                removed += 1
            elif self.ledger.cached_bytes > self.ledger.cache_limit // 2:
                self.shed_body(keys[index])     # it is rarely sent again
        if count > start:
            removed += self.remove_keys(&keys[start], count - start, owner, EVENT_ACKED)
        self.ledger.removals.watch()
        return removed

    # ---- claims

    def claim(self, uint64_t key, uint32_t owner) -> bool:
        """Locks an available message for `owner`. Returns False if it is not available."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or slot.state != STATE_AVAILABLE:
            return False
        self.positions.set_state(slot, STATE_LOCKED)
        slot.owner = owner
        return True

    def release(self, const uint64_t[::1] keys not None, uint32_t owner) -> int:
        """Makes messages that `owner` locked available again at their old places (DM-125). Returns how many became available.

        An exception for one message does not affect the others, and is raised at the end.
        """
        cdef size_t number
        cdef int released = 0
        cdef object fault = None
        for number in range(keys.shape[0]):
            try:
                released += self._release(keys[number], owner)
            except Exception as error:
                fault = also(fault, error)
                self._expire_later(keys[number])
        if released and self.interested:
            self.mark()
        if fault is not None:
            raise fault
        return released

    cdef bint _release(self, uint64_t key, uint32_t owner) except -1:
        """Releases one message that `owner` has locked. Returns whether it is now available."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or slot.owner != owner:
            return False
        if slot.state == STATE_PURGE_PENDING:
            self._let_purged_go(slot)
            return False
        if slot.state != STATE_LOCKED:
            return False
        if self.sequence is not None and self.sequence.returned(key) == ANSWER_OVER:
            retire_one(self, key)
            return False
        self._available(slot)
        return True

    cdef int _expire_later(self, uint64_t key) except -1:
        """Schedules another attempt after EXPIRE_AGAIN seconds to remove an expired message."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or not (slot.flags & FLAG_EXPIRE_WHEN_UNLOCKED or slot.deadline <= self.ledger.now_s):
            return 0
        if slot.timer != NO_TIMER:
            self.ledger.wheel.stop(slot.timer)
        slot.timer = self.ledger.wheel.start(<uint64_t>self.ledger.now_s + EXPIRE_AGAIN, self.ordinal, key)
        return 0

    def take(self, uint32_t max_count, uint64_t max_bytes, uint32_t owner) -> list:
        """Locks messages from the front for `owner` and returns them (list of Received).

        Stops before a message whose packet must first be read from the store: reading starts, and `ready` is called when the packet is in
        memory. The first message may be larger than `max_bytes`.
        """
        cdef Slot* slot = NULL
        cdef list result = []
        cdef uint64_t size = 0
        cdef uint32_t count = 0
        while count < max_count:
            slot = self.positions.first_takeable(False)
            if slot == NULL or slot.body == NULL or (count and size + slot.size > max_bytes):
                break
            self.positions.set_state(slot, STATE_LOCKED)
            slot.owner = owner
            size += slot.size
            count += 1
            result.append(self._received(slot))
        self._consumed += count
        if slot != NULL and (slot.body == NULL or self._consumed >= AHEAD_STEP):
            self._read_ahead()
        return result

    def receive_bulk(self, uint32_t max_count, uint64_t max_bytes, sink, bint pending=False, bint ordered=False, wanted=None,
                     uint32_t caller=0) -> int:
        """Receives messages from the front: removes them, and calls `sink(list of Received, status)` when that is durable (DU-03).

        If none of the messages is recoverable, the sink is called before this returns; with `ordered`, it is called only after the
        deliveries that are still in progress. With `pending`, also receives messages that are not durable yet; use this just before the
        batch is submitted. Stops before a packet that is not in memory, as `take` does. Returns the number of messages received. If the
        store fails, the status is not 0 and the messages return to their old places. `wanted()` is called when the removal is durable. If
        it returns False, the reader no longer exists: the messages are put back as by `requeue`, and the sink gets no messages. `caller` is
        the number of the reader for the feed.
        """
        cdef Slot* slot = NULL
        cdef Delivery delivery
        cdef Received received
        cdef LedgerBase ledger = self.ledger
        cdef list result = []
        cdef uint64_t size = 0
        cdef uint32_t count = 0
        cdef bint stored = False, early = False
        ledger.writer.begin_unit()
        ledger.caller = caller
        try:
            while count < max_count:
                slot = self.positions.first_takeable(pending)
                if slot == NULL or slot.body == NULL or (count and size + slot.size > max_bytes):
                    break
                if slot.state == STATE_PENDING and slot.deadline <= ledger.now_s:
                    break
                size += slot.size
                count += 1
                result.append(self._received(slot))
                if slot.flags & FLAG_RECOVERABLE:
                    stored = True
                    early = early or slot.state == STATE_PENDING
                    log_changed(self, slot)
                    self.positions.set_state(slot, STATE_LOCKED)
                    slot.owner = OWNER_STORE
                    slot.flags |= FLAG_REMOVING
                    if slot.ack_flags or self.journal is not None:
                        received = <Received>result[count - 1]
                        self._leave(slot, received)
                        slot = self.positions.find(received.lookup_id)
                        continue
                    ledger.writer.delete_position(self.ordinal, slot.key)
                    ledger.writer.delete_content(slot.content_id, slot.size)
                    note_latency(self, slot, REASON_RECEIVED)
                    if ledger.feed:
                        self._tell(EVENT_RECEIVED, slot, False)
                else:
                    if slot.ack_flags or self.journal is not None:
                        self._leave(slot, <Received>result[count - 1])
                    else:
                        self._erase(slot, EVENT_RECEIVED)
                    slot = NULL
            self._consumed += count
            if (slot != NULL and slot.body == NULL) or self._consumed >= AHEAD_STEP:
                self._read_ahead()
            if early:
                ledger.writer.depends_on_unreported()     # a message may be in a batch that has already failed
            if count and (stored or ordered):
                delivery = Delivery.__new__(Delivery)
                delivery._core = self
                delivery._messages = result
                delivery._sink = sink
                delivery._wanted = wanted
                ledger.writer.notify(delivery, 0)
        except BaseException:
            ledger.caller = 0
            ledger.writer.roll_back()
            raise
        ledger.caller = 0
        ledger.writer.keep_unit()
        if count and not (stored or ordered):
            sink(result, STATUS_OK)
        return count

    def receive_key(self, uint64_t key, sink, wanted=None, uint32_t caller=0) -> bool:
        """Receives one available message by its key, as receive_bulk does. Returns False if it is not available.

        If its packet is not in memory, the message is locked while the packet is read.
        """
        cdef Slot* slot = self.positions.find(key)
        cdef BodyRead read
        cdef Received received
        if slot == NULL or slot.state != STATE_AVAILABLE:
            return False
        received = self._received(slot)
        if slot.body != NULL:
            self._receive_one(slot, received, sink, wanted, caller)
            return True
        self.positions.set_state(slot, STATE_LOCKED)
        slot.owner = OWNER_STORE
        read = BodyRead.__new__(BodyRead)
        read._received = received

        def fetched(Received message, int status):
            cdef Slot* found = self.positions.find(key)
            if found == NULL:
                sink([], -2)
            elif message is None:
                if found.owner == OWNER_PURGED:
                    self._erase(found, EVENT_PURGED)
                else:
                    found.owner = OWNER_DAMAGED
                self._report_damage(key, status)
                sink([], status)
            else:
                self._receive_one(found, message, sink, wanted, caller)

        read._sink = fetched
        self.ledger.reader.fetch(slot.content_id, slot.size, read, key)
        return True

    cdef int _receive_one(self, Slot* slot, Received received, sink, wanted, uint32_t caller) except -1:
        cdef Delivery delivery
        cdef LedgerBase ledger = self.ledger
        if not slot.flags & FLAG_RECOVERABLE:
            ledger.caller = caller
            try:
                self._erase(slot, EVENT_RECEIVED)
            finally:
                ledger.caller = 0
            sink([received], STATUS_OK)
            return 0
        ledger.writer.begin_unit()
        ledger.caller = caller
        try:
            log_changed(self, slot)
            if slot.state == STATE_AVAILABLE:
                self.positions.set_state(slot, STATE_LOCKED)
                slot.owner = OWNER_STORE
            slot.flags |= FLAG_REMOVING
            self._leave(slot, received)
            delivery = Delivery.__new__(Delivery)
            delivery._core = self
            delivery._messages = [received]
            delivery._sink = sink
            delivery._wanted = wanted
            ledger.writer.notify(delivery, 0)
        except BaseException:
            ledger.caller = 0
            ledger.writer.roll_back()
            slot = self.positions.find(received.lookup_id)
            if slot != NULL and slot.state == STATE_LOCKED and slot.owner == OWNER_STORE:
                self._back(slot)    # its packet had to be read first
            raise
        ledger.caller = 0
        ledger.writer.keep_unit()
        return 0

    def peek(self, uint64_t key, sink) -> bool:
        """Calls `sink(Received, status)` for the message `key` in any state, at once if its packet is in memory. Returns False if the queue
        does not have the message.
        """
        cdef Slot* slot = self.positions.find(key)
        cdef BodyRead read
        if slot == NULL or slot.state == STATE_PENDING:
            return False
        received = self._received(slot)
        if slot.body != NULL:
            sink(received, STATUS_OK)
            return True
        read = BodyRead.__new__(BodyRead)
        read._received = received
        read._sink = sink
        self.ledger.reader.fetch(slot.content_id, slot.size, read, key)
        return True

    def head_in_memory(self, bint pending=False) -> bool:
        """Whether the first available message can be handed out without reading the store. If its packet is not in memory, starts to read
        it.
        """
        cdef Slot* slot = self.positions.first_takeable(pending)
        if slot == NULL:
            return False
        if slot.body == NULL:
            self._read_ahead()
            return False
        # A message that was sent in a transaction may expire before it becomes available (ST-1).
        return slot.state != STATE_PENDING or slot.deadline > self.ledger.now_s

    cdef int _read_ahead(self) except -1:
        """Starts to read the packets of the next available messages from the store."""
        cdef uint64_t size = 0
        cdef uint32_t count = 0
        cdef Slot* slot = self.positions.first_takeable(False)
        self._consumed = 0
        while slot != NULL and count < AHEAD_COUNT and size < AHEAD_BYTES:
            if slot.body == NULL and not slot.flags & FLAG_FETCHING:
                slot.flags |= FLAG_FETCHING
                self._fetching += 1
                self.ledger.reader.fetch(slot.content_id, slot.size, self._fetcher, slot.key)
            count += 1
            size += slot.size
            slot = self.positions.following(slot.key, 1 << STATE_AVAILABLE)
        return 0

    cdef int _fetched(self, uint64_t key, object body, int status) except -1:
        cdef Slot* slot = self.positions.find(key)
        self._fetching -= 1
        if slot != NULL and slot.flags & FLAG_FETCHING:
            slot.flags &= ~FLAG_FETCHING
            if status == STATUS_OK and not is_packet(<bytes>body):
                status = MDB_CORRUPTED
            if status == STATUS_OK:
                self.positions.set_body(slot, body)
                slot.flags |= FLAG_CACHED
                self.ledger.cached_bytes += slot.size
            elif slot.state == STATE_AVAILABLE:
                self.positions.set_state(slot, STATE_LOCKED)
                slot.owner = OWNER_DAMAGED
                if self.sequence is not None:
                    self._unnumber(slot)    # no message after it waits for it or for a repetition of it
                self._report_damage(key, status)
        if self.interested:
            self.mark()
        return 0

    def requeue(self, list messages not None, bint received_is_in_feed=True) -> None:
        """Puts received messages back at their old places, because their reader no longer exists (DM-119).

        `received_is_in_feed`: the feed has, or will get, an event for the receive, so another event is added for each message that is put
        back. If a message cannot be put back, it waits in `Ledger.returned`, the others are put back, and the exception is raised at the
        end. A message that a reader held while the queue was purged counts as locked at that time: it is purged now (DM-093). In an
        outgoing queue, a transactional message has lost its number, and is placed after the others.
        """
        cdef Received received
        cdef Writer writer = self.ledger.writer
        cdef object fault = None, side_effects
        if self.gone:
            return
        for received in messages:
            if self.positions.find(received.lookup_id) != NULL:
                continue
            try:
                writer.begin_unit()
            except Exception as error:
                self.ledger._returned.append((self, received))
                fault = also(fault, error)
                continue
            side_effects = received._side_effects
            try:
                self._requeue(received, received_is_in_feed)
            except BaseException as error:
                writer.roll_back()
                received._side_effects = side_effects
                self.ledger._returned.append((self, received))
                if not isinstance(error, Exception):
                    raise
                fault = also(fault, error)
            else:
                writer.keep_unit()
        if fault is not None:
            raise fault

    cdef int _requeue(self, Received received, bint received_is_in_feed) except -1:
        """Puts one received message back. Call within a unit that has no other message."""
        cdef UserMessage m
        cdef Slot* slot = NULL
        cdef NumberedPosition record
        cdef Writer writer = self.ledger.writer
        cdef const char* data = PyBytes_AS_STRING(received.packet)
        cdef bint recoverable, acknowledged
        if parse_user_message(<const uint8_t*>data, PyBytes_GET_SIZE(received.packet), &m):
            return 0
        if received._purges != self._purges:
            return self._purged_outside(received, &m)
        recoverable = m.delivery == 1 or m.transaction_offset != 0
        if self.sequence is not None and m.transaction_offset:
            received.lookup_id = <uint64_t>7 << 56 | self.ledger.next_sequence()
        if received.content_id == 0:
            received.content_id = self.ledger.next_sequence()   # its old content belongs to its journal copy
        slot = self._place(received.lookup_id, received.content_id, received.arrived_us, received.packet, &m)
        slot.abort_count = <uint16_t>min(received.abort_count, COUNT_LIMIT)
        slot.move_count = <uint16_t>min(received.move_count, COUNT_LIMIT)
        slot.reason = <uint16_t>received.reason
        if slot.reason:
            mark_dead_letter(self, slot)
        slot.dead_letter = received.dead_letter
        if received._side_effects is not None:
            side_effects, received._side_effects = received._side_effects, None
            acknowledged = not undo_side_effects(side_effects)
            slot = self.positions.find(received.lookup_id)
            if acknowledged:    # each message gets one acknowledgment, and this one has had it
                slot.ack_flags &= ~(ACK_POSITIVE_RECEIVE | ACK_NEGATIVE_RECEIVE | POSITION_FINAL)
        if recoverable:
            slot.owner = OWNER_RETURNED
            describe(&record.position, slot, &m, data)
            record.position.ack_flags = slot.ack_flags
            record.position.arrival_seq = self._arrival(slot.key)
            number(self, slot, &record)
            writer.put_position(self.ordinal, slot.key, &record.position)
            writer.put_content(slot.content_id, received.packet)
            writer.notify(self, slot.key)
        else:
            note_out_of_order(self, slot)
            self._count(slot)
            if self.interested:
                self.mark()
        if received_is_in_feed and self.ledger.feed:
            self._tell(EVENT_RETURNED, self.positions.find(received.lookup_id), True)
        return 0

    cdef int _purged_outside(self, Received received, const UserMessage* m) except -1:
        """Adds the feed event for a purged message that is no longer in any list or in the store."""
        cdef LedgerBase ledger = self.ledger
        cdef Slot slot
        if not ledger.feed:
            return 0
        memset(&slot, 0, sizeof(slot))
        slot.key = received.lookup_id
        slot.size = <uint32_t>PyBytes_GET_SIZE(received.packet)
        slot.ordinal = m.message_id
        slot.message_class = m.message_class
        slot.source = ledger.sources.intern(<const uint8_t*>PyBytes_AS_STRING(received.packet) + SOURCE_OFFSET)
        self._tell(EVENT_PURGED, &slot, True, reason_of(self, EVENT_PURGED))
        ledger.sources.release(slot.source)
        return 0


cdef class Delivery:
    cdef int committed(self, uint64_t token, int status) except -1:
        cdef Received received
        cdef Slot* slot = NULL
        cdef QueueReading core = self._core
        cdef list kept = [], express = []
        for received in self._messages:
            slot = core.positions.find(received.lookup_id)
            if slot == NULL:
                kept.append(received)
                express.append(received)
            elif not slot.flags & FLAG_REMOVING:
                kept.append(received)
            elif slot.owner == OWNER_DAMAGED:
                core._drop(slot)
            elif status == STATUS_OK:
                kept.append(received)
                core.removed_total += 1
                core._drop(slot)
            else:
                core._return(slot)
        if status == STATUS_OK and self._wanted is not None and not self._wanted():
            # Done now, before a reader or a peer can see the side effects of the removal.
            core.requeue(kept)
            self._messages = []
        elif status != STATUS_OK:
            if express and not core.ledger.writer.failed:
                core.requeue(express, False)
        elif kept:
            self._messages = kept
        else:
            status = ENOSPC     # any other failure ends the store
        self._status = status
        return 0

    cdef int settled(self) except -1:
        sink, self._sink = self._sink, None
        sink(self._messages, self._status)
        return 0
