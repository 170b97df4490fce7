# `kind` and `flags` of a feed entry. Made by setup.py of store/decode.py: do not edit.

cdef enum:  # EventKind
    EVENT_SENT = 1
    EVENT_ARRIVED = 2
    EVENT_RECEIVED = 3
    EVENT_REMOVED = 4
    EVENT_EXPIRED = 5
    EVENT_MOVED = 6
    EVENT_PURGED = 7
    EVENT_JOURNALED = 8
    EVENT_DEAD_LETTERED = 9
    EVENT_ACKED = 10
    EVENT_NACKED = 11
    EVENT_QUEUE_CREATED = 12
    EVENT_QUEUE_DELETED = 13
    EVENT_STARTED = 14
    EVENT_STOPPED = 15
    EVENT_ABORTED_RETURN = 16
    EVENT_DUPLICATE = 17
    EVENT_RETURNED = 18

cdef enum:  # Transport
    TRANSPORT_LOCAL = 0
    TRANSPORT_MQQB = 1
    TRANSPORT_MQQP = 2
    TRANSPORT_SRMP = 3

cdef inline bint about_queue(int kind) noexcept nogil:  # ABOUT_QUEUES
    return kind == EVENT_QUEUE_CREATED or kind == EVENT_QUEUE_DELETED

cdef inline bint not_taken(int kind) noexcept nogil:  # NOT_TAKEN
    return kind == EVENT_NACKED or kind == EVENT_DUPLICATE
