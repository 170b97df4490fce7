# Destinations of plain messages that the general path has looked up. The sessions of a queue manager share them.

cimport cython
from libc.stdint cimport uint64_t


@cython.final
cdef class Routes:
    cdef dict table             # type byte and wire name of a destination -> QueueCore that needs no special handling
    cdef dict streams           # as table, for transactional messages
    cdef dict senders           # the same, sender type byte, sender id -> QueueCore that this sender may send to
    cdef uint64_t generation
