"""Imports messages from a file into a queue. They keep their identifiers, arrival times, abort counts and
move counts.
"""

from __future__ import annotations

from msmq_fast._native.operations import Identifiers, is_transactional, place
from msmq_fast._native.queue import TAKEN
from msmq_fast.protocol.errors import InvalidParameter, MSMQError, QueueDeleted, SharingViolation
from msmq_fast.qm.handles.handle import refusal
from msmq_fast.qm.operator.jobs import Jobs, Progress
from msmq_fast.qm.operator.relocation import takes_one_kind, wrong_kind
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueState
from msmq_fast.qm.records import stored
from msmq_fast.qm.services import Services
from msmq_fast.store.completion import Completion

# Packet, arrival in Unix microseconds, abort count, move count, why it is a dead letter or 0.
Entry = tuple[bytes, int, int, int, int]


class Import:
    """One import over one connection. Records are numbered from the start of the file, across all its queues.

    Each `put` is one unit, which also stores the progress of the import. Call `close` when the connection
    ends.
    """

    def __init__(self, services: Services, jobs: Jobs, job: bytes) -> None:
        """Raises SHARING_VIOLATION if another connection is running the import `job`."""
        if job in jobs.importing:
            raise SharingViolation("another connection is already running this import")
        self.done = 0
        self._store = services.store
        self._ledger = services.ledger
        self._jobs = jobs
        self._job = job
        self._begun = False
        self._closed = False
        self._identifiers: tuple[Queue, Identifiers] | None = None  # of the queue of the latest record
        jobs.importing.add(job)

    def begin(self, *, anew: bool) -> Completion[int]:
        """Begin or resume the import. Resolved with the number of records that an earlier attempt has
        processed, or with 0 if the import starts `anew`.
        """

        def found(progress: Progress) -> Completion[int]:
            self.done = 0 if anew else progress.done
            self._begun = True
            return Completion.of(self.done)

        return self._jobs.find(self._job).then(found)

    def close(self) -> None:
        """End the import on this connection; another connection may then resume it."""
        if not self._closed:
            self._closed = True
            self._identifiers = None
            self._jobs.importing.discard(self._job)

    def put(
        self, queue: Queue | None, first: int, entries: list[Entry], *, skip: bool, last: bool
    ) -> Completion[tuple[int, int]]:
        """Import the records `entries`, which have the numbers from `first` on; resolved with (number
        imported, number skipped) when they are durable.

        With `skip`, messages whose identifier is already in the queue are skipped; otherwise they are
        refused. With `last`, the stored progress is deleted. If a record is refused, the records before it
        are imported, the completion fails with the refusal, and the import ends. `queue` may be None if
        `entries` is empty. Raises, or fails with, INVALID_PARAMETER for a record out of order, a record that
        is not a message, or a queue that does not accept imports; QUEUE_DELETED; INSUFFICIENT_RESOURCES
        (quota); TRANSACTION_USAGE.
        """
        if not self._begun or self._closed or first != self.done:
            raise InvalidParameter(f"the next record of this import is {self.done}, not {first}")
        if queue is None:
            if entries:
                raise InvalidParameter("the import file has messages before its first queue")
            return self._finish(None, [], [], 0, None, last=last)
        if queue.kind is QueueKind.OUTGOING:
            raise InvalidParameter("messages cannot be imported into an outgoing queue")
        if queue.state is not QueueState.EXISTING:
            raise QueueDeleted("the queue was deleted")
        identifiers = self._known(queue)
        chosen: list[Entry] = []
        numbers: list[int] = []  # of the records chosen
        refused: tuple[int, MSMQError] | None = None
        now_us = self._ledger.now_us
        for number, (packet, arrived_us, aborts, moves, reason) in enumerate(entries):
            problem = _judge(packet, queue, identifiers, first + number, skip=skip)
            if problem is not None:
                refused = (number, problem)
                break
            if identifiers.add(packet):
                chosen.append((packet, min(arrived_us, now_us), aborts, moves, reason))
                numbers.append(number)
        if refused is not None and refused[0] == 0:
            self.close()
            raise refused[1]
        return self._finish(queue, chosen, numbers, len(entries), refused, last=last)

    def _known(self, queue: Queue) -> Identifiers:
        if self._identifiers is None or self._identifiers[0] is not queue:
            self._identifiers = (queue, Identifiers(queue.core))
        return self._identifiers[1]

    def _finish(
        self,
        queue: Queue | None,
        chosen: list[Entry],
        numbers: list[int],
        count: int,
        refused: tuple[int, MSMQError] | None,
        *,
        last: bool,
    ) -> Completion[tuple[int, int]]:
        completion: Completion[tuple[int, int]] = Completion()
        try:
            with self._store.writer.unit():
                results = [] if queue is None else place(queue.core, chosen)
                if results and results[-1] not in TAKEN:
                    refused = (numbers[len(results) - 1], refusal(results.pop()))
                taken = len(results)
                handled = count if refused is None else refused[0]
                if last and refused is None:
                    self._jobs.end(self._job)
                elif queue is not None:
                    self._jobs.advance(self._job, Progress(self.done + handled, 0, queue.guid.bytes_le))

                def durable(status: int) -> None:
                    if status:
                        # Counted messages are missing: only a new attempt can find where to continue.
                        self.close()
                    if refused is not None and not status:
                        completion.fail(refused[1])
                    else:
                        stored(completion, status, (taken, handled - taken))

                self._store.writer.when_durable(durable)
                self.done += handled
        except BaseException:
            self.close()  # identifiers of messages that were not enqueued have been noted
            raise
        if refused is not None:
            # Identifiers of records behind the refused one may have been noted.
            self.close()
        return completion


def _judge(
    packet: bytes, queue: Queue, identifiers: Identifiers, number: int, *, skip: bool
) -> MSMQError | None:
    """Returns the error for a record that cannot be imported; None if it can be imported."""
    try:
        transactional = is_transactional(packet)
    except ValueError as error:
        return InvalidParameter(f"record {number}: {error}")
    if transactional != queue.transactional and takes_one_kind(queue):
        return wrong_kind(queue)
    if not skip and packet in identifiers:
        return InvalidParameter(
            f"record {number}: {queue.name} holds a message with this identifier: skip existing ones, or "
            "choose another queue"
        )
    return None
