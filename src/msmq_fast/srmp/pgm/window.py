"""The transmit window: what has been sent and can still be repaired (RFC 3208, 3.3 and 16)."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from msmq_fast.srmp.pgm.options import Fragment


class Kept(NamedTuple):
    """One data packet of the window."""

    sent_at: float
    data: bytes
    fragment: Fragment | None
    size: int
    """Octets of its IP datagram."""


class TransmitWindow:
    """The packets with the numbers `trail` to `lead`. The numbers do not wrap.

    The window is empty if `lead == trail - 1`.
    """

    def __init__(self, first: int, *, limit: int) -> None:
        self.trail = first
        self.lead = first - 1
        self._limit = limit
        self._bytes = 0
        self._kept: dict[int, Kept] = {}

    def __contains__(self, sequence: int) -> bool:
        return self.trail <= sequence <= self.lead

    def __len__(self) -> int:
        return self.lead - self.trail + 1

    @property
    def size(self) -> int:
        """Number of octets in the window."""
        return self._bytes

    def packet(self, sequence: int) -> Kept:
        """Return a packet. Raises KeyError if it is not in the window."""
        return self._kept[sequence]

    def append(self, packet: Kept) -> int:
        """Add the packet that was just sent; return its sequence number."""
        self.lead += 1
        self._kept[self.lead] = packet
        self._bytes += packet.size
        return self.lead

    def has_room(self, size: int) -> bool:
        return not self._kept or self._bytes + size <= self._limit

    def advance(self, sent_before: float, pending: Container[int]) -> None:
        """Drop the oldest packets that were sent at `sent_before` or earlier. Stop at a packet whose number
        is in `pending`: it must still be repaired.
        """
        while self._kept and self.trail not in pending and self._kept[self.trail].sent_at <= sent_before:
            self._drop()

    def make_room(self, size: int, pending: Container[int]) -> bool:
        """Drop the oldest packets until a new packet of `size` octets fits. Return False if this would drop a
        packet whose number is in `pending`: it must still be repaired.
        """
        while not self.has_room(size):
            if self.trail in pending:
                return False
            self._drop()
        return True

    def _drop(self) -> None:
        self._bytes -= self._kept.pop(self.trail).size
        self.trail += 1
