"""Removes selected messages for an operator, with the side effects of a purge. Each call processes one batch
of bounded size, in one durable unit.

`queues.browse` defines the batches.
"""

from __future__ import annotations

from typing import Final

from msmq_fast._native.operations import discard
from msmq_fast._native.positions import PositionState
from msmq_fast.protocol.errors import MessageLocked, MessageNotFound, MSMQError
from msmq_fast.qm.operator.outcome import Outcome
from msmq_fast.qm.queues.browse import SEQUENCE_MASK, Page, Stretch, browse
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.records import Store, stored
from msmq_fast.store.completion import Completion

__all__ = ["remove"]

_AVAILABLE: Final = int(PositionState.STATE_AVAILABLE)
_HELD: Final = (int(PositionState.STATE_PENDING), int(PositionState.STATE_LOCKED))


def remove(
    store: Store, source: Queue, stretch: Stretch, *, dry_run: bool, caller: int = 0
) -> Completion[Outcome]:
    """Remove the next batch of messages from a queue of any kind, as a purge of these messages: senders that
    asked for it get a negative acknowledgment. With `dry_run`, change nothing.
    `caller` is the number of the operator in the feed.

    If `stretch` selects lookup ids, the outcome names those of its range that were not removed, each with the
    reason. Otherwise messages that a reader holds are left out.
    """

    def drop(page: Page) -> Completion[Outcome]:
        outcome = Outcome(page.next, page.finished)
        completion: Completion[Outcome] = Completion()
        if dry_run:
            state = source.core.positions.state
            removed = [message for message in page.messages if state(message.lookup_id) == _AVAILABLE]
        else:
            with store.writer.unit() as writer:
                removed = discard(source.core, page.messages, caller)
                writer.when_durable(lambda status: stored(completion, status, outcome))
        outcome.count = len(removed)
        outcome.size = sum(len(message.packet) for message in removed)
        _name_the_rest(source, stretch, outcome, {message.lookup_id for message in removed})
        return Completion.of(outcome) if dry_run else completion

    return browse(source.core, stretch).then(drop)


def _name_the_rest(source: Queue, stretch: Stretch, outcome: Outcome, removed: set[int]) -> None:
    """Refuse the lookup ids in the range of a batch that were not removed."""
    last = SEQUENCE_MASK if outcome.finished else outcome.next
    for lookup_id in stretch.selection.lookup_ids or ():
        arrived = lookup_id & SEQUENCE_MASK
        if lookup_id not in removed and (arrived > stretch.after or not stretch.after) and arrived <= last:
            outcome.refuse(_why_not(source, lookup_id), lookup_id)


def _why_not(source: Queue, lookup_id: int) -> MSMQError:
    state = source.core.positions.state(lookup_id)
    if state in _HELD:
        return MessageLocked("a reader, a transaction or a transfer to another computer holds the message")
    if state == _AVAILABLE:
        return MessageNotFound("the message with this lookup id does not match the rest of the filter")
    return MessageNotFound("the queue has no message with this lookup id")
