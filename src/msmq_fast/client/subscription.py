"""Streaming receive, with or without acknowledgment; credit limits the messages that the server sends ahead.

Messages are acknowledged by their tags. The server numbers the deliveries from 1 on each link, but the tags
continue over all links: the tag of a message is the number of its delivery plus `_base`, the last tag of the
previous link. A tag of at most `_base` therefore belongs to a message of a lost link, which the server
delivers again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any

from msmq_fast.client.channel import Channel, OpenQueue
from msmq_fast.client.errors import ConnectionLost, from_wire
from msmq_fast.client.message import ReceivedMessage
from msmq_fast.client.transaction import Transaction, number_of
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import Frame


class Subscription:
    """A stream of messages. Made by `Queue.subscribe()`: `async with queue.subscribe() as messages: async for
    message in messages`.

    Credit is renewed when messages are taken from the iterator (plain subscription), or acknowledged or
    released (acknowledging subscription).

    With a connection that reconnects, the subscription continues after a lost link. An acknowledging
    subscription then receives every unacknowledged message again, including those whose acknowledgment was in
    flight: a message may arrive twice, but none is missed. A plain subscription loses the messages in flight,
    since the server removed them before sending. A subscription in a transaction ends, because the loss of
    the link aborts the transaction.
    """

    def __init__(
        self,
        channel: Channel,
        queue: OpenQueue,
        credit: int,
        *,
        acknowledge: bool,
        transaction: Transaction | None = None,
    ) -> None:
        self.credit = credit
        self.acknowledging = acknowledge
        self._channel = channel
        self._queue = queue
        self._link: Link | None = None  # the one on which it is open
        self._transaction = transaction
        self._id = 0
        self._ready: deque[ReceivedMessage] = deque()
        self._ended: MSMQError | None = None
        self._finished = False
        self._waiter: asyncio.Future[None] | None = None
        self._spent = 0  # messages dealt with since credit was last renewed
        self._soon: list[int] = []  # tags to acknowledge at the end of this turn of the loop
        self._last = self._base = 0  # tags: the newest, and the last one of the link before

    async def __aenter__(self) -> Subscription:
        await self._open(await self._channel.live())
        self._channel.add(self)
        return self

    async def restore(self, link: Link) -> None:
        """Subscribe again on a new link; the server delivers the unacknowledged messages again."""
        if self._transaction is not None:
            self._end(ConnectionLost("the transaction of the subscription was aborted with its connection"))
        elif self._queue.ended is not None:
            self._end(self._queue.ended)
        else:
            try:
                await self._open(link)
            except ConnectionLost:
                raise
            except MSMQError as error:
                self._end(error)

    def give_up(self, error: MSMQError) -> None:
        """End the subscription with `error`: the client does not connect again."""
        self._end(error)

    async def _open(self, link: Link) -> None:
        self._base, self._spent, self._soon = self._last, 0, []
        self._ready.clear()
        self._id = link.next_id(self._frame)
        payload = [self._queue.handle, self.credit, self.acknowledging, *number_of(self._transaction)]
        self._link = link
        await link.request(Frame.SUBSCRIBE, payload, self._id)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.remove(self)
        link = self._link
        if link is None:
            return
        if link.lost is None and not self._finished:
            self._acknowledge_now()
            with suppress(ConnectionLost):  # which ends it as well
                await link.request(Frame.UNSUBSCRIBE, [self._id])
        link.forget(self._id)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> ReceivedMessage:
        """Return the next message. Raises the error that ended the subscription: QueueDeleted,
        ConnectionLost.
        """
        while not self._ready:
            if not await self._wait():
                raise StopAsyncIteration
        message = self._ready.popleft()
        if not self.acknowledging:
            self._spend(1)
        return message

    async def batch(self, limit: int = 1024) -> list[ReceivedMessage]:
        """Wait for a message, then return all messages that have arrived, at most `limit`. The list is empty
        when the subscription has ended.
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
        """Remove `first`, or all messages delivered from `first` to `last`, from the queue; returns when the
        removal is durable.

        Raises ConnectionLost if the messages were delivered on a link that was lost: they will be
        redelivered.
        """
        self._acknowledge_now()
        await self._settle(Frame.ACKNOWLEDGE, first, last or first)

    def acknowledge_soon(self, message: ReceivedMessage) -> None:
        """Acknowledge a message without waiting; the acknowledgments of one turn of the event loop share a
        frame.
        """
        if message.tag <= self._base:
            return
        if not self._soon:
            asyncio.get_running_loop().call_soon(self._acknowledge_now)
        self._soon.append(message.tag)

    async def release(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Return `first`, or all messages delivered from `first` to `last`, to their places in the queue.
        Raises as `acknowledge`.
        """
        await self._settle(Frame.RELEASE, first, last or first)

    # ------------------------------------------------------------------------------------------- inside

    async def _settle(self, kind: Frame, first: ReceivedMessage, last: ReceivedMessage) -> None:
        base, link = self._base, self._link
        if link is None or first.tag <= base:
            raise ConnectionLost("the messages were delivered on a lost connection: they are delivered again")
        await link.request(kind, [self._id, first.tag - base, last.tag - base])
        if base == self._base:
            self._spend(last.tag - first.tag + 1)

    def _end(self, error: MSMQError | None) -> None:
        if self._finished:
            return
        self._finished = True
        self._ended = error
        self._channel.remove(self)
        self._wake()

    def _frame(self, kind: int, value: Any) -> None:
        if kind == Frame.DELIVERY:
            tag, messages = value
            tag += self._base
            self._last = tag + len(messages) - 1
            self._ready.extend(map(ReceivedMessage, messages, range(tag, tag + len(messages))))
            self._wake()
        elif kind == Frame.ENDED:
            code, _, text = value
            lost = None if self._link is None else self._link.lost
            if lost is None:
                self._end(from_wire(code, text) if code else None)
            elif self._channel.lasting:
                self._ready.clear()  # they come again
            else:
                self._end(lost)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _wait(self) -> bool:
        """Wait until messages arrive or the subscription ends. Returns False if it has ended without an
        error; raises the error that ended it.
        """
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
        link = self._link
        if self._spent * 2 >= self.credit and link is not None and link.lost is None and not self._finished:
            link.post(Frame.CREDIT, [self._id, self._spent])
            self._spent = 0

    def _acknowledge_now(self) -> None:
        tags, self._soon = self._soon, []
        link, base = self._link, self._base
        if not tags or link is None or link.lost is not None or self._finished:
            return
        tags.sort()
        start = 0
        for index in range(1, len(tags) + 1):
            if index == len(tags) or tags[index] != tags[index - 1] + 1:
                link.post(Frame.ACKNOWLEDGE, [self._id, tags[start] - base, tags[index - 1] - base])
                start = index
        self._spend(len(tags))
