"""Types of the methods that read messages; see src/_native/reading.pyx."""

from msmq_fast._native.batch import CommitListener

class Delivery(CommitListener): ...
