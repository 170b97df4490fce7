"""Writes the records of queues to the store immediately, and retries writes that the store rejects."""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast._native.tables import StoreError
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.services import Services
from msmq_fast.store.completion import Completion

__all__ = ["RETRY", "QueueRecords"]

RETRY = 1.0  # seconds until a failed write is retried
_AT_ONCE = 0.0


class QueueRecords:
    """Writes queue records. Implements `Timed`: `expire` retries failed writes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._writer = services.store.writer
        self._unwritten: dict[int, Queue] = {}
        self._writing: dict[int, Queue] = {}  # records on their way
        self._due = _AT_ONCE

    def write(self, queue: Queue) -> Completion[None]:
        """Write the record of a queue; resolved when durable. A failed write is retried until it succeeds.

        Raises StoreError or MemoryError if the store cannot accept the write now; the write is retried in
        that case, too.
        """
        try:
            done = self.write_new(queue)
        except (StoreError, MemoryError):
            self._unwritten[queue.ordinal] = queue
            raise
        self.repeat(queue)
        return done

    def repeat(self, queue: Queue) -> None:
        """Write the record of a queue again if the current unit, which contains the record, is rolled
        back.
        """
        self._writer.on_roll_back(lambda: self._unwritten.setdefault(queue.ordinal, queue))

    def write_new(self, queue: Queue, also: Callable[[], None] = lambda: None) -> Completion[None]:
        """Write the record of a queue that is registered afterwards. `also` is called in the same unit to
        write more.

        If this raises, nothing is stored or retried: the queue does not exist.
        """
        records = self._services.records

        def fill() -> None:
            records.set_queue(queue.ordinal, queue.record())
            also()

        done = records.unit(fill)
        self._writer.on_roll_back(lambda: self._writing.pop(queue.ordinal, None))
        self._unwritten.pop(queue.ordinal, None)
        self._writing[queue.ordinal] = queue

        def written(done: Completion[None]) -> None:
            self._writing.pop(queue.ordinal, None)
            if done.exception() is not None:
                self._unwritten[queue.ordinal] = queue
                self._failed()

        done.add_done_callback(written)
        return done

    def before_submit(self) -> None:
        """Add the records whose earlier write has failed to a batch that will be submitted.

        So the record of an outgoing queue is stored no later than its messages (DU-02).
        """
        if self._unwritten and self._writer.needs_commit:
            self._write_again()

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        return self._due if self._unwritten else None

    def expire(self, now: float) -> None:
        """Retry the failed writes."""
        if self._unwritten and now >= self._due:
            self._write_again()

    def _write_again(self) -> None:
        for queue in list(self._unwritten.values()):
            try:
                self.write(queue)
            except (StoreError, MemoryError):
                self._failed()
                return  # the store rejects the others too; all are retried later
            except Exception as error:
                # Trying that again would fail again, and before every commit.
                self._unwritten.pop(queue.ordinal, None)
                self._services.report_corrupt(
                    "queue", f"the record of the queue {queue.name} cannot be written"
                )
                self._services.faults.note("the record of a queue", error)

    def _failed(self) -> None:
        self._due = self._services.monotonic() + RETRY
