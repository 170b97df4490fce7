# Copies of messages whose first copy is not durable yet.

cimport cython
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.history cimport DuplicateHistory, Identity
from msmq_fast._native.window cimport ReceiveWindow


@cython.final
cdef class Repetition(CommitListener):
    """A copy whose acknowledgment depends on the first copy, whichever batch reports the outcome of that."""
    cdef DuplicateHistory _history
    cdef ReceiveWindow _window
    cdef Identity _identity
