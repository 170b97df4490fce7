# Messages for other queue managers: those that a router relays without help from Python (MS-MQQB 3.1.5.8.2).

from libc.stdint cimport uint8_t
from msmq_fast._native.framing cimport UserMessage
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.receivebase cimport ReceiverBase

cdef enum:
    MAX_DESTINATIONS = 4096     # of a session: senders choose names, which must not fill the memory
    MAX_NAME = 1024             # bytes of a destination that is remembered


# Returns the key of a packet's destination in Receiver._transit.
cdef bytes transit_key(const uint8_t* packet, const UserMessage* m)
# Relays the current message if it is a plain one with a known route. Returns an Event; EVENT_MESSAGE: Python decides.
cdef int relay_message(ReceiverBase self) except -1
# Puts the current message into an outgoing queue. Returns a Delivery.
cdef int relay_to(ReceiverBase self, QueueCore core) except -1
