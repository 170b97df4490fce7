"""Types of copies of messages; see src/_native/repetition.pyx."""

from msmq_fast._native.batch import CommitListener

class Repetition(CommitListener): ...
