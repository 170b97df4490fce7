"""Types of the ledger of all queues; see src/_native/ledger.pyx. They are in the stub of the queue, since
ledger and queue refer to each other.
"""

from msmq_fast._native.queue import Ledger as Ledger
from msmq_fast._native.queue import LedgerOwner as LedgerOwner
