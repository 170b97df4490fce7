"""How far long work of an operator got: written in the units that do the work, so that it can be interrupted
anywhere and goes on without a gap and without a repetition.
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
    """`done`: records imported, or the arrival sequence up to which was copied; `upto`: where a copy ends.
    `target` is the GUID of the queue that got the latest messages, as on the wire.
    """

    done: int = 0
    upto: int = 0
    target: bytes = b""


def check_job(job: bytes) -> None:
    """Raises INVALID_PARAMETER for what cannot be the name of a job."""
    if len(job) != JOB_SIZE:
        raise InvalidParameter(f"the name of a job has {JOB_SIZE} bytes")


class Jobs:
    """Progress records of one queue manager. A job is named by 16 bytes that its client makes.

    `importing` are the jobs of imports that connections work on.
    """

    def __init__(self, records: Records, registry: QueueRegistry) -> None:
        self._records = records
        self._registry = registry
        self.importing: set[bytes] = set()

    def find(self, job: bytes) -> Completion[Progress]:
        """Returns the progress of a job, which nothing changes meanwhile. Raises INVALID_PARAMETER.

        A job whose target was deleted meanwhile begins anew: what it had brought there is gone.
        """
        check_job(job)
        # Behind this barrier, what earlier connections began is durable or has failed.
        return self._records.unit(lambda: None).then(lambda _: Completion.of(self._load(job)))

    def _load(self, job: bytes) -> Progress:
        stored = self._records.meta(MetaName.JOB + job)
        if not isinstance(stored, list) or [type(value) for value in stored] != [int, int, bytes]:
            return Progress()
        progress = Progress(*stored)
        targets = (queue.guid.bytes_le for queue in self._registry.queues())
        return progress if progress.target in targets else Progress()

    def advance(self, job: bytes, progress: Progress) -> None:
        """Write progress with the current unit."""
        self._records.set_meta(MetaName.JOB + job, [progress.done, progress.upto, progress.target])

    def end(self, job: bytes) -> None:
        """With the current unit, forget a job that is complete or to be begun anew."""
        self._records.delete_meta(MetaName.JOB + job)
