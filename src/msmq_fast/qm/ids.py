"""Numbers that are never given out twice: message ordinals, queue ordinals, private queue numbers (8.2
#3, DU-18).
"""

from __future__ import annotations

from msmq_fast.qm.records import Records

BLOCK = 1 << 16


class Ordinals:
    """A counter whose blocks are reserved in the store ahead of their use.

    The rest of a block is lost at a restart. The counter is incremented before it is used (AMB-43), so that 0
    is never given out. `wraps` is for the 32-bit ordinals of message identifiers, which start over at 1.
    """

    def __init__(
        self, records: Records, name: bytes, *, first: int = 0, block: int = BLOCK, wraps: bool = False
    ) -> None:
        self._records = records
        self._name = name
        self._block = block
        self._wraps = wraps
        stored = records.meta(name)
        self.last = first if stored is None else max(first, int(stored))
        self._limit = self.last

    def reserve(self) -> None:
        """Put the reservation of the next block into the current batch.

        Recoverable use of it may follow at once.
        """
        self._limit = self._limit + self._block
        self._records.set_meta(self._name, self._limit)

    def take(self, count: int = 1) -> int:
        """Give out `count` consecutive numbers; returns the first."""
        if self._wraps and (self.last & 0xFFFFFFFF) + count > 0xFFFFFFFF:
            self.last = (self.last | 0xFFFFFFFF) + 1
        first = self.last + 1
        self.last += count
        while self.last + self._block // 2 > self._limit:
            self.reserve()
        return first & 0xFFFFFFFF if self._wraps else first
