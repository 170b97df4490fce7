# cython: boundscheck=False, wraparound=False, cdivision=True
"""Destinations of plain messages; see routes.pxd."""

from msmq_fast._native.queue cimport QueueCore

cdef enum:
    MAX_SENDERS = 65536         # senders choose their sender ids, which must not fill the memory
    MAX_SENDER_ID = 68          # bytes: no SID is longer
    MAX_ROUTES = 65536          # one queue name has many spellings, which must not fill the memory


cdef class Routes:
    """The queues to which plain messages go, by DestinationQueue. The sessions of a queue manager share them; the general path
    (mqqb/receive.py) adds them.
    """

    def __cinit__(self):
        self.table = {}
        self.streams = {}
        self.senders = {}

    def __len__(self) -> int:
        return len(self.table)

    def add(self, int dest_type, bytes name not None, QueueCore core not None) -> None:
        """Makes `core` the destination of plain messages for this DestinationQueue (UserHeader.Flags.DQ and wire form)."""
        if len(self.table) >= MAX_ROUTES:
            self.table.clear()
        self.table[bytes((dest_type,)) + name] = core

    def add_streams(self, int dest_type, bytes name not None, QueueCore core not None) -> None:
        """Like `add`, but for transactional messages; the queue is transactional."""
        if len(self.streams) >= MAX_ROUTES:
            self.streams.clear()
        self.streams[bytes((dest_type,)) + name] = core

    def admit(
        self, int dest_type, bytes name not None, int sender_type, bytes sender_id not None, QueueCore core not None
    ) -> None:
        """Like `add`, but only for messages of one sender, given by SecurityHeader.Flags.ST and SecurityID; 0 and b"" stand for messages
        without a sender.
        """
        if len(sender_id) > MAX_SENDER_ID:
            return
        if len(self.senders) >= MAX_SENDERS:
            self.senders.clear()
        self.senders[bytes((dest_type,)) + name + bytes((sender_type,)) + sender_id] = core

    def clear(self) -> None:
        """Forgets all destinations, because queues were created, deleted or changed. The general path then looks them up again."""
        self.table.clear()
        self.streams.clear()
        self.senders.clear()
        self.generation += 1
