"""Expires messages (X-04, by the wall clock) and waiting reads (X-03, by the monotonic clock). Each kind has
a timer wheel of its own.
"""

from __future__ import annotations

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.wheel import TimerWheel
from msmq_fast.qm.clock import Clock
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.reading.readers import Readers, ReadRequest, ReadTimer

RECHECK = 30.0  # maximum delay in seconds until a step of the wall clock is noticed


class Expiry:
    """Expires messages and waiting reads whose deadlines have passed. `batch` limits how many messages expire
    in one call.
    """

    def __init__(self, ledger: Ledger, clock: Clock, batch: int, faults: Faults) -> None:
        self._ledger = ledger
        self._clock = clock
        self._batch = batch
        self._faults = faults
        self._reads = TimerWheel(self._milliseconds())
        self._requests: dict[int, tuple[ReadRequest, Readers]] = {}
        self._last = 0
        self._more = False
        self._wall_due: tuple[int, float] | None = None

    def _milliseconds(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def start_read(self, request: ReadRequest, readers: Readers, timeout_ms: int) -> None:
        """End a waiting read after `timeout_ms` milliseconds (DM-231)."""
        self._last += 1
        # Rounded up: a read never ends before its time.
        place = self._reads.add(self._milliseconds() + timeout_ms + 1, self._last)
        request.timer = ReadTimer(self, self._last, place)
        self._requests[self._last] = (request, readers)

    def stop(self, request: ReadRequest) -> None:
        """Stop the timer of a read that has ended or got its message."""
        timer = request.timer
        if timer is not None and self._requests.pop(timer.number, None) is not None:
            self._reads.cancel(timer.place)
        request.timer = None

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        if self._more:
            return self._clock.monotonic()
        due = self._reads.next_deadline()
        read = None if due is None else due / 1000
        message = self._message_deadline()
        if read is None or message is None:
            return message if read is None else read
        return min(read, message)

    def _message_deadline(self) -> float | None:
        wall = self._ledger.next_deadline()
        if wall is None:
            self._wall_due = None
            return None
        if self._wall_due is None or self._wall_due[0] != wall:
            ahead = wall - self._clock.wall_us() / 1e6
            self._wall_due = (wall, self._clock.monotonic() + min(max(ahead, 0.0), RECHECK))
        return self._wall_due[1]

    def expire(self, now: float) -> None:
        """Expire the messages and waiting reads whose deadlines have passed. If one raises, the others expire
        nevertheless.
        """
        self._wall_due = None
        self._more = False
        try:
            self._more = self._ledger.expire(self._batch) >= self._batch
        except Exception as error:
            self._faults.note("an expiring message", error)
        for _, number, _ in self._reads.pop(int(now * 1000)):
            request, readers = self._requests.pop(number)
            request.timer = None
            try:
                readers.time_out(request)
            except Exception as error:
                self._faults.note("a read whose time is over", error)
