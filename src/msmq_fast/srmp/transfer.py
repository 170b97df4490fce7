"""Sends messages by HTTP: decides when a queue needs a connection, what it sends, and what an answer means
(MC-MQSRM 3.1.2, 3.1.6, 3.1.7.2.5 … 3.1.7.9).

Each outgoing queue has at most one request under way. The connections belong to a pool, which may use one
connection for several queues in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Generic, TypeVar

from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.faults import for_each
from msmq_fast.srmp.channel import HttpChannel
from msmq_fast.srmp.endpoint import Endpoint, Progress

__all__ = [
    "Close",
    "Drop",
    "Effect",
    "Reach",
    "Stage",
    "Timers",
    "Transfer",
]

_LEAST_OFTEN = 7  # doublings of the time until receipts are sent again

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Timers:
    """The durations of the timers, in seconds."""

    retransmission: float = 20.0  # after a failure (3.1.2.1)
    cleanup: float = 300.0  # a connection is closed that nothing was sent on (3.1.2.4)
    response: float = 60.0  # an answer may take, from the moment its request is written


@dataclass(frozen=True, slots=True)
class Reach:
    """Requests a connection. The pool answers with `Transfer.opened` or `Transfer.failed`."""

    number: int
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class Drop:
    """Withdraws the request for a connection; closes the connection if one is in use."""

    number: int


@dataclass(frozen=True, slots=True)
class Close:
    """Closes the idle connections to an endpoint."""

    endpoint: Endpoint


Effect = Reach | Drop | Close


class Stage(Enum):
    """The state of a queue."""

    IDLE = "idle"
    SETTLING = "waiting for a commit"
    REACHING = "waiting for a connection"
    SENDING = "request under way"
    FAILED = "waiting for the Retransmission Timer"


class _Lane(Generic[R]):
    """The state of sending the messages of one outgoing queue."""

    __slots__ = (
        "connected",
        "endpoint",
        "failures",
        "held",
        "number",
        "queue",
        "sent",
        "stage",
        "tried",
        "used",
    )

    def __init__(self, number: int, queue: HttpChannel[R], endpoint: Endpoint) -> None:
        self.number = number
        self.queue = queue
        self.endpoint = endpoint
        self.stage = Stage.IDLE
        self.held = False
        self.connected = False  # State Connected
        self.used = 0.0  # when the Session Cleanup Timer was started
        self.sent = 0.0  # when the request under way was written
        self.tried = 0.0  # when its turn began
        self.failures = 0  # since the last answer


class Transfer(Generic[R]):
    """Sends the messages of all outgoing HTTP queues. `on_effect` is called with each action that needs
    sockets: Reach, Drop or Close. Times are monotonic seconds.
    """

    def __init__(self, on_effect: Callable[[Effect], None], timers: Timers) -> None:
        self._on_effect = on_effect
        self._timers = timers
        self._numbers = count(1)
        self._lanes: dict[HttpChannel[R], _Lane[R]] = {}
        self._by_number: dict[int, _Lane[R]] = {}
        self._retries: Deadlines[_Lane[R]] = Deadlines()
        self._watched: Deadlines[_Lane[R]] = Deadlines()  # answers that are due, connections to be cleaned up

    def stage(self, queue: HttpChannel[R]) -> Stage:
        """Returns the state of the transfer of a queue."""
        lane = self._lanes.get(queue)
        return Stage.IDLE if lane is None else lane.stage

    # -------------------------------------------------------------------------------------------- queues

    def submit(self, queue: HttpChannel[R], now: float) -> None:
        """Begin to send the messages of a queue; may be called repeatedly. After a failure, the
        Retransmission Timer decides when the queue tries again.
        """
        lane = self._lanes.get(queue)
        if lane is None:
            lane = _Lane(next(self._numbers), queue, queue.endpoint())
            self._lanes[queue] = lane
            self._by_number[lane.number] = lane
        if lane.stage is Stage.IDLE:
            self._begin(lane, now)

    def hold(self, queue: HttpChannel[R]) -> None:
        """Pause a queue (Pause Queue, 3.1.7.4). The answer to a request under way is still awaited (A-95)."""
        lane = self._lanes.get(queue)
        queue.stop_waiting()
        if lane is None:
            return
        lane.held = True
        self._retries.set(lane, None)
        if lane.stage is not Stage.SENDING:
            self._rest(lane)

    def release(self, queue: HttpChannel[R], now: float) -> None:
        """Resume a queue (Resume Queue, 3.1.7.5)."""
        lane = self._lanes.get(queue)
        if lane is not None:
            lane.held = False
        queue.transmitted(now)
        self.submit(queue, now)

    def kick(self, queue: HttpChannel[R], now: float) -> None:
        """Try again now, without the rest of the Retransmission Timer."""
        lane = self._lanes.get(queue)
        if lane is not None and lane.stage is Stage.FAILED:
            lane.failures = 0
            self._retries.set(lane, now)
        else:
            self.submit(queue, now)

    def withdraw(self, queue: HttpChannel[R]) -> None:
        """Remove a queue that was deleted with all its messages."""
        lane = self._lanes.pop(queue, None)
        if lane is None:
            return
        if lane.stage in (Stage.REACHING, Stage.SENDING):
            self._on_effect(Drop(lane.number))
        self._retries.set(lane, None)
        self._watched.set(lane, None)
        self._by_number.pop(lane.number)

    def _begin(self, lane: _Lane[R], now: float) -> None:
        """Request a connection if there is a message to send."""
        queue = lane.queue
        lane.stage, lane.tried = Stage.IDLE, now
        if lane.held or not queue.waits() or not self._settled(lane):
            return
        lane.stage = Stage.REACHING
        lane.endpoint = queue.endpoint()
        if not lane.connected:
            queue.progress(Progress.IN_PROCESS, "", "")
        self._on_effect(Reach(lane.number, lane.endpoint))

    def _settled(self, lane: _Lane[R]) -> bool:
        lane.stage = Stage.SETTLING
        return lane.queue.may_continue(lambda status: self._settle(lane, status))

    def _settle(self, lane: _Lane[R], status: int) -> None:
        """Let a queue continue after the end of a commit for which the queue waited; `status` is 0 if the
        commit succeeded.

        The commit calls this function, so it only sets a timer. The next call of `expire` lets the queue
        continue; if the commit failed, a call after the Retransmission Timer does.
        """
        if lane.stage is Stage.SETTLING and not lane.held and lane.number in self._by_number:
            self._retries.set(lane, lane.tried + (self._timers.retransmission if status else 0.0))

    # ----------------------------------------------------------------------------------------- connections

    def opened(self, number: int, address: str, now: float) -> R | None:
        """Give the queue with this number the connection that it has requested. Returns the HTTP request to
        write on the connection; None if there is no message to send: then the connection is free again.
        """
        lane = self._by_number.get(number)
        if lane is None or lane.stage is not Stage.REACHING:
            return None
        if not lane.connected:
            lane.connected, lane.used = True, now
            lane.queue.progress(Progress.ESTABLISHED, address, "")
        lane.tried = now
        if not self._settled(lane):
            return None
        request = lane.queue.take()
        if request is None:
            lane.stage = Stage.IDLE
            self._watch(lane, lane.used + self._timers.cleanup)
            return None
        lane.stage, lane.sent = Stage.SENDING, now
        self._watch(lane, now + self._timers.response)
        lane.queue.transmitted(now)
        return request

    def answered(self, number: int, status: int, now: float) -> bool:
        """Process the status of an answer. Returns whether the caller should keep the connection open; in
        this case the caller must then call `proceed`.
        """
        lane = self._by_number.get(number)
        if lane is None or lane.stage is not Stage.SENDING:
            return False
        verdict = judge(status)
        if verdict is None:
            self._fail(lane, Progress.ANSWERED_BADLY, f"HTTP {status}", now)
            return False
        if verdict:
            lane.queue.accepted()
        else:
            lane.queue.rejected()
        lane.stage, lane.used, lane.failures = Stage.IDLE, now, 0
        if self._timers.cleanup < self._timers.response:  # else the look for the answer comes before
            self._watch(lane, now + self._timers.cleanup)
        return not lane.held or self._shared(lane)

    def proceed(self, number: int, now: float) -> None:
        """Send the next message of the queue with this number, since its latest request was answered."""
        lane = self._by_number.get(number)
        if lane is not None and lane.stage is Stage.IDLE:
            if lane.held:
                self._rest(lane)
            else:
                self._begin(lane, now)

    def failed(self, number: int, progress: Progress, detail: str, now: float) -> None:
        """Make the message of the queue with this number available again, and start the Retransmission Timer,
        because no connection could be opened, or the connection was lost before the answer.
        """
        lane = self._by_number.get(number)
        if lane is not None and lane.stage in (Stage.REACHING, Stage.SENDING):
            self._fail(lane, progress, detail, now)

    def _fail(self, lane: _Lane[R], progress: Progress, detail: str, now: float) -> None:
        """Make the message under way available again and start the Retransmission Timer (SR-125, SR-210)."""
        if lane.stage is Stage.SENDING:
            lane.queue.returned()
        lane.queue.stop_waiting()
        lane.connected = False
        lane.queue.progress(progress, lane.endpoint.host, detail)
        if lane.held:
            self._rest(lane)
            return
        lane.stage = Stage.FAILED
        self._watched.set(lane, None)
        wait = self._timers.retransmission
        if (
            lane.endpoint.only is not None
        ):  # a peer named the URL: hosts that are not there are asked less often
            wait *= 1 << min(lane.failures, _LEAST_OFTEN)
        lane.failures += 1
        self._retries.set(lane, now + wait)
        lane.queue.scheduled(wait)

    def _rest(self, lane: _Lane[R]) -> None:
        """Release the connection of a paused queue without a request under way."""
        if lane.stage is Stage.REACHING:
            self._on_effect(Drop(lane.number))
        lane.stage, lane.connected = Stage.IDLE, False
        self._watched.set(lane, None)
        if not self._shared(lane):
            self._on_effect(Close(lane.endpoint))

    def _shared(self, lane: _Lane[R]) -> bool:
        """Return whether another queue is connected to the same endpoint."""
        return any(
            other.connected and other.endpoint == lane.endpoint
            for other in self._lanes.values()
            if other is not lane
        )

    # -------------------------------------------------------------------------------------------- timers

    def _watch(self, lane: _Lane[R], due: float) -> None:
        self._watched.set(lane, due)

    def next_deadline(self) -> float | None:
        """Return the time at which to call `expire`; None if no timer runs."""
        found = (self._retries.next_deadline(), self._watched.next_deadline())
        return min((due for due in found if due is not None), default=None)

    def expire(self, now: float) -> None:
        """Run the timers that are due."""
        try:
            for_each(self._retries.take(now), lambda lane: self._retry(lane, now))
        finally:
            for_each(self._watched.take(now), lambda lane: self._look(lane, now))

    def _retry(self, lane: _Lane[R], now: float) -> None:
        lane.stage = Stage.IDLE
        lane.queue.transmitted(now)
        self._begin(lane, now)

    def _look(self, lane: _Lane[R], now: float) -> None:
        if lane.stage is Stage.SENDING:
            due = lane.sent + self._timers.response
            if due > now:
                self._watch(lane, due)
                return
            self._on_effect(Drop(lane.number))
            self._fail(lane, Progress.NO_ANSWER, f"{self._timers.response:g} seconds", now)
            return
        due = lane.used + self._timers.cleanup
        if lane.stage is not Stage.IDLE or due > now:
            self._watch(lane, max(due, now + 1.0))
        elif lane.connected:
            lane.connected = False
            lane.queue.progress(Progress.CLEANED_UP, "", "")
            if not self._shared(lane):
                self._on_effect(Close(lane.endpoint))


def judge(status: int) -> bool | None:
    """Return the meaning of a status (A-03): True if the receiver has the message, False if it will never
    accept it, None if the message must be sent again.
    """
    if 200 <= status < 300:
        return True
    return False if status in (400, 413) else None
