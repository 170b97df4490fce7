"""A connection inside the process: two asyncio transports whose ends write to each other without a socket.

1. `write` queues bytes at the writing end; one callback in the next turn of the loop delivers them, so that
   neither protocol is called from inside the other.
2. An end that pauses reading leaves the bytes in the queue of its peer. Above `_HIGH` bytes the writing
   protocol gets `pause_writing`, and `resume_writing` when the queue is below `_LOW`.
3. `close` delivers what is queued first; then both protocols get `connection_lost`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["connect"]

_HIGH: Final = 1 << 20  # bytes queued at one end
_LOW: Final = 1 << 18

Data = bytes | bytearray | memoryview


def connect(
    one: asyncio.Protocol | asyncio.BufferedProtocol,
    other: asyncio.Protocol | asyncio.BufferedProtocol,
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Connect two protocols; each gets its transport before this returns."""
    ends: list[_End] = []
    ends += (_End(one, loop, ends, 1), _End(other, loop, ends, 0))
    one.connection_made(ends[0])
    other.connection_made(ends[1])


class _End(asyncio.Transport):
    def __init__(
        self,
        protocol: asyncio.Protocol | asyncio.BufferedProtocol,
        loop: asyncio.AbstractEventLoop,
        ends: list[_End],
        peer: int,
    ) -> None:
        """`ends` has both ends once they exist; `peer` is the place of the other one."""
        super().__init__()
        self._ends = ends
        self._peer = peer
        self._protocol = protocol
        self._loop = loop
        self._queue: deque[memoryview] = deque()
        self._size = 0
        self._high = _HIGH
        self._full = False
        self._reading = True
        self._closing = False
        self._lost = False
        self._due = False

    @property
    def peer(self) -> _End:
        """The other end."""
        return self._ends[self._peer]

    # ---- the interface of a transport

    def write(self, data: Data) -> None:
        if self._closing or not len(data):
            return
        self._queue.append(memoryview(bytes(data)))  # a copy: the writer may use its buffer again
        self._size += len(data)
        if self._size > self._high and not self._full:
            self._full = True
            self._protocol.pause_writing()
        self._schedule()

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        for data in list_of_data:
            self.write(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _HIGH if high is None else high

    def get_write_buffer_size(self) -> int:
        return self._size

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self.peer._schedule()

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        self._schedule()

    def abort(self) -> None:
        self._queue.clear()
        self._size = 0
        self.close()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    # ---- inside

    def _schedule(self) -> None:
        if not self._due and not self._lost:
            self._due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._due = False
        while self._queue and self.peer._reading and not self.peer._lost:
            data = self._queue.popleft()
            taken = self.peer._take(data)
            self._size -= taken
            if taken < len(data):
                self._queue.appendleft(data[taken:])
        if self._full and self._size < _LOW and not self._closing:
            self._full = False
            self._protocol.resume_writing()
        if self._closing and (not self._queue or self.peer._lost):
            self._end()
            self.peer._end()

    def _take(self, data: memoryview) -> int:
        """Give bytes to the protocol of this end, as many as it reads; returns their number."""
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            self._protocol.data_received(bytes(data))
            return len(data)
        taken = 0
        while taken < len(data) and self._reading and not self._lost:
            room = memoryview(self._protocol.get_buffer(len(data) - taken))
            count = min(len(room), len(data) - taken)
            room[:count] = data[taken : taken + count]
            taken += count
            self._protocol.buffer_updated(count)
        return taken

    def _end(self) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._queue.clear()
            self._size = 0
            self._protocol.connection_lost(None)
