"""Delivers messages of another computer's queue as they arrive.

Implements qm.reading.remote.RemoteSubscription.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from msmq_fast.protocol.errors import IOTimeout, MSMQError, StaleHandle
from msmq_fast.qm.reading.remote import RemoteMessage, RemoteSink
from msmq_fast.rpc.client.sessions import Ack
from msmq_fast.store.completion import Completion

__all__ = ["RemoteReadSubscription"]


class Read(Protocol):
    """A read whose message stays locked until `end`."""

    completion: Completion[RemoteMessage]

    def end(self, ack: Ack) -> Completion[None]:
        """Remove the message, or put it back."""

    def cancel(self, error: MSMQError | None = None) -> bool:
        """Cancel a waiting read."""


class Source(Protocol):
    """The queue that a subscription reads."""

    def hold(self) -> Read:
        """Receives the first message, waiting without a limit, and keeps it locked."""

    def unsubscribed(self, subscription: RemoteReadSubscription) -> None:
        """Forgets a subscription that has ended."""


class RemoteReadSubscription:
    """A subscription. Only one read at a time waits at the other computer, so that messages arrive in the
    order of the queue.

    Without `acknowledge`, a message is delivered after the other computer has confirmed its removal. The next
    read starts without waiting for this confirmation.
    """

    def __init__(
        self,
        queue: Source,
        sink: RemoteSink,
        *,
        acknowledge: bool,
        on_end: Callable[[MSMQError], None] | None = None,
    ) -> None:
        self._on_end = on_end
        self._queue = queue
        self._sink = sink
        self._acknowledge = acknowledge
        self._credit = 0
        self._waiting: Read | None = None
        self._held: dict[int, Read] = {}  # by lookup id
        self._leaving: deque[tuple[RemoteMessage, Completion[None]]] = (
            deque()
        )  # removed from the queue, but not delivered yet
        self._failure: MSMQError | None = None  # ends the subscription once `_leaving` is delivered
        self._closed = False

    def grant(self, credit: int) -> None:
        """Add credit for `credit` more messages."""
        self._credit += credit
        self._read_on()

    def ack(self, lookup_ids: list[int]) -> Completion[int]:
        """Removes delivered messages. The completion returns how many were removed, or fails with the first
        error.
        """
        reads = [self._held.pop(lookup_id) for lookup_id in lookup_ids if lookup_id in self._held]
        all_ended: Completion[int] = Completion()
        left = len(reads)
        if not left:
            return Completion.of(0)

        def ended(done: Completion[None]) -> None:
            nonlocal left
            left -= 1
            failure = done.exception()
            if failure is not None:
                all_ended.fail(failure)
            elif not left:
                all_ended.resolve(len(reads))

        for read in reads:
            read.end(Ack.ACK).add_done_callback(ended)
        return all_ended

    def release(self, lookup_ids: list[int]) -> int:
        """Put delivered messages back and return their number."""
        reads = [self._held.pop(lookup_id) for lookup_id in lookup_ids if lookup_id in self._held]
        for read in reads:
            read.end(Ack.NACK)
        return len(reads)

    def close(self) -> None:
        """Stop the delivery and put back messages that are not acknowledged."""
        if self._closed:
            return
        self._closed = True
        if self._waiting is not None:
            self._waiting.cancel()
        self.release(list(self._held))
        self._queue.unsubscribed(self)

    def _read_on(self) -> None:
        # A loop, because a message that is already there would start the next read inside the callback of
        # this one.
        while not self._over and self._waiting is None and self._credit > 0:
            try:
                read = self._queue.hold()
            except MSMQError as refused:
                self._end(refused)
                return
            self._waiting = read
            read.completion.add_done_callback(lambda done, read=read: self._came(read, done))  # type: ignore[misc]

    def _came(self, read: Read, done: Completion[RemoteMessage]) -> None:
        self._waiting = None
        failure = done.exception()
        if failure is None:
            self._credit -= 1
            self._take(read, done.result())
        elif not isinstance(failure, IOTimeout):
            self._end(failure if isinstance(failure, MSMQError) else MSMQError(str(failure)))
            return
        self._read_on()

    def _take(self, read: Read, message: RemoteMessage) -> None:
        if self._over:
            read.end(Ack.NACK)
        elif self._acknowledge:
            self._held[message.lookup_id] = read
            self._sink([message])
        else:
            removed = read.end(Ack.ACK)
            self._leaving.append((message, removed))
            removed.add_done_callback(lambda _: self._deliver())

    @property
    def _over(self) -> bool:
        return self._closed or self._failure is not None

    def _deliver(self) -> None:
        while self._leaving and self._leaving[0][1].done:
            message, removed = self._leaving.popleft()
            failure = removed.exception()
            if failure is None and not self._closed:
                self._sink([message])
            elif failure is not None and self._failure is None:
                self._failure = failure if isinstance(failure, MSMQError) else StaleHandle(str(failure))
        if self._failure is not None:
            self._end(self._failure)

    def _end(self, failure: MSMQError) -> None:
        if self._closed:
            return
        if self._leaving:
            # Only this computer has the removed messages, so deliver them before reporting the end.
            self._failure = self._failure or failure
            return
        self.close()
        if self._on_end is not None:
            self._on_end(failure)
