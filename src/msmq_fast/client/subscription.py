"""Messages as they come: streaming receive with credit, with or without acknowledgment."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Any

from msmq_fast.client.errors import from_wire
from msmq_fast.client.message import ReceivedMessage
from msmq_fast.client.transaction import Transaction, number_of
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import Frame


class Subscription:
    """Made by `Queue.subscribe()`: `async with queue.subscribe() as messages: async for message in messages`.

    Credit is renewed as messages are taken from the iterator (plain) or acknowledged or released
    (acknowledging).
    """

    def __init__(
        self,
        link: Link,
        handle: int,
        credit: int,
        *,
        acknowledge: bool,
        transaction: Transaction | None = None,
    ) -> None:
        self.credit = credit
        self.acknowledging = acknowledge
        self._link = link
        self._handle = handle
        self._transaction = transaction
        self._id = 0
        self._ready: deque[ReceivedMessage] = deque()
        self._ended: MSMQError | None = None
        self._finished = False
        self._waiter: asyncio.Future[None] | None = None
        self._spent = 0  # messages dealt with since credit was last renewed
        self._soon: list[int] = []  # tags to acknowledge at the end of this turn of the loop

    async def __aenter__(self) -> Subscription:
        self._id = self._link.next_id(self._frame)
        payload = [self._handle, self.credit, self.acknowledging, *number_of(self._transaction)]
        await self._link.request(Frame.SUBSCRIBE, payload, self._id)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._link.lost is None and not self._finished:
            self._acknowledge_now()
            await self._link.request(Frame.UNSUBSCRIBE, [self._id])
        self._link.forget(self._id)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> ReceivedMessage:
        """The next message; raises what ended the subscription: QueueDeleted, ConnectionLost."""
        while not self._ready:
            if not await self._wait():
                raise StopAsyncIteration
        message = self._ready.popleft()
        if not self.acknowledging:
            self._spend(1)
        return message

    async def batch(self, limit: int = 1024) -> list[ReceivedMessage]:
        """All messages that are here, at least one and at most `limit`; empty when the subscription is
        over.
        """
        while not self._ready:
            if not await self._wait():
                return []
        ready = self._ready
        if len(ready) <= limit:
            messages = list(ready)
            ready.clear()
        else:
            messages = [ready.popleft() for _ in range(limit)]
        if not self.acknowledging:
            self._spend(len(messages))
        return messages

    async def acknowledge(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Remove `first` (or all delivered from `first` to `last`) from the queue; returns when that is
        durable.
        """
        stop = (last or first).tag
        self._acknowledge_now()
        await self._link.request(Frame.ACKNOWLEDGE, [self._id, first.tag, stop])
        self._spend(stop - first.tag + 1)

    def acknowledge_soon(self, message: ReceivedMessage) -> None:
        """Like `acknowledge` without waiting; those of one turn of the loop travel together."""
        if not self._soon:
            asyncio.get_running_loop().call_soon(self._acknowledge_now)
        self._soon.append(message.tag)

    async def release(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Put `first` (or all delivered from `first` to `last`) back in its place."""
        stop = (last or first).tag
        await self._link.request(Frame.RELEASE, [self._id, first.tag, stop])
        self._spend(stop - first.tag + 1)

    # ------------------------------------------------------------------------------------------- inside

    def _frame(self, kind: int, value: Any) -> None:
        if kind == Frame.DELIVERY:
            tag, messages = value
            self._ready.extend(map(ReceivedMessage, messages, range(tag, tag + len(messages))))
        elif kind == Frame.ENDED:
            code, _, text = value
            self._finished = True
            self._ended = from_wire(code, text) if code else None
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _wait(self) -> bool:
        """Until something happens; False when nothing will any more."""
        if self._link.lost is not None:
            raise self._link.lost
        if self._finished:
            if self._ended is not None:
                raise self._ended
            return False
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiter)
        return True

    def _spend(self, count: int) -> None:
        self._spent += count
        if self._spent * 2 >= self.credit and self._link.lost is None and not self._finished:
            self._link.post(Frame.CREDIT, [self._id, self._spent])
            self._spent = 0

    def _acknowledge_now(self) -> None:
        tags, self._soon = self._soon, []
        if not tags or self._link.lost is not None or self._finished:
            return
        tags.sort()
        start = 0
        for index in range(1, len(tags) + 1):
            if index == len(tags) or tags[index] != tags[index - 1] + 1:
                self._link.post(Frame.ACKNOWLEDGE, [self._id, tags[start], tags[index - 1]])
                start = index
        self._spend(len(tags))
