"""Background work: deletes purged messages, and the messages and records of deleted queues, in small
batches.
"""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast._native.tables import StoreError
from msmq_fast.qm.audit.trail import AuditTrail
from msmq_fast.qm.feed.eventfeed import EventFeed
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.queuerecords import RETRY, QueueRecords
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.records import followed_by
from msmq_fast.qm.services import Services
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion

AT_ONCE = 0.0


class Housekeeping:
    """Deletes purged messages, the messages of deleted queues, and then purge markers and the records of
    deleted queues (DU-08, DU-09). Implements `Timed`.

    The purge marker of a queue is cleared, or the record of a deleted queue is deleted, only when every
    earlier removal of messages is durable.
    """

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        records: QueueRecords,
        events: EventFeed,
        audit: AuditTrail,
    ) -> None:
        self._services = services
        self._ledger = services.ledger
        self._registry = registry
        self._records = records
        self._events = events
        self._audit = audit
        self._due = AT_ONCE
        self._barrier = False  # a commit is pending that makes all earlier removals durable
        self._failed = 0  # failed removals seen

    def purge(self, queue: Queue, token: Token | None) -> Completion[int]:
        """Purge a queue (DU-08): its messages become invisible immediately. `token` is the caller, None for
        the queue manager itself. The act is audited.

        Resolved with the number of messages once the purge marker is durable. The messages are then deleted
        from the store in small batches.
        """
        self._services.require_ready()
        removed = queue.core.purge()
        queue.purged_to = queue.core.purged_to
        done = self._records.write(queue)
        self._registry.purging.add(queue)
        self._audit.recorded(done, token, "purge", queue.name, f"deleted messages: {removed}")
        return followed_by(done, removed)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None if there is no work, or if the work has to wait
        for a pending commit.
        """
        ledger = self._ledger
        if ledger.reaping or self._barrier:
            return None
        if ledger.pending_deletes or ledger.returned or self._registry.reaping or self._purged():
            return self._due
        return None

    def _purged(self) -> list[Queue]:
        """Returns the queues that have a purge marker but no purged messages left."""
        return [queue for queue in self._registry.purging if not queue.core.positions.purge_pending]

    def expire(self, now: float) -> None:
        """If work is due, do one step of it: return messages to their queues for which the store had no room
        before, or delete one batch of messages, or, for queues whose messages are all deleted, clear the
        purge markers and delete the records.
        """
        ledger = self._ledger
        if ledger.reaping or self._barrier or now < self._due:
            return
        try:
            if ledger.returned and self._return_again():
                # Another failure is noticed by the commit of this barrier.
                self._wait(self._returned)
            elif ledger.pending_deletes:
                ledger.reap(self._services.settings.purge_batch, self._ended)
            elif self._registry.reaping or self._purged():
                self._failed = ledger.removals.failed
                self._wait(self._everything_is_gone)
            elif ledger.returned:
                self._ended(1)
        except Exception:
            self._ended(1)
            raise

    def _return_again(self) -> bool:
        """Try again to return messages to their queues: an earlier attempt failed, because the store had no
        room. Returns False if this attempt raises an unexpected exception, since the exception must not stop
        the deletion of purged messages.
        """
        try:
            self._ledger.return_again()
        except (StoreError, MemoryError):
            raise
        except Exception as error:
            self._services.faults.note("a message that is given back", error)
            return False
        return True

    def _wait(self, then: Callable[[Completion[None]], None]) -> None:
        """Call `then` when everything in the current batch is durable, or has failed."""
        done = self._services.records.unit(lambda: None)
        self._barrier = True
        done.add_done_callback(then)

    def _ended(self, status: int) -> None:
        self._due = self._services.monotonic() + RETRY if status else AT_ONCE

    def _everything_is_gone(self, done: Completion[None]) -> None:
        self._barrier = False
        if done.exception() is not None:
            self._ended(1)
            return
        if self._ledger.pending_deletes or self._ledger.removals.failed != self._failed:
            return
        for queue in self._purged():
            self._registry.purging.discard(queue)
            queue.purged_to = 0
            try:
                self._records.write(queue)
            except Exception as error:
                self._services.faults.note("the record of a purged queue", error)
        for ordinal in list(self._registry.reaping):
            try:
                self._services.records.delete_queue(ordinal)
                self._events.names.emptied(ordinal)
            except (StoreError, MemoryError):
                self._ended(1)
                return  # the rest is deleted later
            except Exception as error:
                self._services.faults.note("the record of a deleted queue", error)
            self._registry.reaping.discard(ordinal)

    def _returned(self, done: Completion[None]) -> None:
        self._barrier = False
        self._ended(0 if done.exception() is None else 1)
