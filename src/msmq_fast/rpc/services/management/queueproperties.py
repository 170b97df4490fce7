"""The properties of a queue: PROPID_MGMT_QUEUE_… (MS-MQMR 2.2.3.2 and 3.1.4.1, MS-MQMQ 2.3.12).

Local queues and outgoing queues have the same properties. Those that say how messages leave are VT_NULL for a
local queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from msmq_fast.packet.names import NameKind, Scope
from msmq_fast.qm.outgoing.sequences import SequenceInfo, TransferInfo, transfer_info
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.rpc.services.management.values import (
    NULL,
    VarType,
    blob,
    clsids,
    i4,
    i4s,
    text,
    texts,
    ui4,
    ui4s,
    ui8s,
    variants,
)

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.incoming import IncomingTransfer
    from msmq_fast.qm.queues.queue import Queue
    from msmq_fast.rpc.ndr.record import Record

__all__ = ["QUEUE_PROPERTIES", "QueueProperty", "format_name", "queue_value"]


class QueueProperty(IntEnum):
    """PROPID_MGMT_QUEUE_…"""

    PATHNAME = 1
    FORMATNAME = 2
    TYPE = 3
    LOCATION = 4
    XACT = 5
    FOREIGN = 6
    MESSAGE_COUNT = 7
    BYTES_IN_QUEUE = 8
    JOURNAL_MESSAGE_COUNT = 9
    BYTES_IN_JOURNAL = 10
    STATE = 11
    NEXTHOPS = 12
    EOD_LAST_ACK = 13
    EOD_LAST_ACK_TIME = 14
    EOD_LAST_ACK_COUNT = 15
    EOD_FIRST_NON_ACK = 16
    EOD_LAST_NON_ACK = 17
    EOD_NEXT_SEQ = 18
    EOD_NO_READ_COUNT = 19
    EOD_NO_ACK_COUNT = 20
    EOD_RESEND_TIME = 21
    EOD_RESEND_INTERVAL = 22
    EOD_RESEND_COUNT = 23
    EOD_SOURCE_INFO = 24
    CONNECTION_HISTORY = 25
    SUBQUEUE_COUNT = 26
    SUBQUEUE_NAMES = 27


_YES, _NO, _UNKNOWN = "YES", "NO", "UNKNOWN"
_STATES: Final = {
    OutgoingState.CONNECTED: "CONNECTED",
    OutgoingState.DISCONNECTED: "DISCONNECTED",
    OutgoingState.DISCONNECTING: "DISCONNECTING",
    OutgoingState.INACTIVE: "INACTIVE",
    OutgoingState.LOCKED: "LOCKED",
    OutgoingState.NEED_VALIDATION: "NEED VALIDATION",
    OutgoingState.WAITING: "WAITING",
    OutgoingState.ON_HOLD: "ONHOLD",
}
_TYPES: Final = {Scope.PUBLIC: "PUBLIC", Scope.PRIVATE: "PRIVATE", Scope.SYSTEM: "MACHINE"}
_DESTINATIONS: Final = {
    NameKind.PUBLIC: "PUBLIC",
    NameKind.PRIVATE: "PRIVATE",
    NameKind.MACHINE: "MACHINE",
    NameKind.CONNECTOR: "CONNECTOR",
    NameKind.MULTICAST: "MULTICAST",
}


@dataclass(frozen=True, slots=True)
class _Subject:
    """The queue whose properties are read."""

    manager: QueueManager
    queue: Queue

    @property
    def transfer(self) -> TransferInfo | None:
        """The state of the sequence of an outgoing queue; None for a local queue."""
        return transfer_info(self.queue) if isinstance(self.queue, OutgoingQueue) else None


def format_name(manager: QueueManager, queue: Queue) -> str:
    """Returns the format name with which tools open a queue: its name in the directory for a public queue,
    the destination of an outgoing queue, else `DIRECT=OS:` and the path.
    """
    if isinstance(queue, OutgoingQueue) or queue.kind is QueueKind.PUBLIC:
        return str(queue.format_name(manager.guid))
    if queue.kind is QueueKind.CONNECTOR and queue.part is not None:
        return queue.part.queue  # `CONNECTOR=` and the GUID of the foreign site
    return f"DIRECT=OS:{queue.name}"


def _path(subject: _Subject) -> Record:
    queue = subject.queue
    if not isinstance(queue, OutgoingQueue):
        return text(queue.name)
    direct = queue.destination.direct
    if direct is None:
        return NULL  # the directory may know the path, but is not asked for each look at a queue
    protocol, _, path = queue.destination.text.partition(":")
    return text(path if protocol.upper() in ("OS", "TCP") else queue.destination.text)


def _type(subject: _Subject) -> Record:
    queue = subject.queue
    if isinstance(queue, OutgoingQueue):
        direct = queue.destination.direct
        if direct is not None:
            return text(_TYPES[direct.part.scope])
        return text(_DESTINATIONS.get(queue.destination.kind, "PUBLIC"))
    if queue.kind is QueueKind.CONNECTOR:
        return text("CONNECTOR")
    return text("MACHINE" if queue.part is None else _TYPES[queue.part.scope])


def _transactional(subject: _Subject) -> Record:
    transfer = subject.transfer
    if transfer is None:
        return text(_YES if subject.queue.transactional else _NO)
    return text(_YES if transfer.next_sequence.number > 1 else _UNKNOWN)


def _foreign(subject: _Subject) -> Record:
    """A queue manager of this kind is never a foreign system, in which connectors would hold the queues."""
    known = not subject.manager.directory.events.offline or subject.queue.kind is QueueKind.PRIVATE
    return text(_NO if known else _UNKNOWN)


def _journal(subject: _Subject, measure: Callable[[Queue], int]) -> Record:
    journal = subject.queue.journal
    return ui4(0 if journal is None else measure(journal))


def _bytes_in_journal(subject: _Subject) -> Record:
    if not subject.queue.properties.journaling:
        return ui4(0)
    return _journal(subject, lambda journal: journal.bytes)


def _state(subject: _Subject) -> Record:
    queue = subject.queue
    return text(_STATES[queue.outgoing_state] if isinstance(queue, OutgoingQueue) else "LOCAL CONNECTION")


def _next_hops(subject: _Subject) -> Record:
    queue = subject.queue
    states = (OutgoingState.CONNECTED, OutgoingState.WAITING)
    if not isinstance(queue, OutgoingQueue) or queue.outgoing_state not in states:
        return NULL
    if queue.destination.kind is NameKind.MULTICAST:
        return texts([queue.name] if queue.outgoing_state is OutgoingState.CONNECTED else [])
    return texts(map(_address, queue.next_hops))


def _address(hop: str) -> str:
    """Returns an address in the form of MS-MQMQ 2.3.12.12; a host name stays as it is."""
    try:
        address = ip_address(hop.strip("[]"))
    except ValueError:
        return hop
    return f"{'IP' if address.version == 4 else 'IPv6'}={address}"


def _sequence(get: Callable[[TransferInfo], SequenceInfo | None]) -> Callable[[_Subject], Record]:
    return _of_transfer(lambda transfer: blob(get(transfer)))


def _of_transfer(get: Callable[[TransferInfo], Record]) -> Callable[[_Subject], Record]:
    def of(subject: _Subject) -> Record:
        transfer = subject.transfer
        return NULL if transfer is None else get(transfer)

    return of


def _last_ack(transfer: TransferInfo) -> Record:
    return blob(transfer.last_ack) if transfer.no_ack_count else NULL


def _sources(subject: _Subject) -> Record:
    """One entry in each of six lists for each stream of transactional messages to the queue."""
    found: list[IncomingTransfer] = [
        each for each in subject.manager.incoming.transfers() if each.queue == subject.queue.ordinal
    ]
    return variants(
        [
            texts(each.format_name for each in found),
            clsids([each.sender for each in found]),
            ui8s([each.sequence_id for each in found]),
            ui4s([each.sequence_number for each in found]),
            i4s([each.last_access for each in found]),
            ui4s([each.reject_count for each in found]),
        ]
    )


def _history(subject: _Subject) -> Record:
    """The attempts to connect, the oldest first: status, time, error, and the addresses of each."""
    queue = subject.queue
    if not isinstance(queue, OutgoingQueue):
        return NULL
    events = list(queue.history)
    return variants(
        [
            ui4s([_status(event.status) for event in events]),
            i4s([event.time for event in events]),
            i4s([event.error for event in events]),
            variants([texts(event.addresses) for event in events]),
        ]
    )


def _status(status: ConnectionStatus) -> int:
    """Returns the number of a status in MS-MQMQ 2.3.12.25: failures are counted from 0x80000000."""
    if not status.is_failure:
        return int(status)
    return 0x80000000 + (status - ConnectionStatus.UNKNOWN_FAILURE)


def _subqueues(queue: Queue) -> Iterable[str]:
    return sorted(each.part.subqueue for each in queue.subqueues.values() if each.part is not None)


_Of = Callable[[_Subject], "Record"]

QUEUE_PROPERTIES: Final[dict[int, tuple[VarType, _Of]]] = {
    QueueProperty.PATHNAME: (VarType.LPWSTR, _path),
    QueueProperty.FORMATNAME: (VarType.LPWSTR, lambda of: text(format_name(of.manager, of.queue))),
    QueueProperty.TYPE: (VarType.LPWSTR, _type),
    QueueProperty.LOCATION: (
        VarType.LPWSTR,
        lambda of: text("REMOTE" if isinstance(of.queue, OutgoingQueue) else "LOCAL"),
    ),
    QueueProperty.XACT: (VarType.LPWSTR, _transactional),
    QueueProperty.FOREIGN: (VarType.LPWSTR, _foreign),
    QueueProperty.MESSAGE_COUNT: (VarType.UI4, lambda of: ui4(of.queue.messages)),
    QueueProperty.BYTES_IN_QUEUE: (VarType.UI4, lambda of: ui4(of.queue.bytes)),
    QueueProperty.JOURNAL_MESSAGE_COUNT: (
        VarType.UI4,
        lambda of: _journal(of, lambda journal: journal.messages),
    ),
    QueueProperty.BYTES_IN_JOURNAL: (VarType.UI4, _bytes_in_journal),
    QueueProperty.STATE: (VarType.LPWSTR, _state),
    QueueProperty.NEXTHOPS: (VarType.LPWSTRS, _next_hops),
    QueueProperty.EOD_LAST_ACK: (VarType.BLOB, _of_transfer(_last_ack)),
    QueueProperty.EOD_LAST_ACK_TIME: (VarType.I4, _of_transfer(lambda of: i4(of.last_ack_time))),
    QueueProperty.EOD_LAST_ACK_COUNT: (VarType.UI4, _of_transfer(lambda of: ui4(of.last_ack_count))),
    QueueProperty.EOD_FIRST_NON_ACK: (VarType.BLOB, _sequence(lambda of: of.first_non_ack)),
    QueueProperty.EOD_LAST_NON_ACK: (VarType.BLOB, _sequence(lambda of: of.last_non_ack)),
    QueueProperty.EOD_NEXT_SEQ: (VarType.BLOB, _sequence(lambda of: of.next_sequence)),
    QueueProperty.EOD_NO_READ_COUNT: (VarType.UI4, _of_transfer(lambda of: ui4(of.no_read_count))),
    QueueProperty.EOD_NO_ACK_COUNT: (VarType.UI4, _of_transfer(lambda of: ui4(of.no_ack_count))),
    QueueProperty.EOD_RESEND_TIME: (VarType.I4, _of_transfer(lambda of: i4(of.resend_time))),
    QueueProperty.EOD_RESEND_INTERVAL: (VarType.UI4, _of_transfer(lambda of: ui4(of.resend_interval))),
    QueueProperty.EOD_RESEND_COUNT: (VarType.UI4, _of_transfer(lambda of: ui4(of.resend_count))),
    QueueProperty.EOD_SOURCE_INFO: (VarType.VARIANTS, _sources),
    QueueProperty.CONNECTION_HISTORY: (VarType.VARIANTS, _history),
    QueueProperty.SUBQUEUE_COUNT: (VarType.UI4, lambda of: ui4(len(of.queue.subqueues))),
    QueueProperty.SUBQUEUE_NAMES: (VarType.LPWSTRS, lambda of: texts(_subqueues(of.queue))),
}
"""The type and the value of each property, by number."""


def queue_value(manager: QueueManager, queue: Queue, number: int) -> Record:
    """Returns the value of a property of a queue. Raises KeyError for an unknown number, and
    INSUFFICIENT_RESOURCES for a list that is too long.
    """
    return QUEUE_PROPERTIES[number][1](_Subject(manager, queue))
