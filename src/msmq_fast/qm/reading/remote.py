"""Queues of other computers that are read from here: the interface that front ends use.

The queue manager gets a RemoteReader when it is constructed (`QueueManager.remote`); without one such
queues can only be sent to. What each method promises is in docs/how-to/remote-read.md.
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
    """A message of another computer's queue, with the names of `_native.queuebase.Received`.

    `lookup_id` is as much of the LookupIdentifier as is told, its lower 56 bits; 0 where nothing is told.
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
    """One receive or peek. Ends once: with a message, IO_TIMEOUT, or what cancelled it."""

    completion: Completion[RemoteMessage]

    def cancel(self, error: MSMQError | None = None) -> bool:
        """End it with `error` (OPERATION_CANCELLED); False if it has ended, or its message is already being
        removed and will come."""


class RemoteSubscription(Protocol):
    """A reader with credit, as `readers.Subscription`."""

    def grant(self, credit: int) -> None:
        """Allows `credit` more messages."""

    def ack(self, lookup_ids: list[int]) -> Completion[int]:
        """Remove delivered messages; resolved with their number when the other computer has said so."""

    def release(self, lookup_ids: list[int]) -> int:
        """Put delivered messages back."""

    def close(self) -> None:
        """Stops deliveries and requeues unacknowledged messages."""


class RemoteCursor(Protocol):
    """A place in the queue, as `cursor.Cursor`; time-outs are in milliseconds, None: for ever."""

    number: int

    def peek(self, timeout_ms: int | None, *, gate: Gate | None = None) -> RemoteRead:
        """Peeks the message at the cursor, or the next one."""

    def peek_next(self, timeout_ms: int | None, *, gate: Gate | None = None) -> RemoteRead:
        """The message behind the one that was peeked."""

    def receive(self, timeout_ms: int | None, *, gate: Gate | None = None) -> RemoteRead:
        """Receives the message at the cursor, or the next one."""

    def close(self) -> None:
        """Reads that wait end with OPERATION_CANCELLED. Closing twice is fine."""


class RemoteQueue(Protocol):
    """A queue of another computer, open for reading. Methods raise ACCESS_DENIED where it is open for peeking
    only, STALE_HANDLE once the connection to that computer is lost: it has to be opened again."""

    cursors: dict[int, RemoteCursor]

    def receive(self, timeout_ms: int | None, *, peek: bool = False, gate: Gate | None = None) -> RemoteRead:
        """Receive or peek the first message; waits up to `timeout_ms` (None: for ever)."""

    def lookup(
        self, lookup_id: int, operation: Lookup, *, peek: bool = False, gate: Gate | None = None
    ) -> Completion[RemoteMessage]:
        """Receive or peek by LookupIdentifier. Fails with MESSAGE_NOT_FOUND."""

    def open_cursor(self) -> RemoteCursor:
        """A cursor before the first message; that there can be none, its first read says."""

    def subscribe(
        self,
        sink: RemoteSink,
        credit: int,
        *,
        acknowledge: bool,
        on_end: Callable[[MSMQError], None] | None = None,
    ) -> RemoteSubscription:
        """Have up to `credit` messages handed to `sink`; with `acknowledge` they stay locked until `ack`.

        `on_end` is called when the other computer ends the subscription.
        """

    def purge(self) -> Completion[None]:
        """Removes every available message; the number is not known."""

    def close(self) -> None:
        """Ends waiting reads with OPERATION_CANCELLED, and requeues locked messages. Does not wait for the
        other computer (QP-217). Closing twice is fine.
        """


class RemoteReader(Protocol):
    """Opens queues of other computers."""

    def open(
        self, name: FormatName, access: Access, share: Share, token: Token | None
    ) -> Completion[RemoteQueue]:
        """Open for receiving or peeking; resolved when the other computer has opened it too.

        `token` is the caller, None for the queue manager itself. Fails with what the other computer refuses
        it with, REMOTE_MACHINE_NOT_AVAILABLE, ACCESS_DENIED.
        """
