# cython: boundscheck=False, wraparound=False, cdivision=True
"""Destinations of plain messages; see routes.pxd."""

from msmq_fast._native.queue cimport QueueCore

cdef enum:
    MAX_SENDERS = 65536         # sender ids are what senders claim: they must not fill the memory
    MAX_SENDER_ID = 68          # bytes: no SID is longer
    MAX_ROUTES = 65536          # nor the many ways to write one name


cdef class Routes:
    """Destinations of plain messages, shared by the sessions of a queue manager and filled by the general path."""

    def __cinit__(self):
        self.table = {}
        self.streams = {}
        self.senders = {}

    def __len__(self) -> int:
        return len(self.table)

    def add(self, int dest_type, bytes name not None, QueueCore core not None) -> None:
        """Plain messages for this DestinationQueue (UserHeader.Flags.DQ and wire form) go to `core`."""
        if len(self.table) >= MAX_ROUTES:
            self.table.clear()
        self.table[bytes((dest_type,)) + name] = core

    def add_streams(self, int dest_type, bytes name not None, QueueCore core not None) -> None:
        """As `add`, for transactional messages to a transactional queue."""
        if len(self.streams) >= MAX_ROUTES:
            self.streams.clear()
        self.streams[bytes((dest_type,)) + name] = core

    def admit(
        self, int dest_type, bytes name not None, int sender_type, bytes sender_id not None, QueueCore core not None
    ) -> None:
        """As `add`, for the messages of one sender only: SecurityHeader.Flags.ST and SecurityID, 0 and nothing without."""
        if len(sender_id) > MAX_SENDER_ID:
            return
        if len(self.senders) >= MAX_SENDERS:
            self.senders.clear()
        self.senders[bytes((dest_type,)) + name + bytes((sender_type,)) + sender_id] = core

    def clear(self) -> None:
        """Queues were created, deleted or changed: every destination is looked up anew."""
        self.table.clear()
        self.streams.clear()
        self.senders.clear()
        self.generation += 1
