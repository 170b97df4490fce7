"""Types of the ledger of all queues; see src/_native/ledger.pyx. They stand in the stub of the queue, since
a ledger gives queues, and a queue its ledger.
"""

from msmq_fast._native.queue import Ledger as Ledger
from msmq_fast._native.queue import LedgerOwner as LedgerOwner
