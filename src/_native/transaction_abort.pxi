# The abort: what was received is back with new counts, what was sent gives its quota back.

cdef class AbortCounts(CommitListener):
    """Counts of messages that were aborted, on their way to the store: in units that keep nobody waiting."""
    cdef Writer _writer
    cdef list _places           # (QueueCore, key)
    cdef size_t _done

    cdef int run(self) except -1:
        cdef QueueCore core
        cdef size_t end = min(self._done + COUNTS_STEP, <size_t>len(self._places))
        if self._writer.failed or self._done == end:
            return 0
        try:
            self._writer.begin_unit()
        except StoreError:
            return 0    # an increment may be lost, see X-72
        try:
            for core, key in self._places[self._done:end]:
                core.put_counts(<uint64_t>key, 0)
            self._writer.notify(self, 0)
        except (StoreError, ValueError):    # ValueError: the store has lost a record
            self._writer.roll_back()
            return 0
        except BaseException:
            self._writer.roll_back()
            raise
        self._writer.keep_unit()
        self._done = end
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        return 0

    cdef int settled(self) except -1:
        return self.run()


cdef int release_all(Transaction tx) except -1:
    """Lets go of everything that is locked or reserved, and keeps the new counts."""
    cdef size_t index
    fault = None
    for index in range(tx._count):
        try:
            release_one(tx, &tx._operations[index])
        except Exception as error:
            fault = also(fault, error)
    keep_counts(tx)
    if fault is not None:
        raise fault
    return 0


cdef int release_one(Transaction tx, Operation* operation) except -1:
    cdef QueueCore core
    cdef Slot* slot
    if operation.core == NULL:
        return 0
    core = <QueueCore>operation.core
    if operation.kind == OPERATION_ENQUEUE:
        return unreserve(tx, operation)
    slot = tx._locked(core, operation.key)
    if operation.kind == OPERATION_MOVE and operation.goal != NULL:
        abort_move(core, operation.key, tx.owner, <QueueCore>operation.goal)
    elif slot != NULL:
        core.abort_dequeue(slot)
    return 0


cdef int put_counts(Transaction tx, size_t index, size_t end, uint32_t more) except -1:
    """With the current unit: the counts of what operations [index, end) have received."""
    cdef Operation* operation
    while index < end:
        operation = &tx._operations[index]
        index += 1
        if operation.kind != OPERATION_ENQUEUE and operation.core != NULL:
            (<QueueCore>operation.core).put_counts(operation.key, more)
    return 0


cdef int keep_counts(Transaction tx) except -1:
    """Has the new counts written, which nobody waits for (X-72)."""
    cdef AbortCounts counts
    cdef Operation* operation
    cdef size_t index
    if not tx.dequeued and not tx.moved:
        return 0
    counts = AbortCounts.__new__(AbortCounts)
    counts._writer = tx.ledger.writer
    counts._places = []
    for index in range(tx._count):
        operation = &tx._operations[index]
        if operation.kind != OPERATION_ENQUEUE and operation.core != NULL:
            counts._places.append((<QueueCore>operation.core, operation.key))
    counts.run()
    return 0


cdef int unreserve(Transaction tx, Operation* operation) except -1:
    if operation.reserved:
        operation.reserved = False
        (<QueueCore>operation.core).unreserve(operation.record.content_bytes)
    return 0


cdef int forget_failed(Transaction tx) except -1:
    """After a commit that was not kept: the new counts, and away with what was written ahead."""
    cdef Writer writer = tx.ledger.writer
    if writer.failed:
        return 0
    keep_counts(tx)
    if tx._rows:
        writer.begin_unit()
        try:
            delete_ahead(tx)
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()
    return 0
