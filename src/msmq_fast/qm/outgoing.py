"""Outgoing queues (MS-MQDMPR 3.1.1.3, ST-4): messages on their way to another computer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from uuid import UUID

from msmq_fast._native.queue import Ledger
from msmq_fast.packet.names import FormatName, NameKind, parse_format_name
from msmq_fast.qm.queue import Queue, QueueKind, QueueProperties, QueueState, Role
from msmq_fast.qm.system import is_internal

STALLED = "a transactional message is next: it is not sent before there are sequence numbers"


class OutgoingState(IntEnum):
    """OQ-05."""

    CONNECTED = 0
    DISCONNECTED = 1
    DISCONNECTING = 2
    INACTIVE = 3
    LOCKED = 4
    NEED_VALIDATION = 5
    WAITING = 6
    ON_HOLD = 7


class ConnectionStatus(IntEnum):
    """Status of a ConnectionHistory entry (OQ-06)."""

    IN_PROCESS = 0
    ESTABLISH_PACKET_RECEIVED = 1
    ESTABLISHED = 2
    UNKNOWN_FAILURE = 3
    PING_FAILURE = 4
    SOCKET_CREATE_FAILURE = 5
    SOCKET_BIND_FAILURE = 6
    SOCKET_CONNECT_FAILURE = 7
    TCP_NOT_ENABLED = 8
    SOCKET_SEND_FAILURE = 9
    CONNECTION_NOT_READY = 10
    DNS_FAILURE = 11
    CERTIFICATE_VALIDATION_FAILURE = 12
    CONNECTION_LIMIT_REACHED = 13
    CONNECTION_REFUSED = 14
    ROUTING_DATA_NOT_AVAILABLE = 15
    LOW_RESOURCE = 16


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """One entry of a ConnectionHistory: `time` in Unix seconds, `error` an HRESULT or 0."""

    status: ConnectionStatus
    time: int
    error: int
    addresses: tuple[str, ...]


def unlocated(name: FormatName) -> tuple[str, UUID | None]:
    """(host, queue manager) of a destination that is not direct, as far as the name says it."""
    return "", name.guid if name.kind is NameKind.PRIVATE else None


class OutgoingQueue(Queue):
    """`transfer` is called when messages are available and nothing forbids sending them."""

    def __init__(
        self,
        ledger: Ledger,
        ordinal: int,
        guid: UUID,
        destination: FormatName,
        *,
        history_length: int,
        created: int = 0,
    ) -> None:
        properties = QueueProperties(label=str(destination)[:124])
        super().__init__(ledger, ordinal, guid, None, "", QueueKind.OUTGOING, properties, created=created)
        self.destination = destination
        if is_internal(destination):
            self.core.role = Role.NONE
        self.next_hops: tuple[str, ...] = ()
        self.outgoing_state = OutgoingState.INACTIVE
        self.history: deque[ConnectionEvent] = deque(maxlen=history_length)
        self._transfer: Callable[[OutgoingQueue], None] | None = None
        self.locate: Callable[[FormatName], tuple[str, UUID | None]] = unlocated

    @property
    def name(self) -> str:
        """DestinationFormatName."""
        return str(self.destination)

    @property
    def key(self) -> str:
        return self.destination.key

    @property
    def active(self) -> bool:
        """Q-20: messages wait for transfer, or somebody has it open."""
        return bool(self.descriptors) or self.core.messages > 0

    def format_name(self, manager: UUID) -> FormatName:
        """Where it leads."""
        return self.destination

    def note(
        self, status: ConnectionStatus, time: int, error: int = 0, addresses: tuple[str, ...] = ()
    ) -> None:
        """Add an entry to the ConnectionHistory; the oldest falls out."""
        self.history.append(ConnectionEvent(status, time, error, addresses))

    def set_state(self, state: OutgoingState) -> None:
        """A transition of ST-4 that a session causes; a queue on hold or locked stays what it is."""
        if self.outgoing_state not in (OutgoingState.ON_HOLD, OutgoingState.LOCKED):
            self.outgoing_state = state

    def watch(self, transfer: Callable[[OutgoingQueue], None] | None) -> None:
        """Who is told of available messages."""
        self._transfer = transfer
        self._note_watch()

    def hold(self, on_hold: bool) -> None:
        """Pause Queue, Resume Queue: any state but Locked -> OnHold -> Inactive."""
        if self.outgoing_state is OutgoingState.LOCKED:
            return
        if on_hold:
            self.outgoing_state = OutgoingState.ON_HOLD
        elif self.outgoing_state is OutgoingState.ON_HOLD:
            self.outgoing_state = OutgoingState.INACTIVE
        self._note_watch()

    @property
    def may_send(self) -> bool:
        """Neither on hold nor locked."""
        return self.outgoing_state not in (OutgoingState.ON_HOLD, OutgoingState.LOCKED)

    @property
    def stalled(self) -> str:
        """Why nothing is sent although messages wait; empty if nothing is in the way."""
        return STALLED if self.core.stalled else ""

    def _note_watch(self) -> None:
        transfer = self._transfer
        if transfer is None or not self.may_send:
            self.readers.watch(None)
        else:
            self.readers.watch(lambda: None if self.core.stalled else transfer(self))

    def record(self) -> dict[str, Any]:
        """What is stored of it: OnHold survives, the other states do not (DA-051)."""
        return {
            "kind": int(self.kind),
            "guid": self.guid.bytes_le,
            "destination": str(self.destination),
            "created": self.created,
            "state": int(self.state),
            "purged_to": self.purged_to,
            "on_hold": self.outgoing_state is OutgoingState.ON_HOLD,
        }

    @classmethod
    def load_outgoing(
        cls, ledger: Ledger, ordinal: int, record: dict[str, Any], history_length: int
    ) -> OutgoingQueue:
        """The queue of a stored record."""
        queue = cls(
            ledger,
            ordinal,
            UUID(bytes_le=record["guid"]),
            parse_format_name(record["destination"]),
            history_length=history_length,
            created=record["created"],
        )
        queue.state = QueueState(record["state"])
        queue.purged_to = record["purged_to"]
        if record["on_hold"]:
            queue.outgoing_state = OutgoingState.ON_HOLD
        return queue
