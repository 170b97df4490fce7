# Transactional messages: determines the order of a message in its stream; the fast path for those that are next (MS-MQQB 3.1.5.8.6).

from msmq_fast._native.instream cimport InStream
from msmq_fast._native.receivebase cimport ReceiverBase


# Returns an Event. The general path handles a stream that is not known yet.
cdef int take_transactional(ReceiverBase self) except -1
# Returns a Delivery. STORED: it is the next one, to be stored or rejected. If the message waits for Python, another session may deliver it
# first, so it is judged again then.
cdef int judge_place(ReceiverBase self, InStream stream) except -1
# Returns the stream of the current message, None if it is unknown.
cdef InStream find_stream(ReceiverBase self)
