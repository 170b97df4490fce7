# Transactional messages: where a message stands in its stream, and the plain path for those that are next (MS-MQQB 3.1.5.8.6).

from msmq_fast._native.instream cimport InStream
from msmq_fast._native.receivebase cimport ReceiverBase


# Returns an Event; a stream that is not known yet is for the general path.
cdef int take_transactional(ReceiverBase self) except -1
# Returns a Delivery. STORED: it is the next one, to be stored or rejected. Another session may bring a message that waits for Python: so it
# is judged again then.
cdef int judge_place(ReceiverBase self, InStream stream) except -1
# The stream of the current message, None if it is not known.
cdef InStream find_stream(ReceiverBase self)
