"""What the queue manager does between the wishes of others: letting go of purged messages in small batches,
and repeating what the store did not keep for lack of space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msmq_fast._native.batch import StoreError
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue

RETRY = 1.0  # seconds after which something is tried again that the store did not keep
AT_ONCE = 0.0


class Housekeeping:
    """Purge markers, records of deleted queues, and queue records that could not be written (DU-08, DU-09).

    A marker is cleared, and the record of a deleted queue goes, only when every removal before is durable.
    """

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._unwritten: dict[int, Queue] = {}
        self._writing: dict[int, Queue] = {}  # records on their way
        self._due = AT_ONCE
        self._barrier = False  # a commit is under way behind which everything removed before is gone
        self._failed = 0  # failed removals seen

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None without work or during a commit of it."""
        ledger = self._manager.ledger
        if ledger.reaping or self._barrier:
            return None
        if ledger.doomed or ledger.returned or self._unwritten or self._manager.reaping or self._purged():
            return self._due
        return None

    def _purged(self) -> list[Queue]:
        """Queues with a marker from which nothing waits to be released any more."""
        return [queue for queue in self._manager.purging if not queue.core.positions.purge_pending]

    def expire(self, now: float) -> None:
        """One batch of what is due."""
        manager = self._manager
        ledger = manager.ledger
        if ledger.reaping or self._barrier or now < self._due:
            return
        self._write_again()
        try:
            if ledger.returned and self._return_again():
                # Another failure is noticed by the commit of this barrier.
                self._wait(self._returned)
            elif ledger.doomed:
                ledger.reap(manager.settings.purge_batch, self._ended)
            elif manager.reaping or self._purged():
                self._failed = ledger.removals.failed
                self._wait(self._everything_is_gone)
            elif ledger.returned:
                self._ended(1)
        except Exception:
            self._ended(1)
            raise

    def _return_again(self) -> bool:
        """Whether all could be given back. One that cannot must not keep what was purged in the store."""
        try:
            self._manager.ledger.return_again()
        except (StoreError, MemoryError):
            raise
        except Exception as error:
            self._manager.faults.note("a message that is given back", error)
            return False
        return True

    def _wait(self, then: Callable[[Completion[None]], None]) -> None:
        """`then` is called when everything of the current batch is durable, or was not kept."""
        done = self._manager.records.unit(lambda: None)
        self._barrier = True
        done.add_done_callback(then)

    def _ended(self, status: int) -> None:
        self._due = self._manager.monotonic() + RETRY if status else AT_ONCE

    def _everything_is_gone(self, done: Completion[None]) -> None:
        manager = self._manager
        self._barrier = False
        if done.exception() is not None:
            self._ended(1)
            return
        if manager.ledger.doomed or manager.ledger.removals.failed != self._failed:
            return
        for queue in self._purged():
            manager.purging.discard(queue)
            queue.purged_to = 0
            try:
                self.write(queue)
            except Exception as error:
                manager.faults.note("the record of a purged queue", error)
        for ordinal in list(manager.reaping):
            try:
                manager.records.delete_queue(ordinal)
                manager.events.names.emptied(ordinal)
            except (StoreError, MemoryError):
                self._ended(1)
                return  # the rest is deleted later
            except Exception as error:
                manager.faults.note("the record of a deleted queue", error)
            manager.reaping.discard(ordinal)

    def _returned(self, done: Completion[None]) -> None:
        self._barrier = False
        self._ended(0 if done.exception() is None else 1)

    # ---- queue records

    def write(self, queue: Queue) -> Completion[None]:
        """Write the record of a queue, now and, if the store does not keep it, again."""
        try:
            done = self.write_new(queue)
        except (StoreError, MemoryError):
            self._unwritten[queue.ordinal] = queue  # the store takes nothing now
            raise
        self.repeat(queue)
        return done

    def repeat(self, queue: Queue) -> None:
        """Write the record of a queue again if the open unit, which has it, is rolled back."""
        self._manager.store.writer.on_roll_back(lambda: self._unwritten.setdefault(queue.ordinal, queue))

    def write_new(self, queue: Queue, also: Callable[[], None] = lambda: None) -> Completion[None]:
        """The same for a queue that is registered afterwards, with what `also` writes in its unit. If this
        raises, nothing is kept or tried again: the queue does not exist.
        """
        records = self._manager.records

        def fill() -> None:
            records.set_queue(queue.ordinal, queue.record())
            also()

        done = records.unit(fill)
        self._manager.store.writer.on_roll_back(lambda: self._writing.pop(queue.ordinal, None))
        self._unwritten.pop(queue.ordinal, None)
        self._writing[queue.ordinal] = queue

        def written(done: Completion[None]) -> None:
            self._writing.pop(queue.ordinal, None)
            if done.exception() is not None:
                self._unwritten[queue.ordinal] = queue
                self._ended(1)

        done.add_done_callback(written)
        return done

    def before_submit(self) -> None:
        """A batch is about to leave: records that could not be written go along.

        So no message of an outgoing queue is kept before the record of its queue (DU-02).
        """
        if self._unwritten and self._manager.store.writer.pressing:
            self._write_again()

    def _write_again(self) -> None:
        for queue in list(self._unwritten.values()):
            try:
                self.write(queue)
            except (StoreError, MemoryError):
                self._ended(1)
                return  # for all of them, and for later
            except Exception as error:
                # Trying that again would fail again, and before every commit.
                self._unwritten.pop(queue.ordinal, None)
                self._manager.set_aside("queue", f"the record of the queue {queue.name} cannot be written")
                self._manager.faults.note("the record of a queue", error)
