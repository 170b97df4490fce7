"""The outcome of one batch of an operator's operation on messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from msmq_fast._native.positions import PositionState
from msmq_fast.protocol.errors import MessageLocked, MessageNotFound, MSMQError
from msmq_fast.qm.operator.plan import Plan
from msmq_fast.qm.queues.browse import SEQUENCE_MASK, Stretch
from msmq_fast.qm.queues.queue import Queue

__all__ = ["Outcome"]

_HELD: Final = (PositionState.STATE_PENDING, PositionState.STATE_LOCKED)


@dataclass(slots=True)
class Outcome:
    """The outcome of one batch: how many messages were moved, copied, sent or removed, and which were
    refused.

    The next batch begins after the arrival sequence `next`; if `finished` is True, there is none. `refused`
    has for each reason, by code and detail of the error, the lookup ids of the messages that stay.
    """

    next: int
    finished: bool
    count: int = 0
    size: int = 0  # bytes of their packets
    refused: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    plan: Plan | None = None  # of a dry run, for its next batch

    def refuse(self, error: MSMQError, lookup_id: int) -> None:
        """Note a message that stays in its queue, with the reason."""
        self.refused.setdefault((error.code, error.detail), []).append(lookup_id)

    def refuse_rest(self, source: Queue, stretch: Stretch, handled: Iterable[int]) -> None:
        """Refuse those lookup ids of the selection that the batch passed and that are neither among `handled`
        nor refused.
        """
        if stretch.selection.lookup_ids is None:
            return
        known = {one for lookup_ids in self.refused.values() for one in lookup_ids}.union(handled)
        last = SEQUENCE_MASK if self.finished else self.next
        for lookup_id in stretch.selection.lookup_ids:
            arrived = lookup_id & SEQUENCE_MASK
            if lookup_id not in known and (arrived > stretch.after or not stretch.after) and arrived <= last:
                self.refuse(_why_not(source, lookup_id), lookup_id)

    @property
    def refusals(self) -> dict[str, int]:
        """The number of messages that stay, by the text of the reason."""
        return {
            str(MSMQError(detail, code=code)): len(lookup_ids)
            for (code, detail), lookup_ids in self.refused.items()
        }


def _why_not(source: Queue, lookup_id: int) -> MSMQError:
    state = source.core.positions.state(lookup_id)
    if state in _HELD:
        return MessageLocked("a reader, a transaction or a transfer to another computer holds the message")
    if state == PositionState.STATE_AVAILABLE:
        return MessageNotFound("the message with this lookup id does not match the rest of the filter")
    return MessageNotFound("the queue has no message with this lookup id")
