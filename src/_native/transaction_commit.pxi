# The commit: all operations of a transaction in one unit, or in slices that share a batch; and the vote before it.

cdef int prepare_now(Transaction tx) except -1:
    cdef Writer writer = tx.ledger.writer
    cdef Operation* operation
    cdef OperationEntry entry
    cdef size_t index = 0
    cdef uint32_t rows = tx._rows
    cdef list entries
    writer.begin_unit()
    try:
        mark_last(tx, True)
        while index < tx._count:
            entries = []
            while index < tx._count and len(entries) < ROW_LENGTH:
                operation = &tx._operations[index]
                index += 1
                if operation.core == NULL and operation.kind != OPERATION_ENQUEUE:
                    continue    # it was let go of: after a restart it must not be locked again
                entry.kind = operation.kind
                entry.queue = operation.queue
                entry.target = operation.target
                entry.key = operation.key
                entry.content_id = operation.content_id
                entry.record = operation.record
                entries.append((<char*>&entry)[:sizeof(entry)])
            rows += 1
            writer.put_record(TABLE_META, tx._key(rows), bytes((1, ROW_OPERATIONS)) + b"".join(entries))
        writer.put_record(TABLE_META, tx._key(0), tx._head)
        writer.notify(tx, TOKEN_PREPARED)
    except BaseException:
        writer.roll_back()
        raise
    writer.keep_unit()
    tx._rows = rows
    tx._tails.clear()
    return 0


cdef int commit_now(Transaction tx) except -1:
    cdef Ledger ledger = tx.ledger
    if tx.broken:
        raise TransactionBroken(tx._status)
    if ledger.sequence + tx.enqueued + tx.dequeued > ledger.sequence_limit:
        raise OverflowError("no SequentialIDs are reserved: the store does not keep up")
    if not tx.prepared:
        mark_last(tx, False)
    ledger.writer.make_room(tx.held_bytes)
    tx._done = 0
    tx._stored = tx._rows > 0 or tx.prepared
    if tx._count > SLICED_FROM and not goes_out(tx):
        return begin_slices(tx)
    commit_part(tx, tx._count)
    if not tx._stored:
        finish(tx, STATUS_OK)
        tx.settled()
    return 0


cdef int commit_part(Transaction tx, size_t end) except -1:
    """The operations that are not done yet, up to `end`, in one unit; what raises leaves them undone."""
    cdef Writer writer = tx.ledger.writer
    cdef Operation* operation
    cdef QueueCore core
    cdef Slot* slot = NULL
    cdef size_t index = tx._done
    cdef uint64_t first = tx._next
    cdef bint stored = tx._stored
    writer.begin_unit()
    try:
        if index == 0 and not tx.prepared:
            mark_last(tx, True)
        while index < end:
            operation = &tx._operations[index]
            index += 1
            core = <QueueCore>operation.core if operation.core != NULL else None
            if operation.kind == OPERATION_ENQUEUE:
                stored = True
                if core is None or core.gone:
                    if operation.content_id:
                        writer.delete_content(operation.content_id, operation.record.content_bytes)
                    continue
                core.commit_enqueue(
                    operation.content_id, <bytes>operation.packet if operation.packet != NULL else None, &operation.record,
                    tx._next
                )
                tx._next += tx._next != 0
                operation.key = <uint64_t>(7 - operation.record.priority) << 56 | operation.record.arrival_seq
                operation.reserved = False
            elif operation.kind == OPERATION_MOVE:
                if core is not None and operation.goal != NULL:
                    operation.leaving = complete_move(core, operation.key, tx.owner, <QueueCore>operation.goal)
                    stored = True
            else:
                slot = tx._locked(core, operation.key)
                if slot != NULL:
                    operation.leaving = True
                    stored |= core.commit_dequeue(
                        slot, REASON_REJECTED if operation.kind == OPERATION_REJECT else REASON_RECEIVED
                    )
        if end == tx._count:
            delete_rows(tx)
            if stored:
                writer.notify(tx, TOKEN_END)
    except BaseException:
        writer.roll_back()
        undo_operations(tx, tx._done, index)
        tx._next = first
        raise
    writer.keep_unit()
    tx._done = end
    tx._stored = stored
    return 0


cdef bint goes_out(Transaction tx) noexcept:
    """Whether something goes to an outgoing queue: numbers are given there in one go."""
    cdef size_t index
    for index in range(tx._count):
        if tx._operations[index].kind == OPERATION_ENQUEUE and tx._operations[index].core != NULL:
            if (<QueueCore>tx._operations[index].core).outgoing:
                return True
    return False


cdef int begin_slices(Transaction tx) except -1:
    cdef Ledger ledger = tx.ledger
    if tx.enqueued:
        tx._next = ledger.sequence + 1
        ledger.sequence += tx.enqueued - 1
        ledger.next_sequence()
    ledger.writer.hold()
    tx.slicing = True
    if tx._on_slices is not None:
        tx._on_slices()
        return 0
    while tx.step(SLICED_FROM):
        pass
    return 0


cdef int undo_operations(Transaction tx, size_t start, size_t end) except -1:
    """Operations [start, end) of a commit did not happen: its unit was rolled back."""
    cdef Operation* operation
    cdef size_t index
    for index in range(start, end):
        operation = &tx._operations[index]
        if operation.core == NULL:
            continue
        operation.leaving = False
        if operation.kind == OPERATION_ENQUEUE and operation.key:
            operation.key = 0
            operation.reserved = True
    return 0


cdef int finish(Transaction tx, int status) except -1:
    """The commit or abort has an outcome."""
    cdef Operation* operation
    cdef QueueCore core
    cdef Slot* slot
    cdef size_t index
    tx._result = status
    tx._settled = True
    for index in range(tx._count):
        operation = &tx._operations[index]
        if operation.core == NULL:
            continue
        core = <QueueCore>operation.core
        if operation.kind == OPERATION_ENQUEUE:
            if not operation.key:
                if status == STATUS_OK or not tx.prepared:
                    unreserve(tx, operation)
            elif status != STATUS_OK and tx.prepared:
                core.reserve_again(operation.record.content_bytes)
                operation.key = 0
                operation.reserved = True
            continue
        if not operation.leaving:
            if tx._broke_off and index >= tx._done and not tx.prepared:
                release_one(tx, operation)
            continue
        operation.leaving = False
        if operation.kind == OPERATION_MOVE:
            if status != STATUS_OK:
                move_failed(tx, operation, core)
            continue    # its Relocation knows
        slot = core.positions.find(operation.key)
        if slot != NULL and slot.owner == tx.owner and status != STATUS_OK and tx.prepared:
            slot.flags &= ~FLAG_REMOVING
        else:
            core.drop_locked(operation.key, status)
    tx._broke_off = False
    if status != STATUS_OK and tx.prepared:
        return 0
    tx.ended = True
    if status != STATUS_OK:
        forget_failed(tx)
    return 0


cdef int move_failed(Transaction tx, Operation* operation, QueueCore core) except -1:
    """A move that was not kept: if the transaction stays prepared the message stays locked and the target expects it."""
    cdef Slot* slot
    if tx.prepared:
        (<QueueCore>operation.goal).expected += 1
        return 0
    slot = tx._locked(core, operation.key)
    if slot != NULL:
        core.abort_dequeue(slot)
    return 0
