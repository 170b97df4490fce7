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
from msmq_fast.qm.queues.stall import Stall
from msmq_fast.qm.queues.system import is_internal


class OutgoingState(IntEnum):
    """The states of an outgoing queue (OQ-05)."""

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

    @property
    def is_failure(self) -> bool:
        """Whether a connection or an attempt to open one has failed."""
        return self > ConnectionStatus.ESTABLISHED


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """One entry of a ConnectionHistory.

    `time` is in Unix seconds, `error` is an HRESULT or 0, `detail` is a text for operators.
    """

    status: ConnectionStatus
    time: int
    error: int
    addresses: tuple[str, ...]
    detail: str = ""


_DIRECT = "DIRECT="


def _stored_name(text: str) -> FormatName:
    """Returns the destination of an outgoing queue from the text in its record.

    Earlier versions stored names that violate MS-MQMQ 2.1.2: such a queue is restored with its messages,
    which expire or are purged, but accepts no others. Raises ILLEGAL_FORMATNAME if the text is not a name at
    all.
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
        """Called when messages of the queue are available and may be sent; called again in every turn of the
        loop as long as there are such messages.
        """

    def held(self, on_hold: bool) -> None:
        """Called when the queue was paused (`on_hold` is True) or resumed (False)."""

    def kick(self) -> None:
        """Called when an operator requests an attempt now: ends the pauses before the next connection, and
        before messages that were not acknowledged are sent again.
        """

    def obstacle(self) -> Stall:
        """Returns why an open or future connection does not send the messages of the queue now; `FLOWING` if
        the channel knows no reason. Failures of connections are in the history of the queue instead.
        """


class OutgoingOwner(Protocol):
    """The methods of the queue manager that outgoing queues use."""

    def locate(self, name: FormatName, manager: UUID | None) -> tuple[str, UUID | None]:
        """Returns (host, GUID of the queue manager) of a destination that is not a direct name."""

    def deliver_locally(self, queue: OutgoingQueue) -> bool:
        """Start to move the messages of a queue to a local queue, because the next hop of the queue is this
        computer. Returns False if no local queue accepts them.
        """

    def noted(self, queue: OutgoingQueue, event: ConnectionEvent) -> None:
        """Called for each new entry of the ConnectionHistory of a queue."""


class _Unowned:
    """The owner of a queue that does not belong to a queue manager."""

    def locate(self, name: FormatName, manager: UUID | None) -> tuple[str, UUID | None]:
        """Returns ("", GUID of the queue manager): the host is unknown, and the GUID is None unless the name
        contains it.
        """
        return "", name.guid if name.kind is NameKind.PRIVATE else None

    def deliver_locally(self, queue: OutgoingQueue) -> bool:
        """Returns False: nothing is delivered locally."""
        return False

    def noted(self, queue: OutgoingQueue, event: ConnectionEvent) -> None:
        """Ignore the event."""


class OutgoingQueue(Queue):
    """A queue for messages to another computer. Notifies its channels of available messages while sending is
    allowed.

    `manager` is the queue manager of the destination queue, if it is known from the name, the directory or
    the messages; None for direct names. `answers_for` is the address group whose peers caused the queue, as
    long as it is used only for answers; see `answers.AnswerQueues`.
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
        self.reached = False  # whether a session to its destination was open since the start
        self.next_attempt = 0  # Unix seconds at which the next connection is tried, 0: not known
        self.outgoing_state = OutgoingState.INACTIVE
        self.history: deque[ConnectionEvent] = deque(maxlen=history_length)
        self.attempts = 0  # failed attempts to connect since the latest session
        self.failure: ConnectionEvent | None = None  # the latest one
        self.reported: set[str] = set()  # causes of stalls that are in the log, since the latest session
        self.held_by = ""  # the caller that paused the queue; empty if it is not known
        self._channels: list[Channel] = []
        self._online = True

    @property
    def name(self) -> str:
        """The format name of the destination (DestinationFormatName)."""
        return str(self.destination)

    @property
    def key(self) -> str:
        return self.destination.key

    @property
    def active(self) -> bool:
        """Whether messages wait for transfer, or a handle has the queue open (Q-20)."""
        return bool(self.descriptors) or self.core.messages > 0

    def format_name(self, manager: UUID) -> FormatName:
        """Returns the format name of the destination."""
        return self.destination

    def note(
        self,
        status: ConnectionStatus,
        time: int,
        error: int = 0,
        addresses: tuple[str, ...] = (),
        detail: str = "",
    ) -> None:
        """Add an entry to the ConnectionHistory; a full history drops its oldest entry.

        Call it after `set_state`: a failure that leaves the queue connected is not a failed attempt.
        """
        event = ConnectionEvent(status, time, error, addresses, detail)
        self.history.append(event)
        if status is ConnectionStatus.ESTABLISHED:
            self.attempts = 0
        elif status.is_failure:
            self.failure = event
            self.attempts += self.outgoing_state is not OutgoingState.CONNECTED
        self._owner.noted(self, event)

    def set_state(self, state: OutgoingState) -> None:
        """Set the state that follows from an event of a session (ST-4); a queue that is on hold or locked
        keeps its state.
        """
        if self.outgoing_state not in (OutgoingState.ON_HOLD, OutgoingState.LOCKED):
            self.outgoing_state = state

    def locate(self) -> tuple[str, UUID | None]:
        """Returns (host, GUID of the queue manager) of the destination; the host is "" if unknown. Not for
        direct names.
        """
        return self._owner.locate(self.destination, self.manager)

    def deliver_locally(self) -> bool:
        """Start to move the messages of this queue to a local queue, because its next hop is this computer.
        Returns False if no local queue accepts them.
        """
        return self._owner.deliver_locally(self)

    def connect(self, channel: Channel) -> None:
        """Add a channel, which is notified of available messages from now on."""
        self._channels.append(channel)
        self._note_watch()

    def close(self) -> None:
        """Detach all channels, because the queue was deleted."""
        self._channels.clear()
        self._note_watch()

    def set_online(self, online: bool) -> None:
        """Set whether the queue manager is online (ConnectionActive): while it is offline, the queue sends no
        messages (DM-043).
        """
        self._online = online
        self._note_watch()

    def hold(self, on_hold: bool, by: str = "") -> bool:
        """Pause Queue (True): any state but Locked -> OnHold. Resume Queue (False): OnHold -> Inactive.
        Returns whether the state changed. `by` is the caller, for operators.
        """
        held = self.outgoing_state is OutgoingState.ON_HOLD
        if self.outgoing_state is OutgoingState.LOCKED or held is on_hold:
            return False
        self.outgoing_state = OutgoingState.ON_HOLD if on_hold else OutgoingState.INACTIVE
        self.held_by = by if on_hold else ""
        self._note_watch()
        for channel in self._channels:
            channel.held(on_hold)
        return True

    def kick(self) -> None:
        """Connect and send now, without the rest of the pauses after failures; a queue that is paused or
        locked sends nothing.
        """
        if self.may_send:
            for channel in self._channels:
                channel.kick()

    def harden(self, hardened: bool) -> None:
        """Apply hardened mode, in which a queue manager sends only by HTTP (DM-013).

        With `hardened` True: any state -> Locked, unless the destination is an HTTP name. With False: Locked
        -> Waiting.
        """
        if hardened and not is_http(self.destination):
            self.outgoing_state = OutgoingState.LOCKED
        elif self.outgoing_state is OutgoingState.LOCKED:
            self.outgoing_state = OutgoingState.WAITING

    @property
    def answers_only(self) -> bool:
        """Whether the queue has been used only for answers to messages of other queue managers."""
        return bool(self.answers_for)

    @property
    def may_send(self) -> bool:
        """Whether the queue is neither on hold nor locked."""
        return self.outgoing_state not in (OutgoingState.ON_HOLD, OutgoingState.LOCKED)

    @property
    def online(self) -> bool:
        """Whether the queue manager is online (ConnectionActive)."""
        return self._online

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that carry the messages of the queue; none if its transport is off."""
        return tuple(self._channels)

    def _note_watch(self) -> None:
        carried = bool(self._channels) and self._online and self.may_send
        self.readers.watch(carried)

    def _has_work(self) -> None:
        for channel in self._channels:
            channel.has_work()

    def record(self) -> dict[str, Any]:
        """Returns the record of the queue for the store. The states OnHold and Locked survive a restart, the
        other states do not (DA-051).
        """
        return {
            "kind": int(self.kind),
            "guid": self.guid.bytes_le,
            "destination": str(self.destination),
            "created": self.created,
            "state": int(self.state),
            "purged_to": self.purged_to,
            "on_hold": self.outgoing_state is OutgoingState.ON_HOLD,
            "held_by": self.held_by,
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
        """Create the queue from a stored record."""
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
            queue.held_by = record.get("held_by", "")
        elif record.get("locked"):
            queue.outgoing_state = OutgoingState.LOCKED
        return queue
