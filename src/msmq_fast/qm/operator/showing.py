"""Describes queues for operators, as instances of the classes in `msmq_fast.protocol.resources`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from msmq_fast.protocol.resources import (
    ConnectionAttempt,
    IncomingTransferInfo,
    OutgoingQueueInfo,
    QueueInfo,
)
from msmq_fast.qm.outgoing.sequences import SequenceInfo, transfer_info
from msmq_fast.qm.outgoing.stalls import failure_of, stall_of
from msmq_fast.qm.queues.incoming import IncomingTransfer
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.queues.outgoing import ConnectionEvent, OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.stall import Stall, StallCause
from msmq_fast.security.sddl import to_sddl

__all__ = ["KINDS", "infos"]

KINDS = {
    "user": (QueueKind.PUBLIC, QueueKind.PRIVATE),
    "system": (QueueKind.SYSTEM, QueueKind.CONNECTOR),
    "subqueue": (QueueKind.SUBQUEUE,),
    "journal": (QueueKind.JOURNAL,),
    "outgoing": (QueueKind.OUTGOING,),
}
"""The groups of queues that operators list."""


def infos(
    queues: Iterable[Queue],
    manager: UUID,
    transfers: Iterable[IncomingTransfer],
    sees_permissions: Callable[[Queue], bool],
) -> Iterator[QueueInfo | OutgoingQueueInfo]:
    """Yields the description of each queue.

    `manager` is the GUID of the queue manager, `transfers` has the incoming transfers of all queues. The
    description of a user queue includes the security descriptor if `sees_permissions` returns True for the
    queue.
    """
    by_queue: defaultdict[int, list[IncomingTransfer]] = defaultdict(list)
    for transfer in transfers:
        by_queue[transfer.queue].append(transfer)
    for queue in queues:
        if isinstance(queue, OutgoingQueue):
            yield _outgoing_queue_info(queue, manager)
        else:
            with_security = queue.kind in KINDS["user"] and sees_permissions(queue)
            yield _queue_info(queue, manager, by_queue.get(queue.ordinal, ()), with_security=with_security)


def _queue_info(
    queue: Queue, manager: UUID, transfers: Iterable[IncomingTransfer], *, with_security: bool = False
) -> QueueInfo:
    """Returns the description of a local queue; `transfers` are the incoming transfers of this queue."""
    journal, properties = queue.journal, queue.properties
    return QueueInfo(
        name=queue.name,
        format_name=str(queue.format_name(manager)),
        kind=kind_of(queue),
        label=properties.label,
        messages=queue.messages,
        bytes=queue.bytes,
        journal_messages=0 if journal is None else journal.messages,
        journal_bytes=0 if journal is None else journal.bytes,
        transactional=properties.transactional,
        journal=properties.journaling,
        quota_kb=properties.quota_kb,
        journal_quota_kb=properties.journal_quota_kb,
        authenticated=properties.authenticated,
        base_priority=properties.base_priority,
        privacy_level=int(properties.privacy),
        multicast_address=properties.multicast_address,
        poison_after=properties.poison_after,
        subqueues=tuple(sorted(subqueue.name for subqueue in queue.subqueues.values())),
        type=str(properties.type),
        guid=str(queue.guid),
        created=queue.created,
        modified=queue.modified,
        arrived=queue.core.arrived_total,
        removed=queue.core.removed_total,
        expired=queue.core.expired_total,
        security=to_sddl(queue.security) if with_security else None,
        incoming=tuple(map(_incoming, transfers)) if properties.transactional else None,
        oldest=queue.core.positions.oldest() // 1_000_000,
        in_per_second=round(queue.core.in_per_second, 3),
        out_per_second=round(queue.core.out_per_second, 3),
    )


def _outgoing_queue_info(queue: OutgoingQueue, manager: UUID) -> OutgoingQueueInfo:
    """Returns the description of an outgoing queue, including the state of the sequence to its
    destination.
    """
    transfer, stall = transfer_info(queue), stall_of(queue)
    return OutgoingQueueInfo(
        name=queue.name,
        format_name=str(queue.format_name(manager)),
        state=queue.outgoing_state.name.lower(),
        messages=queue.messages,
        bytes=queue.bytes,
        next_hops=tuple(queue.next_hops),
        manager="" if queue.manager is None else str(queue.manager),
        history=tuple(map(_attempt, queue.history)),
        stalled=stall.cause.value,
        reason=stall.reason,
        last_error="" if queue.failure is None else failure_of(queue.failure).reason,
        last_error_time=0 if queue.failure is None else queue.failure.time,
        attempts=queue.attempts,
        next_attempt=_next_attempt(queue, stall),
        oldest=queue.core.positions.oldest() // 1_000_000,
        paused_by=queue.held_by,
        first_non_ack=_place(transfer.first_non_ack),
        last_non_ack=_place(transfer.last_non_ack),
        next_sequence=_place(transfer.next_sequence),
        last_ack=_place(transfer.last_ack),
        last_ack_time=transfer.last_ack_time,
        last_ack_count=transfer.last_ack_count,
        no_ack_count=transfer.no_ack_count,
        no_read_count=transfer.no_read_count,
        resend_count=transfer.resend_count,
        resend_interval=transfer.resend_interval,
        resend_time=transfer.resend_time,
        in_per_second=round(queue.core.in_per_second, 3),
        out_per_second=round(queue.core.out_per_second, 3),
    )


def _next_attempt(queue: OutgoingQueue, stall: Stall) -> int:
    """Return when the queue tries again, in Unix seconds: to connect, or to send again what the receiver has
    not acknowledged. Returns 0 if no time is set.
    """
    sequence = queue.core.sequence
    if stall.cause is StallCause.UNACKNOWLEDGED and sequence is not None:
        return sequence.resend_s
    return queue.next_attempt


def _incoming(transfer: IncomingTransfer) -> IncomingTransferInfo:
    return IncomingTransferInfo(
        format_name=transfer.format_name,
        sender=str(transfer.sender),
        sequence_id=transfer.sequence_id,
        sequence_number=transfer.sequence_number,
        last_access=transfer.last_access,
        reject_count=transfer.reject_count,
    )


def _attempt(event: ConnectionEvent) -> ConnectionAttempt:
    return ConnectionAttempt(
        time=event.time,
        status=event.status.name.lower(),
        error=event.error,
        addresses=tuple(event.addresses),
        detail=event.detail,
    )


def _place(found: SequenceInfo | None) -> str:
    """Return a position in a transactional stream as text; "" for None, for example because no message waits
    for an acknowledgment.
    """
    return "" if found is None or not found.sequence_id else str(found)
