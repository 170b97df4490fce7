"""The interface to an open queue of another computer, implemented for RemoteRead and qm2qm."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Protocol

from msmq_fast.packet.base import INFINITE
from msmq_fast.rpc.services.reads import Ack, Action
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["INFINITE", "Ack", "Action", "QueueSession", "RequestIds", "Started", "Wanted"]


"""The time-out of a read without a limit."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parameters of one read. The `timeout_ms` 0xFFFFFFFF means no limit, the `cursor` 0 means none."""

    action: Action
    timeout_ms: int = 0
    cursor: int = 0
    lookup_id: int = 0

    @property
    def receives(self) -> bool:
        """Whether the read removes its message (it is a receive), so that it has a second phase."""
        return self.action in _RECEIVING


_RECEIVING = frozenset(
    (
        Action.RECEIVE,
        Action.LOOKUP_RECEIVE_CURRENT,
        Action.LOOKUP_RECEIVE_NEXT,
        Action.LOOKUP_RECEIVE_PREV,
    )
)


@dataclass(frozen=True, slots=True)
class Started:
    """A message that a read has found. If the read removes it, it is locked until `QueueSession.end`."""

    packet: bytes
    arrived_time: int
    sequential_id: int  # 0: unknown
    handle: bytes | None = None  # PCTX_REMOTEREAD_HANDLE_TYPE of qm2qm


class QueueSession(Protocol):
    """An open queue of another computer.

    The completions of its methods fail with MSMQError if the server rejects the operation, with RpcFault or
    CallLost if the call fails.
    """

    absolute: bool
    """Whether TimeToReachQueue in the packets of its messages is a point in time, not a duration."""
    identifies: bool
    """Whether the session returns LookupIdentifiers and finds messages by them."""
    on_lost: Signal[[str]]
    """Emitted with the reason when the connection has ended."""

    def start(self, wanted: Wanted, request_id: int) -> Completion[Started]:
        """Begins a read: the first phase of a receive, or a whole peek."""

    def end(self, started: Started, request_id: int, ack: Ack) -> Completion[None]:
        """Run the second phase of a receive: remove the message, or put it back."""

    def cancel(self, request_id: int) -> None:
        """Cancel a waiting read; its `start` fails with OPERATION_CANCELLED."""

    def create_cursor(self) -> Completion[int]:
        """Create a cursor before the first message."""

    def close_cursor(self, cursor: int) -> None:
        """Close a cursor."""

    def purge(self) -> Completion[None]:
        """Remove all available messages."""

    def close(self) -> None:
        """Closes the queue, then the connection, without waiting. Messages that are still locked become
        available again.
        """


class RequestIds:
    """The dwRequestIDs of all reads in progress (QP-204). A number is not reused before its read has ended
    (QP-216).
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._taken: set[int] = set()

    def __len__(self) -> int:
        return len(self._taken)

    def take(self) -> int:
        """Return a number from 1 to 0xFFFFFFFF that no read uses."""
        while True:
            number = next(self._numbers) & 0xFFFF_FFFF
            if number and number not in self._taken:
                self._taken.add(number)
                return number

    def release(self, number: int) -> None:
        """Release the number of a read that has ended."""
        self._taken.discard(number)
