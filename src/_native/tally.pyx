# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums and orders the counters of many queues, for the lists that operators see.

Each function is one pass over C fields: 10,000 queues take a fraction of a millisecond, which the event loop is held for. In Python, a
number object for each counter takes ten times as long.
"""

from libc.float cimport DBL_MAX
from libc.stddef cimport size_t
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, qsort
from msmq_fast._native.queue cimport QueueCore

COUNTERS = ("messages", "bytes", "oldest", "in_per_second", "out_per_second")

cdef enum:
    MESSAGES = 0                # places in COUNTERS
    SIZE = 1
    OLDEST = 2
    ARRIVED = 3

cdef struct Rank:
    double value
    size_t place


cdef inline double value_of(QueueCore core, int counter) except? -1.0:
    """Returns a counter as a number that is exact up to 2**53: bytes, messages and microseconds stay below."""
    if counter == MESSAGES:
        return <double>core.messages
    if counter == SIZE:
        return <double>core.bytes
    if counter == OLDEST:
        # It grows with the age of the oldest message, and is least for an empty queue.
        return -<double>(<uint64_t>core.positions.oldest()) if core.messages else -DBL_MAX
    return core.in_per_second if counter == ARRIVED else core.out_per_second


cdef inline bint is_before(const Rank* one, const Rank* other) noexcept nogil:
    return one.value < other.value or (one.value == other.value and one.place < other.place)


cdef int compare(const void* one, const void* other) noexcept nogil:
    return -1 if is_before(<const Rank*>one, <const Rank*>other) else 1


cdef void sink(Rank* heap, size_t size, size_t place) noexcept nogil:
    """Restores the order of a heap whose last one is at its top, below `place`."""
    cdef size_t child
    cdef Rank moved = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and is_before(&heap[child], &heap[child + 1]):
            child += 1
        if not is_before(&moved, &heap[child]):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = moved


def sums(list cores not None) -> tuple[int, int]:
    """Returns the messages and the bytes of all queues."""
    cdef QueueCore core
    cdef uint64_t messages = 0, size = 0
    for core in cores:
        messages += core.messages
        size += core.bytes
    return messages, size


def first(list cores not None, str counter not None, bint descending, size_t most) -> list[int]:
    """Returns the places in `cores` of the first `most` queues in the order of a counter. Queues with equal counters keep their order.
    With `oldest`, ascending, the queue whose oldest message is the youngest is first, after the empty ones.

    Raises ValueError if `counter` is not one of COUNTERS.
    """
    cdef int number = COUNTERS.index(counter)
    cdef QueueCore core
    cdef size_t place = 0, size = 0, index, limit = min(most, <size_t>len(cores))
    cdef Rank* heap
    cdef Rank rank
    if limit == 0:
        return []
    heap = <Rank*>malloc(limit * sizeof(Rank))
    if heap == NULL:
        raise MemoryError("no memory to order queues")
    try:
        for core in cores:
            rank.value = value_of(core, number)
            if descending:
                rank.value = -rank.value
            rank.place = place
            place += 1
            if size < limit:
                heap[size] = rank
                size += 1
                if size == limit:
                    for index in range(limit // 2):
                        sink(heap, limit, limit // 2 - 1 - index)
            elif is_before(&rank, heap):
                heap[0] = rank
                sink(heap, limit, 0)
        qsort(heap, size, sizeof(Rank), compare)
        return [heap[index].place for index in range(size)]
    finally:
        free(heap)
