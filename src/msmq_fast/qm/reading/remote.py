"""Reading from queues of other computers: the interface that front ends use.

The server sets a RemoteReader as `QueueManager.remote`; without one, queues of other computers can only be
opened for sending. docs/how-to/remote-read.md describes what each method guarantees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import Gate
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion

__all__ = [
    "RemoteCursor",
    "RemoteMessage",
    "RemoteQueue",
    "RemoteRead",
    "RemoteReader",
    "RemoteSink",
    "RemoteSubscription",
]


@dataclass(frozen=True, slots=True)
class RemoteMessage:
    """A message of another computer's queue; its attributes have the names of those of
    `_native.queuebase.Received`.

    `lookup_id` has the lower 56 bits of the LookupIdentifier; 0 if the other computer does not report it.
    """

    packet: bytes
    lookup_id: int
    arrived_time: int
    abort_count: int = 0
    move_count: int = 0
    arrival_seq: int = 0
    reason: int = 0


RemoteSink = Callable[[list[RemoteMessage]], None]


class RemoteRead(Protocol):
    """One receive or peek. `completion` ends with a message, with IO_TIMEOUT, or with the error with which
    the read was cancelled.
    """

    completion: Completion[RemoteMessage]

    def cancel(self, error: MSMQError | None = None) -> bool:
        """End the read with `error` (default OPERATION_CANCELLED).

        Returns False if it has ended, or if its message is already being removed and will be delivered.
        """


class RemoteSubscription(Protocol):
    """A reader to which messages are delivered until its credit is used up, like `readers.Subscription`."""

    def grant(self, credit: int) -> None:
        """Allow the delivery of `credit` more messages."""

    def ack(self, lookup_ids: list[int]) -> Completion[int]:
        """Remove delivered messages; returns a completion that is resolved with the number of removed
        messages once the other computer confirms the removal.
        """

    def release(self, lookup_ids: list[int]) -> int:
        """Return delivered messages to the queue; returns how many are returned."""

    def close(self) -> None:
        """End the subscription; messages that are not acknowledged return to the queue."""


class RemoteCursor(Protocol):
    """A position in a queue of another computer, like `cursor.Cursor`. Time-outs are in milliseconds; None:
    without limit.
    """

    number: int

    def peek(self, timeout_ms: int | None, *, gate: Gate | None = None) -> RemoteRead:
        """Peek the current message of the cursor; without one, the next message."""

    def peek_next(self, timeout_ms: int | None, *, gate: Gate | None = None) -> RemoteRead:
        """Move to the message after the current one and peek it."""

    def receive(self, timeout_ms: int | None, *, gate: Gate | None = None) -> RemoteRead:
        """Receive the current message of the cursor; without one, the next message."""

    def close(self) -> None:
        """Close the cursor; waiting reads end with OPERATION_CANCELLED. Closing it twice is allowed."""


class RemoteQueue(Protocol):
    """A queue of another computer, open for reading.

    Methods that remove messages raise ACCESS_DENIED if the queue is open only for peeking. All methods raise
    STALE_HANDLE once the connection to the other computer is lost; the queue must then be opened again.
    """

    cursors: dict[int, RemoteCursor]

    def receive(self, timeout_ms: int | None, *, peek: bool = False, gate: Gate | None = None) -> RemoteRead:
        """Receive or peek the first message; waits up to `timeout_ms` (None: without limit)."""

    def lookup(
        self, lookup_id: int, operation: Lookup, *, peek: bool = False, gate: Gate | None = None
    ) -> Completion[RemoteMessage]:
        """Receive or peek by LookupIdentifier. Fails with MESSAGE_NOT_FOUND."""

    def open_cursor(self) -> RemoteCursor:
        """Returns a cursor before the first message. If the other computer cannot open a cursor, the first
        read of the cursor fails.
        """

    def subscribe(
        self,
        sink: RemoteSink,
        credit: int,
        *,
        acknowledge: bool,
        on_end: Callable[[MSMQError], None] | None = None,
    ) -> RemoteSubscription:
        """Deliver up to `credit` messages to `sink`. With `acknowledge` the messages stay locked in the queue
        until `ack`.

        `on_end` is called when the other computer ends the subscription.
        """

    def purge(self) -> Completion[None]:
        """Remove every available message; the other computer does not report how many."""

    def close(self) -> None:
        """Cancel waiting reads with OPERATION_CANCELLED and return locked messages.

        Returns without waiting for the other computer (QP-217). Closing twice is allowed.
        """


class RemoteReader(Protocol):
    """Opens queues of other computers."""

    def open(
        self, name: FormatName, access: Access, share: Share, token: Token | None
    ) -> Completion[RemoteQueue]:
        """Open a queue for receiving or peeking; resolved when the other computer has opened it.

        `token` is the caller, None for the queue manager itself. Fails with the error of the other computer
        if it refuses, with REMOTE_MACHINE_NOT_AVAILABLE, or with ACCESS_DENIED.
        """
