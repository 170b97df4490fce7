"""APDUs that wait to be sent, cut into fragments (RFC 3208, 9.2)."""

from __future__ import annotations

from collections import deque

from msmq_fast.srmp.pgm.options import Fragment
from msmq_fast.srmp.pgm.settings import FRAGMENT_OPTIONS


class Outbox:
    """The queue of APDUs. `size` is the number of octets that `take` has not yet returned."""

    def __init__(self, fragment_bytes: int) -> None:
        """`fragment_bytes`: the maximum number of data octets in a packet with OPT_FRAGMENT. A packet without
        OPT_FRAGMENT may hold more data: the octets that the option would need.
        """
        self._fragment_bytes = fragment_bytes
        self._queue: deque[tuple[int, bytes]] = deque()
        self._offset = 0
        self._first = 0
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    def put(self, handle: int, apdu: bytes) -> None:
        self._queue.append((handle, apdu))
        self.size += len(apdu)

    def clear(self) -> None:
        self._queue.clear()
        self._offset = self.size = 0

    def next_size(self) -> int:
        """Return the number of octets of the next packet's data, plus those of OPT_FRAGMENT if the packet
        needs this option. Call only if the queue is not empty.
        """
        data = self._next_data()
        return data if data == len(self._queue[0][1]) else data + FRAGMENT_OPTIONS

    def take(self, sequence: int) -> tuple[bytes, Fragment | None, int | None]:
        """Return (data, fragment, handle) of the next packet, which gets this sequence number.

        The fragment is None if the packet holds a whole APDU; the handle is that of the APDU if the APDU ends
        with this packet, otherwise None.
        """
        handle, apdu = self._queue[0]
        size = self._next_data()
        self.size -= size
        if size == len(apdu):
            self._queue.popleft()
            return apdu, None, handle
        if not self._offset:
            self._first = sequence
        data = apdu[self._offset : self._offset + size]
        fragment = Fragment(self._first, self._offset, len(apdu))
        self._offset += size
        if self._offset < len(apdu):
            return data, fragment, None
        self._queue.popleft()
        self._offset = 0
        return data, fragment, handle

    def _next_data(self) -> int:
        left = len(self._queue[0][1]) - self._offset
        if not self._offset and left <= self._fragment_bytes + FRAGMENT_OPTIONS:
            return left
        return min(left, self._fragment_bytes)
