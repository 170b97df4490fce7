"""Poison messages: a message that transactions have returned too often is moved to the subqueue `poison`
(X-70 … X-73).

Applies only to queues with the property `poison_after`. Poison messages are never discarded: programs read
them from the subqueue, or move them back.
"""

from __future__ import annotations

import logging
from array import array

from msmq_fast._native.moving import keep_counts, move_locked
from msmq_fast._native.positions import PositionState
from msmq_fast._native.queue import QueueCore
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.queues.subqueue import Subqueues
from msmq_fast.qm.services import Services

POISON = "poison"
OWNER_POISON = 5  # Owner of the native queue

_log = logging.getLogger(__name__)


class PoisonHandling:
    """Moves messages whose number of aborts exceeds the limit. The ledger reports these messages; they stay
    locked until they are moved.
    """

    def __init__(self, services: Services, registry: QueueRegistry, subqueues: Subqueues) -> None:
        self._services = services
        self._registry = registry
        self._subqueues = subqueues
        self.moved = 0

    def poisoned(self, ordinal: int, keys: list[int]) -> None:
        """Move messages that were returned too often; see `LedgerOwner.poisoned`."""
        queue = self._registry.by_ordinal(ordinal)
        if queue is None:
            return
        core = queue.core
        try:
            target = self._subqueues.make(queue, POISON)
        except Exception as error:
            if isinstance(error, MSMQError):
                _log.error("%s: poison messages were not moved: %s", queue.name, error)
            else:
                self._services.faults.note("a poison subqueue", error)
            core.release(array("Q", keys), OWNER_POISON)
            return
        # A purge in the meantime takes precedence over the move.
        moving: list[int] = []
        purged = array("Q")
        for key in keys:
            (moving if core.positions.state(key) == PositionState.STATE_LOCKED else purged).append(key)
        core.release(purged, OWNER_POISON)
        moved, lost = self._move(core, moving, target.core)
        core.release(lost, OWNER_POISON)
        if lost:
            _log.error(
                "%s: %d poison messages were not moved: the store has no record of them",
                queue.name,
                len(lost),
            )
        if moved:
            _log.warning("%s: %d messages moved to %s after too many aborts", queue.name, moved, target.name)

    def _move(self, core: QueueCore, keys: list[int], target: QueueCore) -> tuple[int, array[int]]:
        """Move messages to the core `target`; returns (number of moved messages, keys of those that have no
        record in the store).
        """
        moved, lost, stuck = 0, array("Q"), array("Q")
        with self._services.store.writer.unit() as writer:
            for key in keys:
                try:
                    with writer.unit():
                        moved += move_locked(core, key, OWNER_POISON, target)
                except ValueError:
                    lost.append(key)
                except Exception as error:
                    self._services.faults.note("a poison message", error)
                    stuck.append(key)
        core.release(stuck, OWNER_POISON)
        keep_counts(core, stuck)
        self.moved += moved
        return moved, lost
