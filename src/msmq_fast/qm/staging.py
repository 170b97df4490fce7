"""Staged publishing: messages are brought in stage by stage, out of sight, and become visible together, exactly
once, when their writer publishes a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msmq_fast.store.completion import Completion


class Fenced(Exception):
    """409 FENCED: a later epoch of the writer has published."""


class StageNotFound(Exception):
    """404 STAGE_NOT_FOUND: there is no such stage (any more)."""


class Staged(NamedTuple):
    """A stage that is durable: `stage` is its name, `bytes` counts stored packets."""

    stage: str
    rows: int
    bytes: int


class Published(NamedTuple):
    """`dup`: the batch, or a later one of the same epoch, had been published before, and nothing happened."""

    dup: bool
    rows: int


class Staging:
    """The stages, writers and publications of a queue manager: `QueueManager.staging`."""

    def publish(
        self, writer: str, epoch: int, batch: int, stages: Sequence[str], *, owner: str = ""
    ) -> Completion[Published]:
        """Make stages visible, in this order; resolved when all of it is durable.

        `epoch` and `batch` are not negative. Raises, or fails with: Fenced; StageNotFound; ValueError (a stage of
        another writer or batch, two attempts of one part, a stage twice); QUEUE_DELETED; ACCESS_DENIED (the writer
        is somebody else's); SERVICE_NOT_AVAILABLE; MESSAGE_STORAGE_FAILED. Then nothing has become visible.
        """
        raise NotImplementedError

    def discard(self, stages: Sequence[str], *, owner: str = "") -> Completion[int]:
        """Forget stages; those that are unknown or being published are passed over. Resolved with how many went."""
        raise NotImplementedError
