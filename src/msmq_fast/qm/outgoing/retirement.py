"""Outgoing queues that nobody needs any more go: by themselves when they have been quiet for long, or when an
administrator says so.

A message for the same destination makes a new one. Its transactional sequence has a greater identifier than
every sequence before, so that its receiver begins anew with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msmq_fast.packet.errors import SharingViolation
from msmq_fast.qm.queues.outgoing import OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queue import QueueState
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

_log = logging.getLogger(__name__)
_LOOKS = 8  # in the time after which a queue goes
_SOONEST, _LATEST = 1.0, 600.0  # seconds between two looks
_TURN = 500  # queues that are looked at in one turn of the loop
ANSWERS_IDLE = 300.0
"""Seconds after which a queue goes that only answers opened, at the latest."""


class Retirement:
    """`idle`: seconds after which an outgoing queue goes that is not active (Q-20) and in which nothing
    happened; 0: never. `on_retired` is told of each queue that has gone.
    """

    def __init__(self, manager: QueueManager, idle: float) -> None:
        self._manager = manager
        self._idle = idle
        shortest = min(idle or ANSWERS_IDLE, ANSWERS_IDLE)
        self._every = min(max(shortest / _LOOKS, _SOONEST), _LATEST)
        self._round: list[OutgoingQueue] = []  # those that are still to be looked at
        self._due = manager.monotonic() + self._every
        self._quiet: dict[OutgoingQueue, tuple[int, float]] = {}  # (messages that came, since when)
        self.on_retired: Callable[[OutgoingQueue], None] | None = None

    def hindrance(self, queue: OutgoingQueue) -> str:
        """Why a queue stays; empty if it may go."""
        core = queue.core
        if queue.descriptors:
            return "it is open"
        if core.positions.live or core.used_bytes or self._manager.ledger.returned:
            return "messages are in it"
        if queue.outgoing_state is OutgoingState.ON_HOLD:
            return "it is on hold"
        if queue in self._manager.purging:
            return "it is being purged"
        return ""

    def retire(self, queue: OutgoingQueue) -> Completion[None]:
        """Delete an outgoing queue that nobody needs; resolved when it does not come back (DU-09).

        SHARING_VIOLATION: it is in use.
        """
        reason = self.hindrance(queue)
        if reason:
            raise SharingViolation(f"{queue.name} cannot be deleted: {reason}")
        return self.discard(queue)

    def discard(self, queue: OutgoingQueue) -> Completion[None]:
        """Delete an outgoing queue with what is in it."""
        queue.state = QueueState.DELETING
        try:
            done = self._manager.write(queue)
        except Exception:
            queue.state = QueueState.EXISTING
            raise
        self._manager.remove_outgoing(queue)
        self._quiet.pop(queue, None)
        if self.on_retired is not None:
            self.on_retired(queue)
        return done

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due."""
        wanted = self._idle or len(self._manager.answer_queues)
        return self._due if wanted and any(True for _ in self._manager.outgoing()) else None

    def expire(self, now: float) -> None:
        """Look through the outgoing queues if it is time."""
        if now < self._due:
            return
        if not self._round:
            self._round = list(self._manager.outgoing())
        turn, self._round = self._round[-_TURN:], self._round[:-_TURN]
        for queue in turn:
            if queue.state is not QueueState.EXISTING:
                continue
            try:
                self._look(queue, now)
            except Exception as error:
                self._quiet.pop(queue, None)
                self._manager.faults.note("an idle outgoing queue", error)
        self._due = now if self._round else now + self._every

    def _look(self, queue: OutgoingQueue, now: float) -> None:
        idle = self._idle
        if queue.answers_only:
            idle = min(idle or ANSWERS_IDLE, ANSWERS_IDLE)
        came, since = self._quiet.get(queue, (-1, now))
        if not idle or self.hindrance(queue):
            self._quiet.pop(queue, None)
        elif came != queue.core.arrived_total:
            self._quiet[queue] = (queue.core.arrived_total, now)
        elif now - since >= idle:
            level = logging.DEBUG if queue.answers_only else logging.INFO
            _log.log(level, "outgoing queue %s has been empty for long and goes", queue.name)
            self.retire(queue)
