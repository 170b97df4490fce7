"""Moves or copies messages for an operator. Each call processes one batch of bounded size, in one durable
unit.

`queues.browse` defines the batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmq_fast._native.operations import is_transactional, place, withdraw
from msmq_fast._native.positions import PositionState
from msmq_fast._native.queue import TAKEN
from msmq_fast._native.queuebase import Received
from msmq_fast.protocol.errors import InvalidParameter, MSMQError, TransactionUsage
from msmq_fast.qm.handles.handle import refusal
from msmq_fast.qm.operator.outcome import Outcome
from msmq_fast.qm.operator.plan import Plan
from msmq_fast.qm.queues.browse import Page, Stretch, browse
from msmq_fast.qm.queues.protection import check_kept
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.records import Store, stored
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import EventKind

_AVAILABLE: Final = int(PositionState.STATE_AVAILABLE)


def check_target(source: Queue, target: Queue) -> None:
    """Raises INVALID_PARAMETER if messages cannot be moved or copied from `source` to `target`."""
    if source is target:
        raise InvalidParameter("source and target are the same queue")
    if target.core.outgoing:
        raise InvalidParameter("the target must be a queue of this computer")


def relocate(
    store: Store,
    source: Queue,
    target: Queue,
    stretch: Stretch,
    *,
    keep: bool,
    also: Callable[[Outcome], None] | None = None,
    caller: int = 0,
    each: bool = False,
    plan: Plan | None = None,
) -> Completion[Outcome]:
    """Move the next batch of messages to another queue of this computer; with `keep`, copy them. Message
    identifiers do not change. `caller` is the number of the operator in the feed.

    Moved messages leave `source` and enter `target` in one unit. `also`, if given, is called with the outcome
    inside that unit and may write to the store. The batch ends at the first message that the target refuses;
    if that is the first message of the batch, its refusal is raised. Raises what `check_target` raises, and
    TRANSACTION_USAGE, MESSAGE_NOT_AUTHENTICATED or ILLEGAL_PROPERTY_VALUE if the target does not accept the
    first message.

    With `each`, refused messages stay and are named in the outcome, and the batch goes on; once a quota is
    used up, the rest of the batch is refused. With `plan`, the outcome is the same, but nothing is changed.
    """
    check_target(source, target)
    each = each or plan is not None

    def shift(page: Page) -> Completion[Outcome]:
        outcome = Outcome(page.next, page.finished, plan=plan)
        chosen, refused = _fitting(source, target, page.messages, outcome if each else None)
        if plan is not None:
            taken = _planned(plan, target, chosen, outcome)
            outcome.refuse_rest(source, stretch, (message.lookup_id for message in taken))
            return Completion.of(outcome)
        if not chosen and refused is None and also is None:
            if each:
                outcome.refuse_rest(source, stretch, ())
            return Completion.of(outcome)
        moves = 0 if keep else 1
        completion: Completion[Outcome] = Completion()
        with store.writer.unit():
            results = place(
                target.core,
                [
                    (message.packet, message.arrived_us, 0, message.move_count + moves, 0)
                    for message in chosen
                ],
            )
            if results and results[-1] not in TAKEN:
                refused = (chosen[len(results) - 1], refusal(results.pop()))
            taken = chosen[: len(results)]
            if each and refused is not None:
                for message in chosen[len(results) :]:
                    outcome.refuse(refused[1], message.lookup_id)
                refused = None
            outcome.count = len(taken)
            outcome.size = sum(len(message.packet) for message in taken)
            if refused is not None:
                outcome.next = refused[0].arrival_seq - 1
                outcome.finished = False
            if also is not None:
                also(outcome)
            store.writer.when_durable(lambda status: stored(completion, status, outcome))
            if not keep:
                withdraw(source.core, [message.lookup_id for message in taken], EventKind.MOVED, caller)
        if each:
            outcome.refuse_rest(source, stretch, (message.lookup_id for message in taken))
        if refused is not None and not taken:
            raise refused[1]
        return completion

    return browse(source.core, stretch).then(shift)


def _fitting(
    source: Queue, target: Queue, messages: list[Received], outcome: Outcome | None
) -> tuple[list[Received], tuple[Received, MSMQError] | None]:
    """Returns (messages, refusal): the messages that still exist, up to the first that the target does not
    accept; `refusal` is that message and the error, or None. With `outcome`, refused messages are noted there
    instead, and `messages` has all that the target accepts.
    """
    chosen: list[Received] = []
    for message in messages:
        if source.core.positions.state(message.lookup_id) != _AVAILABLE:
            continue
        try:
            if is_transactional(message.packet) != target.transactional and takes_one_kind(target):
                raise wrong_kind(target)
            check_kept(target, message.packet)
        except MSMQError as problem:
            if outcome is None:
                return chosen, (message, problem)
            outcome.refuse(problem, message.lookup_id)
            continue
        chosen.append(message)
    return chosen, None


def _planned(plan: Plan, target: Queue, messages: list[Received], outcome: Outcome) -> list[Received]:
    """Add messages to a plan and to the outcome, up to the first for which there is no room; refuse the
    others. Returns those that were added.
    """
    for number, message in enumerate(messages):
        try:
            plan.add(target, len(message.packet))
        except MSMQError as problem:
            for one in messages[number:]:
                outcome.refuse(problem, one.lookup_id)
            return messages[:number]
        outcome.count += 1
        outcome.size += len(message.packet)
    return messages


def takes_one_kind(target: Queue) -> bool:
    """Whether a queue accepts only transactional messages, or only messages that are not transactional.
    Journals and dead-letter queues accept both.
    """
    journal = target.part is not None and target.part.journal
    return target.kind in (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.SUBQUEUE) and not journal


def wrong_kind(target: Queue) -> TransactionUsage:
    """Returns the error for a message that is transactional although the target is not, or the reverse."""
    if target.transactional:
        return TransactionUsage(f"{target.name} takes transactional messages only")
    return TransactionUsage(f"{target.name} takes no transactional messages")
