"""An open queue: sending, receiving, peeking, looking up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any

from msmq_fast.client.channel import Channel
from msmq_fast.client.cursor import Cursor
from msmq_fast.client.errors import BatchRefused, ConnectionLost, Refusal, SendInDoubt, from_wire
from msmq_fast.client.message import Message, ReceivedMessage, bulk, format_message_id, to_wire
from msmq_fast.client.opening import Opening
from msmq_fast.client.sender import Sender
from msmq_fast.client.subscription import Subscription
from msmq_fast.client.transaction import Single, Transaction, number_of
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import INFINITE, Access, Frame, Lookup, MessageSizes, SendFlag, Share


class Queue:
    """An open queue of a connection, opened again with it. Close it with `close()` or `async with`.

    `async for message in queue` receives for ever: each message is removed when the loop asks for the next
    one, so that a loop that ends early leaves what it did not finish.
    """

    def __init__(self, channel: Channel, name: str, access: Access, share: Share) -> None:
        self.name = name
        self._channel = channel
        self._access = access
        self._share = share
        self._handle = 0
        self._link = channel.link  # on which it is open
        self.ended: MSMQError | None = None
        """Why it could not be opened again."""

    @classmethod
    async def open(cls, channel: Channel, name: str, access: Access, share: Share) -> Queue:
        """Open it: see Connection.open."""
        queue = cls(channel, name, access, share)
        await queue._open(await channel.live())
        channel.add(queue)
        return queue

    async def restore(self, link: Link) -> None:
        """Open it again on a new link; what refuses it now is raised by every later call."""
        try:
            await self._open(link)
        except ConnectionLost:
            raise
        except MSMQError as error:
            self.ended = error
            self._channel.remove(self)

    def give_up(self, error: MSMQError) -> None:
        """No further link comes: later calls find that in the channel."""

    async def _open(self, link: Link) -> None:
        (self._handle,) = await link.request(Frame.OPEN, [self.name, int(self._access), int(self._share)])
        self._link = link

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.remove(self)
        if self.ended is None and self._link.lost is None:
            with suppress(ConnectionLost):  # which closes it as well
                await self.close()

    @property
    def handle(self) -> int:
        """Its number in the frames of the present link."""
        return self._handle

    async def request(self, kind: Frame, *fields: Any) -> Any:
        """One request about this queue, for parts of the protocol that have no method here."""
        return await (await self.live()).request(kind, [self._handle, *fields])

    async def live(self) -> Link:
        """The link on which it is open. Raises ConnectionLost, or why it could not be opened again."""
        link = await self._channel.live()
        if self.ended is not None:
            raise self.ended
        return link

    async def close(self) -> None:
        """Close the queue; its waiting calls raise OperationCancelled.

        Raises InvalidHandle if it is closed already.
        """
        self._channel.remove(self)
        if self._link.lost is None or not self._channel.lasting:  # else the server closed it with its link
            await self._link.request(Frame.CLOSE, [self._handle])

    # ------------------------------------------------------------------------------------------- sending

    async def send(
        self, message: Message | bytes, *, transaction: Transaction | Single | None = None, **properties: Any
    ) -> str:
        """Send one message; returns its message id when it is kept (recoverable) or in memory (express).

        `message` may be a body. Keywords are properties of Message, and win over those of a `message`. In a
        `transaction` it is sent with the commit; SINGLE_MESSAGE stands for one of its own. Raises what the
        queue manager refuses it with: LabelTooLong, InsufficientResources, IllegalFormatName, AccessDenied,
        TransactionUsage.
        """
        if isinstance(message, ReceivedMessage):
            raise TypeError("a received message is sent again as message.to_message()")
        if not isinstance(message, Message):
            message = Message(message, **properties)
        elif properties:
            message = replace(message, **properties)
        return (await self.send_many([message], transaction=transaction))[0]

    async def send_many(
        self, messages: Iterable[Message], *, transaction: Transaction | Single | None = None
    ) -> list[str]:
        """Send messages in order, as few frames; returns their ids when all are kept, or in a `transaction`
        when it has taken them up.

        Raises BatchRefused if some were refused (a lone message raises the refusal itself); the others are
        kept. InsufficientResources for one that fits into no packet: then none is sent. SendInDoubt if the
        connection is lost before the answer.
        """
        flags = int(SendFlag.IDS)
        if isinstance(transaction, Single):
            flags |= SendFlag.SINGLE
        parts = list(self._parts(messages))
        link = await self.live()
        number = number_of(transaction) if isinstance(transaction, Transaction) else []
        frames = [
            link.request(Frame.SEND, [self._handle, flags, [to_wire(message) for message in part], *number])
            for part in parts
        ]
        answers = await asyncio.gather(*frames, return_exceptions=True)
        refusals: list[Refusal] = []
        ids: list[str] = []
        doubtful: list[Message] = []
        taken = 0
        guid = self._channel.hello["guid"]
        for part, answer in zip(parts, answers, strict=True):
            if isinstance(answer, ConnectionLost):
                doubtful += part
                continue
            if isinstance(answer, BaseException):
                raise answer
            count, refused, ordinals = answer
            refusals += [Refusal(len(ids) + index, from_wire(code, text)) for index, code, _, text in refused]
            ids += [format_message_id(guid + ordinal.to_bytes(4, "little")) for ordinal in ordinals]
            taken += count
        if doubtful:
            raise SendInDoubt(doubtful, taken, link.lost.detail if link.lost is not None else "")
        if refusals:
            raise refusals[0].error if len(ids) == 1 else BatchRefused(taken, refusals)
        return ids

    def _parts(self, messages: Iterable[Message]) -> Iterable[list[Message]]:
        """The messages of SEND payloads within the limits of a frame."""
        limit, room = self._channel.hello["max_batch"], self._channel.hello["max_message"]
        part: list[Message] = []
        size = 0
        for message in messages:
            more = bulk(message, room) + 448
            if part and (len(part) >= limit or size + more > room):
                yield part
                part, size = [], 0
            part.append(message)
            size += more
        if part:
            yield part

    def sender(
        self, *, window: int = 8192, batch: int = 256, transaction: Transaction | Single | None = None
    ) -> Sender:
        """A sender that batches by itself, for throughput: see Sender."""
        return Sender(self._channel, self, window, batch, transaction)

    # ------------------------------------------------------------------------------------------- receiving

    async def receive(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Remove and return the first message, waiting for one up to `timeout` seconds (None: for ever). In a
        `transaction` it is removed with the commit. One that does not fit into `limits` stays, and raises
        BufferTooSmall with the sizes that it needs.

        Raises IOTimeout. If the call is cancelled, a message that was on its way goes back only if the
        server still had it; use an acknowledging subscription where that matters.
        """
        return await self._read(timeout, False, transaction, limits)

    async def peek(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """The first message, which stays in the queue; waits like `receive`. Raises IOTimeout,
        BufferTooSmall.
        """
        return await self._read(timeout, True, None, limits)

    async def lookup(
        self,
        lookup_id: int = 0,
        operation: Lookup = Lookup.CURRENT,
        *,
        receive: bool = False,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """The message with a lookup id, or the one next to it, or the first or last; `receive` removes it, in
        a `transaction` with the commit.

        Raises MessageNotFound, BufferTooSmall.
        """
        while True:
            link = await self.live()
            payload = [self._handle, lookup_id, int(operation), not receive, *number_of(transaction, limits)]
            try:
                return ReceivedMessage(await link.request(Frame.LOOKUP, payload))
            except ConnectionLost:
                if receive or not self._channel.lasting:
                    raise

    async def _read(
        self,
        timeout: float | None,  # noqa: ASYNC109 - the server waits
        peek: bool,
        transaction: Transaction | None,
        limits: MessageSizes | None,
    ) -> ReceivedMessage:
        wait = None if timeout is None else min(max(int(timeout * 1000), 0), INFINITE - 1)
        while True:
            link = await self.live()
            number = link.next_id()
            payload = [self._handle, wait, peek, *number_of(transaction, limits)]
            future = link.request(Frame.RECEIVE, payload, number)
            try:
                return ReceivedMessage(await future)
            except asyncio.CancelledError:
                link.post_cancel(number)
                raise
            except ConnectionLost:
                if not peek or not self._channel.lasting:
                    raise

    def cursor(self) -> Opening[Cursor]:
        """A cursor before the first message: see Cursor. Raises AccessDenied."""
        return Opening(self._cursor())

    async def _cursor(self) -> Cursor:
        link = await self.live()
        (number,) = await link.request(Frame.CURSOR_OPEN, [self._handle])
        return Cursor(link, number)

    async def move(
        self, message: ReceivedMessage | int, target: Queue, *, transaction: Transaction | None = None
    ) -> None:
        """Move a message, or the one with a lookup id, to `target`, which is open with Access.MOVE: a
        subqueue of this queue (`orders;later`), or the queue of this subqueue. It keeps its lookup id.

        Raises MessageNotFound, MessageLocked, InvalidParameter for queues of different families.
        """
        lookup_id = message if isinstance(message, int) else message.lookup_id
        link = await self.live()
        payload = [self._handle, target.handle, lookup_id, *number_of(transaction)]
        await link.request(Frame.MOVE, payload)

    async def reject(self, message: ReceivedMessage | int, *, transaction: Transaction) -> None:
        """Reject a message, or the one with a lookup id, that was received in `transaction`: with the commit
        it leaves the queue, its sender gets a negative acknowledgment (MessageClass.NACK_RECEIVE_REJECTED),
        and it becomes a dead letter if the sender asked for that. Raises MessageNotFound.
        """
        lookup_id = message if isinstance(message, int) else message.lookup_id
        link = await self.live()
        await link.request(Frame.REJECT, [self._handle, lookup_id, *number_of(transaction)])

    def subscribe(
        self, credit: int = 256, *, acknowledge: bool = True, transaction: Transaction | None = None
    ) -> Subscription:
        """Messages as they come, at most `credit` ahead of what this program has dealt with.

        With `acknowledge` messages stay locked in the queue until they are acknowledged, else they are
        removed before they are delivered. In a `transaction` the commit removes them.
        """
        return Subscription(
            self._channel,
            self,
            min(credit, self._channel.hello["max_credit"]),
            acknowledge=acknowledge and transaction is None,
            transaction=transaction,
        )

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        async with self.subscribe() as messages:
            async for message in messages:
                yield message
                messages.acknowledge_soon(message)

    async def purge(self) -> int | None:
        """Remove all messages; their number, None for a queue of another computer, which does not tell it."""
        removed = await self.request(Frame.PURGE)
        return None if removed is None else int(removed)
