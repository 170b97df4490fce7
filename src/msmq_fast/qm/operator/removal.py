"""Removes selected messages for an operator, with the side effects of a purge. Each call processes one batch
of bounded size, in one durable unit.

`queues.browse` defines the batches.
"""

from __future__ import annotations

from typing import Final

from msmq_fast._native.operations import discard
from msmq_fast._native.positions import PositionState
from msmq_fast.qm.operator.outcome import Outcome
from msmq_fast.qm.queues.browse import Page, Stretch, browse
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.records import Store, stored
from msmq_fast.store.completion import Completion

__all__ = ["remove"]

_AVAILABLE: Final = int(PositionState.STATE_AVAILABLE)


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
        outcome.refuse_rest(source, stretch, (message.lookup_id for message in removed))
        return Completion.of(outcome) if dry_run else completion

    return browse(source.core, stretch).then(drop)
