"""Deletes outgoing queues that have been idle for a long time.

A later message for the same destination creates a new queue. Its transactional sequence has a greater
identifier than all earlier sequences, so that the receiver treats it as a new one.
"""

from __future__ import annotations

import logging

from msmq_fast.qm.outgoing.answers import AnswerQueues
from msmq_fast.qm.outgoing.queues import OutgoingQueues
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import QueueState
from msmq_fast.qm.services import Services

_log = logging.getLogger(__name__)
_LOOKS = 8  # rounds during the idle time of a queue
_SOONEST, _LATEST = 1.0, 600.0  # seconds between two rounds
_TURN = 500  # queues that one turn of the loop examines
ANSWERS_IDLE = 300.0
"""Maximum idle time, in seconds, of a queue that only answers use."""


class IdleQueueCleanup:
    """Deletes outgoing queues that are not active (Q-20) and to which no message was sent for `idle` seconds.
    If `idle` is 0, deletes only idle queues for answers.

    Implements `Timed`.
    """

    def __init__(
        self, services: Services, outgoing: OutgoingQueues, answers: AnswerQueues, idle: float
    ) -> None:
        self._services = services
        self._outgoing = outgoing
        self._answers = answers
        self._idle = idle
        shortest = min(idle or ANSWERS_IDLE, ANSWERS_IDLE)
        self._every = min(max(shortest / _LOOKS, _SOONEST), _LATEST)
        self._round: list[OutgoingQueue] = []  # those that are still to be looked at
        self._due = services.monotonic() + self._every
        self._quiet: dict[OutgoingQueue, tuple[int, float]] = {}  # (messages that came, since when)
        outgoing.removed.connect(self._forget)

    def _forget(self, queue: OutgoingQueue) -> None:
        self._quiet.pop(queue, None)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None if there is nothing to examine."""
        wanted = self._idle or len(self._answers)
        return self._due if wanted and self._outgoing.all else None

    def expire(self, now: float) -> None:
        """If `next_deadline` has passed, examine the next batch of the outgoing queues, and delete those that
        were idle for too long.
        """
        if now < self._due:
            return
        if not self._round:
            self._round = list(self._outgoing.all)
        turn, self._round = self._round[-_TURN:], self._round[:-_TURN]
        for queue in turn:
            if queue.state is not QueueState.EXISTING:
                continue
            try:
                self._look(queue, now)
            except Exception as error:
                self._quiet.pop(queue, None)
                self._services.faults.note("an idle outgoing queue", error)
        self._due = now if self._round else now + self._every

    def _look(self, queue: OutgoingQueue, now: float) -> None:
        idle = self._idle
        if queue.answers_only:
            idle = min(idle or ANSWERS_IDLE, ANSWERS_IDLE)
        came, since = self._quiet.get(queue, (-1, now))
        if not idle or self._outgoing.hindrance(queue):
            self._quiet.pop(queue, None)
        elif came != queue.core.arrived_total:
            self._quiet[queue] = (queue.core.arrived_total, now)
        elif now - since >= idle:
            level = logging.DEBUG if queue.answers_only else logging.INFO
            _log.log(level, "outgoing queue %s was idle and is deleted", queue.name)
            self._outgoing.delete(queue)
