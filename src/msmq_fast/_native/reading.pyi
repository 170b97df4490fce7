"""Types of how messages are read; see src/_native/reading.pyx."""

from msmq_fast._native.batch import CommitListener

class Delivery(CommitListener): ...
