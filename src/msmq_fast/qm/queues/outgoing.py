"""Outgoing queues (MS-MQDMPR 3.1.1.3, ST-4): messages on their way to another computer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast.packet.names import FormatName, NameKind, direct_from_wire, parse_format_name
from msmq_fast.protocol.errors import IllegalFormatName
from msmq_fast.qm.queues.opening import by_srmp, is_http
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties, QueueState, Role
from msmq_fast.qm.queues.system import is_internal


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
    """One entry of a ConnectionHistory: `time` in Unix seconds, `error` an HRESULT or 0; `detail` is for
    people."""

    status: ConnectionStatus
    time: int
    error: int
    addresses: tuple[str, ...]
    detail: str = ""


_DIRECT = "DIRECT="


def _stored_name(text: str) -> FormatName:
    """The destination of a record. Earlier versions kept names that break the rules of MS-MQMQ 2.1.2: such a
    queue is there again with its messages, which expire or are purged, and takes no others.

    ILLEGAL_FORMATNAME: it is not a name.
    """
    try:
        return parse_format_name(text)
    except IllegalFormatName:
        if not text.startswith(_DIRECT):
            raise
        return direct_from_wire(text[len(_DIRECT) :])


class Channel(Protocol):
    """Carries the messages of one outgoing queue to another computer."""

    def has_work(self) -> None:
        """Messages are available and may be sent; called again at every turn as long as they are."""

    def held(self, on_hold: bool) -> None:
        """The queue was paused (True) or resumed."""


class OutgoingOwner(Protocol):
    """The interface of outgoing queues to the queue manager."""

    def locate(self, name: FormatName, manager: UUID | None) -> tuple[str, UUID | None]:
        """(host, queue manager) of a destination that is not direct."""

    def deliver_locally(self, queue: OutgoingQueue) -> bool:
        """The next hop of a queue is this computer; whether its messages go to a local queue."""


class _Unowned:
    """For a queue of no queue manager."""

    def locate(self, name: FormatName, manager: UUID | None) -> tuple[str, UUID | None]:
        """Returns the location that the name gives."""
        return "", name.guid if name.kind is NameKind.PRIVATE else None

    def deliver_locally(self, queue: OutgoingQueue) -> bool:
        """Nothing is delivered."""
        return False


class OutgoingQueue(Queue):
    """Its channels are told of available messages while nothing forbids sending them.

    `manager` is the queue manager that has the destination queue, as far as the name, the directory or the
    messages say it; None for direct names. `answers_for` is the address group that has answers sent there,
    while nothing else is, see `answers.AnswerQueues`.
    """

    def __init__(
        self,
        ledger: Ledger,
        ordinal: int,
        guid: UUID,
        destination: FormatName,
        *,
        history_length: int,
        created: int = 0,
        manager: UUID | None = None,
        answers_for: str = "",
        owner: OutgoingOwner | None = None,
    ) -> None:
        self._owner = owner or _Unowned()
        super().__init__(
            ledger,
            ordinal,
            guid,
            None,
            "",
            QueueKind.OUTGOING,
            QueueProperties(label=str(destination)[:124]),
            created=created,
            on_available=self._has_work,
        )
        self.destination = destination
        self.manager = destination.guid if destination.kind is NameKind.PRIVATE else manager
        if is_internal(destination):
            self.core.role = Role.NONE
        self.core.srmp = by_srmp(destination)
        self.next_hops: tuple[str, ...] = ()
        self.answers_for = answers_for
        self.reached = False  # a session to its destination was open since the start
        self.next_attempt = 0  # Unix seconds at which the next connection is tried, 0: not known
        self.outgoing_state = OutgoingState.INACTIVE
        self.history: deque[ConnectionEvent] = deque(maxlen=history_length)
        self._channels: list[Channel] = []
        self._online = True

    @property
    def name(self) -> str:
        """DestinationFormatName."""
        return str(self.destination)

    @property
    def key(self) -> str:
        return self.destination.key

    @property
    def active(self) -> bool:
        """Q-20: messages wait for transfer, or a handle has it open."""
        return bool(self.descriptors) or self.core.messages > 0

    def format_name(self, manager: UUID) -> FormatName:
        """The format name of its destination."""
        return self.destination

    def note(
        self,
        status: ConnectionStatus,
        time: int,
        error: int = 0,
        addresses: tuple[str, ...] = (),
        detail: str = "",
    ) -> None:
        """Add an entry to the ConnectionHistory; the oldest falls out."""
        self.history.append(ConnectionEvent(status, time, error, addresses, detail))

    def set_state(self, state: OutgoingState) -> None:
        """A transition of ST-4 that a session causes; a queue on hold or locked stays what it is."""
        if self.outgoing_state not in (OutgoingState.ON_HOLD, OutgoingState.LOCKED):
            self.outgoing_state = state

    def locate(self) -> tuple[str, UUID | None]:
        """Host ("" if unknown) and queue manager of its destination, which is not direct."""
        return self._owner.locate(self.destination, self.manager)

    def deliver_locally(self) -> bool:
        """Its next hop is this computer; whether its messages go to a local queue."""
        return self._owner.deliver_locally(self)

    def connect(self, channel: Channel) -> None:
        """Tell a channel, too, from now on."""
        self._channels.append(channel)
        self._note_watch()

    def close(self) -> None:
        """The queue exists no more: no channel is told of anything."""
        self._channels.clear()
        self._note_watch()

    def set_online(self, online: bool) -> None:
        """ConnectionActive of the queue manager: nothing is sent while it is offline (DM-043)."""
        self._online = online
        self._note_watch()

    def hold(self, on_hold: bool) -> bool:
        """Pause Queue, Resume Queue: any state but Locked -> OnHold -> Inactive; whether it changed."""
        held = self.outgoing_state is OutgoingState.ON_HOLD
        if self.outgoing_state is OutgoingState.LOCKED or held is on_hold:
            return False
        self.outgoing_state = OutgoingState.ON_HOLD if on_hold else OutgoingState.INACTIVE
        self._note_watch()
        for channel in self._channels:
            channel.held(on_hold)
        return True

    def harden(self, hardened: bool) -> None:
        """A queue manager in hardened mode sends nothing but by HTTP (DM-013): any state -> Locked; without
        it, Locked -> Waiting.
        """
        if hardened and not is_http(self.destination):
            self.outgoing_state = OutgoingState.LOCKED
        elif self.outgoing_state is OutgoingState.LOCKED:
            self.outgoing_state = OutgoingState.WAITING

    @property
    def answers_only(self) -> bool:
        """Whether nothing but answers to messages of other queue managers ever went there."""
        return bool(self.answers_for)

    @property
    def may_send(self) -> bool:
        """Neither on hold nor locked."""
        return self.outgoing_state not in (OutgoingState.ON_HOLD, OutgoingState.LOCKED)

    @property
    def stalled(self) -> str:
        """Why nothing is sent although messages wait; empty if nothing is in the way."""
        if not self.may_send:
            return "on hold" if self.outgoing_state is OutgoingState.ON_HOLD else "it is locked"
        sequence = self.core.sequence
        if sequence is None or self.core.positions.available:
            return ""
        if sequence.sent:
            return "the receiver has not acknowledged the messages in order"
        return "messages wait until a program receives them at the receiver" if sequence.finals else ""

    def _note_watch(self) -> None:
        carried = bool(self._channels) and self._online and self.may_send
        self.readers.watch(carried)

    def _has_work(self) -> None:
        for channel in self._channels:
            channel.has_work()

    def record(self) -> dict[str, Any]:
        """The record of the queue: OnHold and Locked survive, the other states do not (DA-051)."""
        return {
            "kind": int(self.kind),
            "guid": self.guid.bytes_le,
            "destination": str(self.destination),
            "created": self.created,
            "state": int(self.state),
            "purged_to": self.purged_to,
            "on_hold": self.outgoing_state is OutgoingState.ON_HOLD,
            "locked": self.outgoing_state is OutgoingState.LOCKED,
            "manager": None if self.manager is None else self.manager.bytes_le,
            "answers_for": self.answers_for,
        }

    @classmethod
    def load_outgoing(
        cls,
        ledger: Ledger,
        ordinal: int,
        record: dict[str, Any],
        history_length: int,
        owner: OutgoingOwner | None = None,
    ) -> OutgoingQueue:
        """The queue of a stored record."""
        queue = cls(
            ledger,
            ordinal,
            UUID(bytes_le=record["guid"]),
            _stored_name(record["destination"]),
            history_length=history_length,
            created=record["created"],
            manager=UUID(bytes_le=record["manager"]) if record.get("manager") else None,
            answers_for=record.get("answers_for", ""),
            owner=owner,
        )
        queue.state = QueueState(record["state"])
        queue.purged_to = record["purged_to"]
        if record["on_hold"]:
            queue.outgoing_state = OutgoingState.ON_HOLD
        elif record.get("locked"):
            queue.outgoing_state = OutgoingState.LOCKED
        return queue
