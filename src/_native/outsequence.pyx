# cython: boundscheck=False, wraparound=False, cdivision=True
"""The transactional sequence of one outgoing queue (MS-MQQB 3.1.1.5, 3.1.5.6): a ring of numbers, independent of the store.

A message gets its number once, when it enters the queue (AMB-04). Its previous number is computed at each transmission, so that gaps left
by removed messages are bridged (AMB-40).
"""

from cpython.array cimport array, clone, resize_smart
from libc.stdlib cimport free, malloc

cdef array EMPTY = array("Q")

OTHER = ANSWER_OTHER
WAITS = ANSWER_WAITS
OVER = ANSWER_OVER


cdef class OutSequence:
    """The numbered messages of one outgoing queue, in the order of their lookup identifiers.

    A new sequence begins (`begin`) only when no message of the previous one waits for an OrderAck (QB-112). `undo` is the undo log of the
    writer whose units change the sequence; None: changes are never undone.
    """

    def __cinit__(self, UndoLog undo=None):
        self._undo = undo
        self.next_number = 1
        self._capacity = 16
        self._ring = <OutEntry*>malloc(self._capacity * sizeof(OutEntry))
        if self._ring == NULL:
            raise MemoryError("no memory for a sequence")

    def __dealloc__(self):
        free(self._ring)

    # ---- units of work

    cdef int log(self, int kind, const OutEntry* entry) except -1:
        cdef SequenceUndo undo
        if self._undo is None or self._undo.depth == 0:
            return 0
        undo.kind = kind
        undo.first = self._first
        if entry != NULL:
            undo.entry = entry[0]
            undo.index = self._head + (<uint64_t>(entry - self._ring) - self._head & (self._capacity - 1))  # without a search
        undo.identifier, undo.next_number, undo.unordered, undo.sent = self.identifier, self.next_number, self.unordered, self.sent
        undo.finals, undo.alias, undo.last_ack, undo.ack_count = self.finals, self.alias, self.last_ack, self.ack_count
        undo.highest, undo.base, undo.last_ack_s, undo.stamp = self.highest, self.base, self.last_ack_s, self.stamp
        undo.resend_index, undo.resend_s = self.resend_index, self.resend_s
        undo.answered, undo.state_not_durable = self.answered, self.state_not_durable
        return self._undo.add(self, 0, &undo, sizeof(undo), None)

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        cdef const SequenceUndo* undo = <const SequenceUndo*>data
        if undo.kind == UNDO_APPENDED:
            self._tail -= 1
        elif undo.kind == UNDO_ENTRY:
            self._put_back(&undo.entry, undo.index)
        self._first = undo.first
        self.identifier, self.next_number, self.unordered, self.sent = undo.identifier, undo.next_number, undo.unordered, undo.sent
        self.finals, self.alias, self.last_ack, self.ack_count = undo.finals, undo.alias, undo.last_ack, undo.ack_count
        self.highest, self.base, self.last_ack_s, self.stamp = undo.highest, undo.base, undo.last_ack_s, undo.stamp
        self.resend_index, self.resend_s = undo.resend_index, undo.resend_s
        self.answered, self.state_not_durable = undo.answered, undo.state_not_durable
        return 0

    cdef void _put_back(self, const OutEntry* entry, uint64_t index) noexcept:
        """Puts a removed entry back at `index`. Tombstones around it that were trimmed meanwhile are restored, so that keys and numbers
        stay in order.
        """
        cdef OutEntry tombstone = entry[0]
        tombstone.flags = ENTRY_GONE
        if self._head == self._tail:
            self._head = self._tail = index
        while index < self._head:
            self._head -= 1
            self._ring[self._head & (self._capacity - 1)] = tombstone
        if index >= self._tail:
            if self._tail != self._head:
                tombstone = self._ring[(self._tail - 1) & (self._capacity - 1)]
                tombstone.flags = ENTRY_GONE
            while self._tail <= index:
                self._ring[self._tail & (self._capacity - 1)] = tombstone
                self._tail += 1
        self._ring[index & (self._capacity - 1)] = entry[0]

    cdef int count_final(self, int more) except -1:
        """Adds `more` (1 or -1) to the number of messages that wait for a FinalAck."""
        self.log(UNDO_FIELDS, NULL)
        self.finals += more
        return 0

    # ---- finding

    cdef uint64_t _index(self, uint64_t key) noexcept:
        """Returns the index of `key`, or the index where it would be inserted."""
        cdef uint64_t low = self._head, high = self._tail, middle
        while low < high:
            middle = low + (high - low) // 2
            if self._ring[middle & (self._capacity - 1)].key < key:
                low = middle + 1
            else:
                high = middle
        return low

    cdef uint64_t held(self) noexcept:
        return self._tail - self._head

    cdef OutEntry* find(self, uint64_t key) noexcept:
        cdef uint64_t index = self._index(key)
        cdef OutEntry* entry
        if index == self._tail:
            return NULL
        entry = &self._ring[index & (self._capacity - 1)]
        return entry if entry.key == key and not entry.flags & ENTRY_GONE else NULL

    cdef OutEntry* numbered(self, uint64_t identifier, uint32_t number) noexcept:
        """Returns the entry with this number if `identifier` is the current sequence, otherwise NULL."""
        cdef uint64_t low = max(self._first, self._head), high = self._tail, middle
        cdef OutEntry* entry
        if identifier != self.identifier:
            return NULL
        while low < high:
            middle = low + (high - low) // 2
            if self._ring[middle & (self._capacity - 1)].number < number:
                low = middle + 1
            else:
                high = middle
        if low == self._tail:
            return NULL
        entry = &self._ring[low & (self._capacity - 1)]
        return entry if entry.number == number and not entry.flags & ENTRY_GONE else NULL

    cdef uint32_t previous_of(self, const OutEntry* entry) noexcept:
        """Returns the PreviousTxSequenceNumber of a message: the number of the previous message that is still in the sequence, otherwise
        the last number that an OrderAck covers.
        """
        cdef uint64_t index = self._index(entry.key), first = max(self._first, self._head)
        cdef const OutEntry* before
        while index > first:
            index -= 1
            before = &self._ring[index & (self._capacity - 1)]
            if not before.flags & ENTRY_GONE:
                return self.last_ack if before.flags & ENTRY_ORDERED else before.number
        return self.last_ack

    # ---- coming

    cpdef int begin(self, uint64_t identifier) except -1:
        """Starts a new sequence. Raises ValueError if messages of the current sequence wait for an OrderAck, or if `identifier` is not
        greater than that of the current sequence.
        """
        if self.unordered or identifier <= self.identifier:
            raise ValueError("the previous sequence has not ended")
        self.log(UNDO_FIELDS, NULL)
        self.identifier = identifier
        self.stamp = <uint16_t>(identifier >> 32)
        self.next_number = 1
        self._first = self._tail
        self.last_ack = self.ack_count = self.highest = 0
        self.last_ack_s = self.resend_s = self.resend_index = 0
        self.alias = self.base = 0
        self.answered = self.state_not_durable = False
        return 0

    cdef uint64_t known_as(self) noexcept:
        return self.alias if self.alias else self.identifier

    cdef bint needs_restart(self) noexcept:
        cdef uint64_t index
        cdef OutEntry* entry
        if self.answered or self.last_ack or self.sent:
            return False
        for index in range(max(self._first, self._head), self._tail):
            entry = &self._ring[index & (self._capacity - 1)]
            if not entry.flags & (ENTRY_GONE | ENTRY_ORDERED):
                return entry.number != self.base + 1
        return False

    cdef int rename(self, uint64_t alias) except -1:
        cdef uint64_t index
        cdef OutEntry* entry
        for index in range(max(self._first, self._head), self._tail):
            entry = &self._ring[index & (self._capacity - 1)]
            if not entry.flags & (ENTRY_GONE | ENTRY_ORDERED):
                self.log(UNDO_FIELDS, NULL)
                self.base = entry.number - 1
                self.alias = alias
                self.state_not_durable = True
                return 0
        return 0

    def resume_alias(self, uint64_t alias, uint32_t base, bint answered) -> None:
        """Restores the additional stored state of a sequence that is sent by SRMP: the identifier that the receiver knows (`alias`), the
        number before its message 1 (`base`), and whether the receiver has ever answered.
        """
        self.alias = alias
        self.base = base
        self.answered = answered

    cpdef uint32_t assign(self, uint64_t key, uint32_t ordinal) except 0:
        """Assigns the next number to the message `key`, which is after all others. Raises OverflowError if all numbers are used."""
        if self.next_number > LAST_NUMBER:
            raise OverflowError("the sequence has no more numbers before its messages are acknowledged")
        self._append(key, <uint32_t>self.next_number, ordinal)
        self.next_number += 1
        return <uint32_t>(self.next_number - 1)

    cpdef bint skip_numbers(self, uint32_t stamp) noexcept:
        """Call after `restore`. Returns True if the messages were numbered by another incarnation of this queue manager, which may have
        continued the sequence since the store was copied.

        In that case a large gap is left before the next number, since receivers would take a number that the other incarnation has used for
        a repetition. OrderAcks for numbers in the gap cover the messages that were copied with the store.
        """
        if not self.unordered or self.stamp == <uint16_t>stamp:
            return False
        self.stamp = <uint16_t>stamp
        self.next_number = min(self.next_number + RESTART_GAP, <uint64_t>LAST_NUMBER + 1)
        self.highest = <uint32_t>(self.next_number - 1)
        return True

    def resume(
        self, uint64_t identifier, uint64_t next_number, uint32_t last_ack, uint32_t ack_count, uint16_t stamp=0
    ) -> None:
        """Restores the stored state of the sequence. Call it before `restore` adds the messages."""
        self.identifier = identifier
        self.stamp = stamp if stamp else <uint16_t>(identifier >> 32)
        self.next_number = max(next_number, 1)
        self.last_ack = last_ack
        # Every assigned number may have been transmitted, even the number of a message that has since been removed.
        self.highest = <uint32_t>(self.next_number - 1)
        self.ack_count = ack_count

    def restore(self, uint64_t key, uint32_t ordinal, uint64_t identifier, uint32_t number) -> bool:
        """Adds a stored message; call in the order of keys. Returns True if the receiver is known to have the message.

        That is the case if an OrderAck covers its number, or if a later sequence has begun.
        """
        cdef OutEntry* entry
        cdef uint64_t index
        if identifier > self.identifier:
            for index in range(self._head, self._tail):
                entry = &self._ring[index & (self._capacity - 1)]
                if not entry.flags & ENTRY_ORDERED:
                    entry.flags |= ENTRY_ORDERED
                    self.unordered -= 1
            self.begin(identifier)
        entry = self._append(key, number, ordinal)
        if identifier < self.identifier or number <= self.last_ack:
            entry.flags |= ENTRY_ORDERED
            self.unordered -= 1
            if not self.unordered:
                self._first = self._tail
            return True
        self.highest = max(self.highest, number)
        if number >= self.next_number:
            self.next_number = <uint64_t>number + 1
        return False

    cdef OutEntry* _append(self, uint64_t key, uint32_t number, uint32_t ordinal) except NULL:
        cdef size_t doubled
        cdef uint64_t index
        cdef OutEntry* grown
        cdef OutEntry* entry
        if self._tail != self._head and self._ring[(self._tail - 1) & (self._capacity - 1)].key >= key:
            raise ValueError("the key of a message is not greater than that of the message before it in the sequence")
        if self._tail - self._head == self._capacity:
            doubled = self._capacity * 2
            grown = <OutEntry*>malloc(doubled * sizeof(OutEntry))
            if grown == NULL:
                raise MemoryError("no memory for a sequence")
            for index in range(self._head, self._tail):
                grown[index & (doubled - 1)] = self._ring[index & (self._capacity - 1)]
            free(self._ring)
            self._ring = grown
            self._capacity = doubled
        self.log(UNDO_APPENDED, NULL)
        entry = &self._ring[self._tail & (self._capacity - 1)]
        entry.key = key
        entry.number = number
        entry.ordinal = ordinal
        entry.flags = 0
        self._tail += 1
        self.unordered += 1
        return entry

    # ---- on the way

    cdef OutEntry* depart(self, uint64_t key, uint32_t* previous) noexcept:
        cdef OutEntry* entry = self.find(key)
        if entry == NULL:
            return NULL
        previous[0] = self.previous_of(entry)
        if not entry.flags & ENTRY_ORDERED and not entry.flags & ENTRY_SENT:
            self.sent += 1
        entry.flags = (entry.flags | ENTRY_SENT) & ~ENTRY_KEPT
        if entry.number > self.highest:
            self.highest = entry.number
        return entry

    def transmit(self, uint64_t key) -> tuple:
        """Marks a message that is written to a session as sent. Returns (number of the message, PreviousTxSequenceNumber), or (0, 0) if the
        message has no number.
        """
        cdef uint32_t previous = 0
        cdef OutEntry* entry = self.depart(key, &previous)
        number = 0 if entry == NULL else entry.number
        return number, previous

    cpdef int acknowledged(self, uint64_t key) except -1:
        """Marks a message as acknowledged by its session. Returns OVER if an OrderAck already covers the message (QB-211), WAITS if not,
        OTHER if the message has no number.
        """
        cdef OutEntry* entry = self.find(key)
        if entry == NULL:
            return ANSWER_OTHER
        if entry.flags & ENTRY_ORDERED:
            return ANSWER_OVER
        self.log(UNDO_ENTRY, entry)
        entry.flags |= ENTRY_KEPT
        return ANSWER_WAITS

    cpdef int returned(self, uint64_t key) except -1:
        """Marks a message as not sent, because its session has ended or its resend timer has fired. Returns WAITS if the message must be
        sent again, OVER if an OrderAck covers it, OTHER if it has no number.
        """
        cdef OutEntry* entry = self.find(key)
        if entry == NULL:
            return ANSWER_OTHER
        if entry.flags & ENTRY_ORDERED:
            return ANSWER_OVER
        self.log(UNDO_ENTRY, entry)
        if entry.flags & ENTRY_SENT:
            self.sent -= 1
        entry.flags &= ~(ENTRY_SENT | ENTRY_KEPT)
        return ANSWER_WAITS

    def order(self, uint32_t number) -> array | None:
        """Processes an OrderAck for everything up to `number`. Returns the keys of the covered messages that can leave the queue now; other
        covered messages leave when their session has acknowledged them. Returns None for a number that was never transmitted.
        """
        cdef array over
        cdef uint64_t index
        cdef OutEntry* entry
        if number == 0 or number > self.highest:
            return None
        over = clone(EMPTY, 0, False)
        self.log(UNDO_FIELDS, NULL)
        if number <= self.last_ack:
            self.ack_count += 1
            return over
        self.last_ack = number
        self.ack_count = 1
        self.resend_index = 0
        for index in range(max(self._first, self._head), self._tail):
            entry = &self._ring[index & (self._capacity - 1)]
            if entry.number > number:
                break
            if entry.flags & (ENTRY_GONE | ENTRY_ORDERED):
                continue
            self.log(UNDO_ENTRY, entry)
            self.unordered -= 1
            if entry.flags & ENTRY_SENT:
                self.sent -= 1
            entry.flags |= ENTRY_ORDERED
            if entry.flags & ENTRY_KEPT or not entry.flags & ENTRY_SENT:
                resize_smart(over, len(over) + 1)
                over.data.as_ulonglongs[len(over) - 1] = entry.key
        return over

    def underway(self) -> array:
        """Returns the keys of the messages that were transmitted and that are still in the queue: no OrderAck covers them, or the
        acknowledgment of their session is missing.
        """
        return self._keys(ENTRY_SENT, ENTRY_SENT, self._head)

    def covered(self) -> array:
        """Returns the keys of the messages that an OrderAck covers and that are still in the queue."""
        return self._keys(ENTRY_ORDERED, ENTRY_ORDERED, self._head)

    def keys(self) -> array:
        """Returns the keys of all messages."""
        return self._keys(0, 0, self._head)

    cdef array current(self):
        return self._keys(0, 0, max(self._first, self._head))

    cdef array _keys(self, uint8_t mask, uint8_t wanted, uint64_t first):
        cdef array result = clone(EMPTY, 0, False)
        cdef uint64_t index
        cdef OutEntry* entry
        for index in range(first, self._tail):
            entry = &self._ring[index & (self._capacity - 1)]
            if not entry.flags & ENTRY_GONE and entry.flags & mask == wanted:
                resize_smart(result, len(result) + 1)
                result.data.as_ulonglongs[len(result) - 1] = entry.key
        return result

    # ---- going

    cpdef bint remove(self, uint64_t key) except -1:
        """Removes a message that has left the queue from the sequence. Returns whether the message had a number."""
        cdef OutEntry* entry = self.find(key)
        if entry == NULL:
            return False
        self.log(UNDO_ENTRY, entry)
        if not entry.flags & ENTRY_ORDERED:
            self.unordered -= 1
            if entry.flags & ENTRY_SENT:
                self.sent -= 1
        entry.flags |= ENTRY_GONE
        self._trim()
        return True

    cdef void _trim(self) noexcept:
        while self._head != self._tail and self._ring[self._head & (self._capacity - 1)].flags & ENTRY_GONE:
            self._head += 1
        while self._tail != self._head and self._ring[(self._tail - 1) & (self._capacity - 1)].flags & ENTRY_GONE:
            self._tail -= 1
        self._first = min(self._first, self._tail)

    # ---- for management (OutgoingTransferInfo)

    @property
    def first_unordered(self) -> tuple | None:
        """The (number, PreviousTxSequenceNumber) of the first message that no OrderAck covers; None if there is none."""
        cdef uint64_t index
        for index in range(max(self._first, self._head), self._tail):
            if not self._ring[index & (self._capacity - 1)].flags & (ENTRY_GONE | ENTRY_ORDERED):
                return self._place(index)
        return None

    @property
    def last_unordered(self) -> tuple | None:
        """The (number, PreviousTxSequenceNumber) of the last message that no OrderAck covers; None if there is none."""
        cdef uint64_t index = self._tail
        while index > max(self._first, self._head):
            index -= 1
            if not self._ring[index & (self._capacity - 1)].flags & (ENTRY_GONE | ENTRY_ORDERED):
                return self._place(index)
        return None

    cdef tuple _place(self, uint64_t index):
        cdef OutEntry* entry = &self._ring[index & (self._capacity - 1)]
        return entry.number, self.previous_of(entry)
