# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The history of the counters of queues: rings of samples in memory, and the rates of the last interval.

1. `sample` reads the counters of every queue. It is one pass over C fields: 10,000 queues take less than a millisecond.
2. The samples of all queues are taken together, so their times are in one ring per resolution (`_times`), and sample number n is in cell
   n % size of every ring.
3. At most `limit` queues have rings (QueueHistory). `select` gives them to the queues with the most activity: the messages that arrived or
   left, weighted with a half-life of one hour, plus the messages in the queue. A queue loses its rings only to one with more than
   twice its activity, so that two similar queues do not take them from each other again and again.
4. The sum over all destination queues (user queues and their subqueues) always has rings.
"""

from libc.float cimport DBL_MAX
from libc.math cimport pow
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from msmq_fast._native.ledgerbase cimport LATENCY_BINS, ROLE_DESTINATION, LedgerBase
from msmq_fast._native.queue cimport QueueCore

cdef enum:
    FINE = 0                    # the two resolutions
    COARSE = 1
    RESOLUTIONS = 2
    FINE_SIZE = 720             # samples in a ring
    COARSE_SIZE = 1440

cdef double HALF_LIFE = 3600.0  # seconds, of `_activity`

cdef struct Cell:
    uint64_t size               # bytes in the queue
    uint32_t messages
    float arrived, removed      # per second since the sample before


cdef inline size_t size_of(int resolution) noexcept nogil:
    return FINE_SIZE if resolution == FINE else COARSE_SIZE


cdef int compare(const void* one, const void* other) noexcept nogil:
    """Orders doubles, the greatest first."""
    cdef double first = (<const double*>one)[0], second = (<const double*>other)[0]
    return -1 if first > second else 1 if first < second else 0


cdef class QueueHistory:
    """The rings of one queue."""
    cdef Cell* _cells[RESOLUTIONS]
    cdef uint64_t _first[RESOLUTIONS]       # number of the first sample of this queue
    cdef uint64_t _arrived[RESOLUTIONS]     # counters of the last sample
    cdef uint64_t _removed[RESOLUTIONS]

    def __cinit__(self):
        self._cells[FINE] = <Cell*>calloc(FINE_SIZE, sizeof(Cell))
        self._cells[COARSE] = <Cell*>calloc(COARSE_SIZE, sizeof(Cell))
        if self._cells[FINE] == NULL or self._cells[COARSE] == NULL:
            raise MemoryError("no memory for the history of a queue")

    def __dealloc__(self):
        free(self._cells[FINE])
        free(self._cells[COARSE])

    cdef void begin(self, int resolution, uint64_t number, uint64_t arrived, uint64_t removed) noexcept:
        """Starts with sample `number`; its rates count from these counters."""
        self._first[resolution] = number
        self._arrived[resolution] = arrived
        self._removed[resolution] = removed

    cdef void put(self, int resolution, uint64_t number, uint64_t messages, uint64_t size, uint64_t arrived, uint64_t removed,
                  double seconds) noexcept:
        cdef Cell* cell = &self._cells[resolution][number % size_of(resolution)]
        cell.messages = <uint32_t>min(messages, <uint64_t>0xFFFFFFFF)
        cell.size = size
        cell.arrived = <float>(grown(arrived, self._arrived[resolution]) / seconds)
        cell.removed = <float>(grown(removed, self._removed[resolution]) / seconds)
        self._arrived[resolution] = arrived
        self._removed[resolution] = removed


cdef inline double grown(uint64_t now, uint64_t before) noexcept nogil:
    """How much a counter grew; 0 if a unit of work that counted was rolled back since."""
    return <double>(now - before) if now > before else 0.0


cdef class QueueSampler:
    """``QueueSampler(ledger, limit)``: samples all queues of a ledger; `limit` queues have rings."""
    cdef LedgerBase _ledger
    cdef size_t _limit
    cdef size_t _used                       # queues with rings
    cdef QueueHistory _total
    cdef uint64_t _arrived, _removed        # of the sum; they never fall, even if queues are deleted
    cdef uint64_t _number[RESOLUTIONS]      # samples taken
    cdef uint32_t _times[RESOLUTIONS][COARSE_SIZE]

    def __init__(self, LedgerBase ledger not None, size_t limit):
        self._ledger = ledger
        self._limit = limit
        self._total = QueueHistory()

    def sample(self, int resolution, uint32_t now_s, double seconds) -> None:
        """Take one sample of every queue. `resolution` is 0 (5 s) or 1 (60 s); `now_s` is the time in Unix seconds, `seconds` the time
        since the last sample of this resolution. The rates of queues are those of resolution 0.

        Raises ValueError for an unknown resolution, or for a time that is not positive.
        """
        cdef QueueCore core
        cdef uint64_t number, messages = 0, size = 0
        cdef double arrived, removed, weight
        if not 0 <= resolution < RESOLUTIONS or seconds <= 0:
            raise ValueError("a sample needs a resolution (0 or 1) and a positive time")
        number = self._number[resolution]
        weight = pow(0.5, seconds / HALF_LIFE)
        self._used = 0
        for core in self._ledger._cores.values():
            if resolution == FINE:
                arrived = grown(core.arrived_total, core._sampled_in)
                removed = grown(core.removed_total, core._sampled_out)
                core._sampled_in = core.arrived_total
                core._sampled_out = core.removed_total
                core.in_per_second = arrived / seconds
                core.out_per_second = removed / seconds
                core._activity = core._activity * weight + arrived + removed
                if core.role == ROLE_DESTINATION:
                    self._arrived += <uint64_t>arrived
                    self._removed += <uint64_t>removed
            if core.role == ROLE_DESTINATION:
                messages += core.messages
                size += core.bytes
            if core._history is not None:
                self._used += 1
                (<QueueHistory>core._history).put(
                    resolution, number, core.messages, core.bytes, core.arrived_total, core.removed_total, seconds
                )
        self._total.put(resolution, number, messages, size, self._arrived, self._removed, seconds)
        self._times[resolution][number % size_of(resolution)] = now_s
        self._number[resolution] = number + 1

    def select(self) -> None:
        """Give rings to the queues with the most activity; the first sample of a queue is the next one."""
        cdef QueueCore core
        cdef size_t count = len(self._ledger._cores), number = 0
        cdef double threshold = -1.0
        cdef double* ranks
        if count > self._limit:
            ranks = <double*>malloc(count * sizeof(double))
            if ranks == NULL:
                raise MemoryError("no memory to order queues")
            for core in self._ledger._cores.values():
                ranks[number] = _rank(core)
                number += 1
            qsort(ranks, count, sizeof(double), compare)
            threshold = ranks[self._limit - 1] if self._limit else DBL_MAX
            free(ranks)
            for core in self._ledger._cores.values():
                if core._history is not None and _rank(core) < threshold:
                    core._history = None
        self._used = 0
        for core in self._ledger._cores.values():
            self._used += core._history is not None
        for core in self._ledger._cores.values():
            if self._used >= self._limit:
                break
            if core._history is None and _rank(core) >= threshold:
                core._history = self._begun(core)
                self._used += 1

    cdef QueueHistory _begun(self, QueueCore core):
        cdef QueueHistory history = QueueHistory()
        history.begin(FINE, self._number[FINE], core._sampled_in, core._sampled_out)
        history.begin(COARSE, self._number[COARSE], core.arrived_total, core.removed_total)
        return history

    @property
    def room(self) -> bool:
        """Whether more queues could have rings, as of the last sample or `select`."""
        return self._used < self._limit and self._used < <size_t>len(self._ledger._cores)

    def columns(self, QueueCore core, int resolution, uint32_t since) -> tuple | None:
        """Returns the samples of a queue (None: of the sum) with a time after `since`, oldest first, as five lists of one length: times in
        Unix seconds, messages, bytes, messages that arrived and that left per second. None if the queue has no rings.

        Raises ValueError for an unknown resolution.
        """
        cdef QueueHistory history
        cdef uint64_t number, first
        cdef size_t capacity
        cdef Cell* cell
        if not 0 <= resolution < RESOLUTIONS:
            raise ValueError("a resolution is 0 or 1")
        if core is not None and core._history is None:
            return None
        history = self._total if core is None else <QueueHistory>core._history
        capacity = size_of(resolution)
        first = self._number[resolution] - capacity if self._number[resolution] > capacity else 0
        first = max(first, history._first[resolution])
        times, messages, sizes, arrived, removed = [], [], [], [], []
        for number in range(first, self._number[resolution]):
            if self._times[resolution][number % capacity] <= since:
                continue
            cell = &history._cells[resolution][number % capacity]
            times.append(self._times[resolution][number % capacity])
            messages.append(cell.messages)
            sizes.append(cell.size)
            arrived.append(round(<double>cell.arrived, 3))
            removed.append(round(<double>cell.removed, 3))
        return times, messages, sizes, arrived, removed

    def latency(self) -> tuple:
        """Returns (counts, sum in microseconds) of the times from the arrival of messages in destination queues to their receive since the
        start. Bin i counts the times below 2**i microseconds that no lower bin counts; the last bin has all longer ones.
        """
        cdef int number
        return [self._ledger._latency[number] for number in range(LATENCY_BINS)], self._ledger._latency_us


cdef inline double _rank(QueueCore core) noexcept:
    return (core._activity + <double>core.messages) * (2.0 if core._history is not None else 1.0)
