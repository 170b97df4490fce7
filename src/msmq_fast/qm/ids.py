"""Numbers that are never reused: message ordinals, queue ordinals, private queue numbers (8.2 #3, DU-18)."""

from __future__ import annotations

from msmq_fast._native.counter import Counter
from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.qm.records import Records

MESSAGE_BLOCK = 1 << 20
QUEUE_BLOCK = 1 << 12


class Ordinals(Counter):
    """A counter whose blocks are reserved in the store ahead of their use.

    A number is assigned only when the reservation of its block is durable; after a crash the rest of the
    block is lost. The counter is incremented before a number is assigned (AMB-43), so that 0 is never
    assigned. A counter that is not in the store yet begins at `first` + 1. With `wraps`, the counter starts
    over at 1 after 2^32 - 1, as the ordinals of message identifiers do.
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
        """Reserve the next block in the current batch: `block` numbers beyond the present limit, or beyond
        the last assigned number plus `ahead` if that is greater.
        """
        limit = max(self.limit, self.last + ahead) + self.block
        done = self._records.unit(lambda: self._records.set_meta(self._name, limit))
        self._under_way = True

        def durable(failed: bool) -> None:
            self._under_way = False
            if not failed:
                self.limit = limit

        done.add_done_callback(lambda done: durable(done.exception() is not None))

    def reserve_more(self, count: int) -> None:
        """Reserve the next block for `count` numbers that are needed, unless a reservation is pending."""
        if not self._under_way:
            self.reserve(count)

    def exhausted(self) -> InsufficientResources:
        """Returns the error for a counter that has no reserved numbers left, because they are used faster
        than the store reserves them.
        """
        return InsufficientResources("no free numbers are reserved, because the store is too slow; try again")
