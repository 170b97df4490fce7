"""Numbers that are never given out twice: message ordinals, queue ordinals, private queue numbers (8.2
#3, DU-18).
"""

from __future__ import annotations

from msmq_fast._native.counter import Counter
from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.qm.records import Records

MESSAGE_BLOCK = 1 << 20
QUEUE_BLOCK = 1 << 12


class Ordinals(Counter):
    """A counter whose blocks are reserved in the store ahead of their use.

    A number is given out only when the reservation of its block is durable; the rest of a block is lost at a
    restart. The counter is incremented before it is used (AMB-43), so that 0 is never given out. A counter
    that the store does not know yet begins behind `first`. `wraps` is for the 32-bit ordinals of message
    identifiers, which start over at 1.
    """

    def __init__(
        self, records: Records, name: bytes, *, first: int = 0, block: int, wraps: bool = False
    ) -> None:
        stored = records.meta(name)
        super().__init__(first if stored is None else int(stored), block, wraps)
        self._records = records
        self._name = name
        self._under_way = False

    def reserve(self, ahead: int = 0) -> None:
        """Put the reservation of the next block, behind `ahead` numbers, into the current batch."""
        limit = max(self.limit, self.last + ahead) + self.block
        done = self._records.unit(lambda: self._records.set_meta(self._name, limit))
        self._under_way = True

        def durable(failed: bool) -> None:
            self._under_way = False
            if not failed:
                self.limit = limit

        done.add_done_callback(lambda done: durable(done.exception() is not None))

    def reserve_more(self, count: int) -> None:
        """Reserve the next block, unless that is under way."""
        if not self._under_way:
            self.reserve(count)

    def exhausted(self) -> InsufficientResources:
        """The store does not keep up with the numbers that are taken."""
        return InsufficientResources("no numbers are reserved: the store is too slow")
