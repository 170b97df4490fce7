"""Predicts in a dry run whether queues have room for the messages of all its batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msmq_fast._native.ledgerbase import EnqueueResult
from msmq_fast.qm.handles.handle import refusal
from msmq_fast.qm.queues.queue import Queue

__all__ = ["MAX_TARGETS", "Plan"]

MAX_TARGETS: Final = 1000


class Plan:
    """The bytes that a dry run would have added to queues up to now, by their ordinals. `earlier` are those
    of the batches before; `frees` tells whether each batch removes its messages from their source, so that
    the computer's quota counts them twice for one batch only. Follows at most MAX_TARGETS queues.
    """

    def __init__(self, earlier: Iterable[tuple[int, int]], *, frees: bool) -> None:
        self.bytes = dict(earlier)
        self._added = 0 if frees else sum(self.bytes.values())

    def add(self, target: Queue, size: int) -> None:
        """Add a message of `size` bytes. Raises INSUFFICIENT_RESOURCES if a quota does not admit it."""
        core = target.core
        held = core.used_bytes + core.sub_bytes - core.moving_bytes + self.bytes.get(core.ordinal, 0)
        if held + size > core.quota_bytes:
            raise refusal(EnqueueResult.QUEUE_QUOTA)
        if core.ledger.bytes + self._added + size > core.ledger.quota_bytes:
            raise refusal(EnqueueResult.MACHINE_QUOTA)
        if core.ordinal in self.bytes or len(self.bytes) < MAX_TARGETS:
            self.bytes[core.ordinal] = self.bytes.get(core.ordinal, 0) + size
        self._added += size
