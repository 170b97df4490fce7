# Copies of messages whose first copy is not durable yet.

cimport cython
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.history cimport DuplicateHistory, Identity
from msmq_fast._native.window cimport ReceiveWindow


@cython.final
cdef class Repetition(CommitListener):
    """A copy shares the fate of the first one, whichever batch tells of that."""
    cdef DuplicateHistory _history
    cdef ReceiveWindow _window
    cdef Identity _identity
