"""The progress of an operator's long jobs, such as an import.

The progress of each step is written in the same atomic unit of the store as the messages of that step. So a
job can be interrupted at any point, and resumes without skipping or repeating a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.records import Records
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName

JOB_SIZE: Final = 16  # bytes of the name of a job


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job.

    `done`: the number of processed records of an import, or the arrival sequence up to which messages were
    copied. `upto`: the arrival sequence at which a copy ends. `target`: GUID, as on the wire, of the queue to
    which the latest messages were added.
    """

    done: int = 0
    upto: int = 0
    target: bytes = b""


def check_job(job: bytes) -> None:
    """Raises INVALID_PARAMETER if the bytes are not a valid job name."""
    if len(job) != JOB_SIZE:
        raise InvalidParameter(f"the name of a job must have {JOB_SIZE} bytes")


class Jobs:
    """The progress records of one queue manager. A client identifies a job by 16 bytes that it chooses.

    `importing` has the names of the import jobs that connections are running.
    """

    def __init__(self, records: Records, registry: QueueRegistry) -> None:
        self._records = records
        self._registry = registry
        self.importing: set[bytes] = set()

    def find(self, job: bytes) -> Completion[Progress]:
        """Returns a completion that is resolved with the progress of a job, once all pending units are
        durable or have failed.

        Raises INVALID_PARAMETER for an invalid job name. If the target queue of a job was deleted, the job
        starts from the beginning, because its messages were deleted with the queue.
        """
        check_job(job)
        # After this barrier, all changes of earlier connections are durable or have failed.
        return self._records.unit(lambda: None).then(lambda _: Completion.of(self._load(job)))

    def _load(self, job: bytes) -> Progress:
        stored = self._records.meta(MetaName.JOB + job)
        if not isinstance(stored, list) or [type(value) for value in stored] != [int, int, bytes]:
            return Progress()
        progress = Progress(*stored)
        targets = (queue.guid.bytes_le for queue in self._registry.queues())
        return progress if progress.target in targets else Progress()

    def advance(self, job: bytes, progress: Progress) -> None:
        """Write the progress of a job in the current unit."""
        self._records.set_meta(MetaName.JOB + job, [progress.done, progress.upto, progress.target])

    def end(self, job: bytes) -> None:
        """Delete, in the current unit, the progress of a job that is complete or starts again."""
        self._records.delete_meta(MetaName.JOB + job)
