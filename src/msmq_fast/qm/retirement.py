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
from msmq_fast.qm.outgoing import OutgoingQueue, OutgoingState
from msmq_fast.qm.queue import QueueState
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

_log = logging.getLogger(__name__)
_LOOKS = 8  # in the time after which a queue goes
_SOONEST, _LATEST = 1.0, 600.0  # seconds between two looks


class Retirement:
    """`idle`: seconds after which an outgoing queue goes that is not active (Q-20) and in which nothing
    happened; 0: never. `on_retired` is told of each queue that has gone.
    """

    def __init__(self, manager: QueueManager, idle: float) -> None:
        self._manager = manager
        self._idle = idle
        self._every = min(max(idle / _LOOKS, _SOONEST), _LATEST)
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
        return self._due if self._idle and any(True for _ in self._manager.outgoing()) else None

    def expire(self, now: float) -> None:
        """Look through the outgoing queues if it is time."""
        if not self._idle or now < self._due:
            return
        self._due = now + self._every
        for queue in list(self._manager.outgoing()):
            came, since = self._quiet.get(queue, (-1, now))
            if self.hindrance(queue):
                self._quiet.pop(queue, None)
            elif came != queue.core.arrived_total:
                self._quiet[queue] = (queue.core.arrived_total, now)
            elif now - since >= self._idle:
                _log.info("outgoing queue %s has been empty for long and goes", queue.name)
                self.retire(queue)
