"""Numbers that are never given out twice: message ordinals, queue ordinals, private queue numbers (8.2
#3, DU-18).
"""

from __future__ import annotations

from msmq_fast.packet.errors import InsufficientResources
from msmq_fast.qm.records import Records

MESSAGE_BLOCK = 1 << 20
QUEUE_BLOCK = 1 << 12


class Ordinals:
    """A counter whose blocks are reserved in the store ahead of their use.

    A number is given out only when the reservation of its block is durable; the rest of a block is lost at a
    restart. The counter is incremented before it is used (AMB-43), so that 0 is never given out. A counter
    that the store does not know yet begins behind `first`. `wraps` is for the 32-bit ordinals of message
    identifiers, which start over at 1.
    """

    def __init__(
        self, records: Records, name: bytes, *, first: int = 0, block: int, wraps: bool = False
    ) -> None:
        self._records = records
        self._name = name
        self._block = block
        self._wraps = wraps
        stored = records.meta(name)
        self.last = first if stored is None else int(stored)
        self.limit = self.last  # reserved durably up to here
        self._under_way = False

    def reserve(self, ahead: int = 0) -> None:
        """Put the reservation of the next block, behind `ahead` numbers, into the current batch."""
        limit = max(self.limit, self.last + ahead) + self._block
        done = self._records.unit(lambda: self._records.set_meta(self._name, limit))
        self._under_way = True

        def durable(failed: bool) -> None:
            self._under_way = False
            if not failed:
                self.limit = limit

        done.add_done_callback(lambda done: durable(done.exception() is not None))

    def take(self, count: int = 1) -> int:
        """Give out `count` consecutive numbers; returns the first.

        INSUFFICIENT_RESOURCES: so many are not reserved, since the store does not keep up.
        """
        last = self.last
        if self._wraps and (last & 0xFFFFFFFF) + count > 0xFFFFFFFF:
            last = (last | 0xFFFFFFFF) + 1
        if last + count + self._block // 2 > self.limit and not self._under_way:
            self.reserve(count)
        if last + count > self.limit:
            raise InsufficientResources("no numbers are reserved: the store does not keep up")
        self.last = last + count
        return (last + 1) & 0xFFFFFFFF if self._wraps else last + 1
