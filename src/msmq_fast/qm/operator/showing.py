"""Describes queues for operators, as instances of the classes in `msmq_fast.protocol.resources`."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from msmq_fast.protocol.resources import (
    ConnectionAttempt,
    IncomingTransferInfo,
    OutgoingQueueInfo,
    QueueInfo,
    plain,
)
from msmq_fast.qm.outgoing.sequences import SequenceInfo, transfer_info
from msmq_fast.qm.outgoing.stalls import failure_of, stall_of
from msmq_fast.qm.queues.incoming import IncomingTransfer
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.queues.outgoing import ConnectionEvent, OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.stall import Stall, StallCause
from msmq_fast.security.sddl import to_sddl

__all__ = ["FIELDS", "KINDS", "infos", "maps"]

KINDS = {
    "user": (QueueKind.PUBLIC, QueueKind.PRIVATE),
    "system": (QueueKind.SYSTEM, QueueKind.CONNECTOR),
    "subqueue": (QueueKind.SUBQUEUE,),
    "journal": (QueueKind.JOURNAL,),
    "outgoing": (QueueKind.OUTGOING,),
}
"""The groups of queues that operators list."""

FIELDS: Final = tuple(
    dict.fromkeys(field.name for kind in (QueueInfo, OutgoingQueueInfo) for field in dataclasses.fields(kind))
)
"""The fields of local and outgoing queues."""


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
    fields = _fields_of(manager, transfers, sees_permissions)
    for queue in queues:
        if isinstance(queue, OutgoingQueue):
            yield _outgoing_queue_info(queue, manager)
        else:
            yield QueueInfo(**{name: value_of(queue) for name, value_of in fields.items()})


def maps(
    queues: Iterable[Queue],
    names: Iterable[str],
    manager: UUID,
    transfers: Iterable[IncomingTransfer],
    sees_permissions: Callable[[Queue], bool],
) -> Iterator[dict[str, Any]]:
    """Yields the map of each queue (`Resource.as_map`) with the given ones of FIELDS only; the others cost
    nothing. The other arguments are as for `infos`.
    """
    names = tuple(names)
    fields = _fields_of(manager, transfers if "incoming" in names else (), sees_permissions)
    chosen = [(name, fields[name]) for name in names if name in fields]
    for queue in queues:
        if isinstance(queue, OutgoingQueue):
            shown = _outgoing_queue_info(queue, manager).as_map()
            yield {name: shown[name] for name in names if name in shown}
            continue
        found = {}
        for name, value_of in chosen:
            value = value_of(queue)
            if value is not None:
                found[name] = plain(value) if type(value) is tuple else value
        yield found


def _of_journal(count: Callable[[Queue], int]) -> Callable[[Queue], int]:
    return lambda queue: 0 if queue.journal is None else count(queue.journal)


_FIELDS: Final[dict[str, Callable[[Queue], Any]]] = {
    "name": lambda queue: queue.name,
    "kind": lambda queue: kind_of(queue),
    "label": lambda queue: queue.properties.label,
    "messages": lambda queue: queue.messages,
    "bytes": lambda queue: queue.bytes,
    "journal_messages": _of_journal(lambda journal: journal.messages),
    "journal_bytes": _of_journal(lambda journal: journal.bytes),
    "transactional": lambda queue: queue.properties.transactional,
    "journal": lambda queue: queue.properties.journaling,
    "quota_kb": lambda queue: queue.properties.quota_kb,
    "journal_quota_kb": lambda queue: queue.properties.journal_quota_kb,
    "authenticated": lambda queue: queue.properties.authenticated,
    "base_priority": lambda queue: queue.properties.base_priority,
    "privacy_level": lambda queue: int(queue.properties.privacy),
    "multicast_address": lambda queue: queue.properties.multicast_address,
    "poison_after": lambda queue: queue.properties.poison_after,
    "subqueues": lambda queue: tuple(sorted(subqueue.name for subqueue in queue.subqueues.values())),
    "type": lambda queue: str(queue.properties.type),
    "guid": lambda queue: str(queue.guid),
    "created": lambda queue: queue.created,
    "modified": lambda queue: queue.modified,
    "arrived": lambda queue: queue.core.arrived_total,
    "removed": lambda queue: queue.core.removed_total,
    "expired": lambda queue: queue.core.expired_total,
    "oldest": lambda queue: queue.core.positions.oldest() // 1_000_000,
    "in_per_second": lambda queue: round(queue.core.in_per_second, 3),
    "out_per_second": lambda queue: round(queue.core.out_per_second, 3),
}
"""How the fields of QueueInfo are determined that need the queue only."""


def _fields_of(
    manager: UUID, transfers: Iterable[IncomingTransfer], sees_permissions: Callable[[Queue], bool]
) -> dict[str, Callable[[Queue], Any]]:
    """Return how each field of QueueInfo is determined."""
    by_queue: defaultdict[int, list[IncomingTransfer]] = defaultdict(list)
    for transfer in transfers:
        by_queue[transfer.queue].append(transfer)

    def security(queue: Queue) -> str | None:
        shown = queue.kind in KINDS["user"] and sees_permissions(queue)
        return to_sddl(queue.security) if shown else None

    def incoming(queue: Queue) -> tuple[IncomingTransferInfo, ...] | None:
        if not queue.properties.transactional:
            return None
        return tuple(map(_incoming, by_queue.get(queue.ordinal, ())))

    return _FIELDS | {
        "format_name": lambda queue: str(queue.format_name(manager)),
        "security": security,
        "incoming": incoming,
    }


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
