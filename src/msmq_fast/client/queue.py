"""An open queue: sends, receives, peeks and looks up messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from msmq_fast.client.channel import Channel
from msmq_fast.client.cursor import Cursor
from msmq_fast.client.errors import BatchRefused, ConnectionLost, Refusal, SendInDoubt, from_wire
from msmq_fast.client.message import Message, ReceivedMessage, bulk, format_message_id, to_wire
from msmq_fast.client.opening import Opening
from msmq_fast.client.sender import Sender
from msmq_fast.client.subject import expecting
from msmq_fast.client.subscription import Subscription
from msmq_fast.client.transaction import Single, Transaction, number_of
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import INFINITE, Access, Frame, Lookup, MessageSizes, SendFlag, Share


class Queue:
    """An open queue of a connection; after a lost connection, it is opened again. Close it with `close()` or
    `async with`.

    `async for message in queue` receives without end. A message is removed when the loop asks for the next
    one: if the loop ends while it processes a message, that message stays in the queue.
    """

    def __init__(self, channel: Channel, name: str, access: Access, share: Share) -> None:
        self.name = name
        self._channel = channel
        self._access = access
        self._share = share
        self._handle = 0
        self._link = channel.link  # on which it is open
        self.ended: MSMQError | None = None
        """The error with which the server refused to open the queue again; None while the queue is usable."""

    async def opened(self) -> Self:
        """Open the queue at the server, and return it: see Connection.open."""
        await self._open(await self._channel.live())
        self._channel.add(self)
        return self

    async def restore(self, link: Link) -> None:
        """Open the queue again on a new link. If the server refuses that, every later call raises its
        error.
        """
        try:
            await self._open(link)
        except ConnectionLost:
            raise
        except MSMQError as error:
            self.ended = error
            self._channel.remove(self)

    def give_up(self, error: MSMQError) -> None:
        """Do nothing: later calls raise the error that the channel holds."""

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
        """The queue's handle in the frames of the current link."""
        return self._handle

    async def request(self, kind: Frame, *fields: Any) -> Any:
        """Make one request about this queue for which the client has no method; returns the payload of the
        reply.
        """
        return await (await self.live()).request(kind, [self._handle, *fields])

    async def live(self) -> Link:
        """Return the link on which the queue is open. Raises ConnectionLost, or the error with which the
        server refused to open the queue again.
        """
        link = await self._channel.live()
        if self.ended is not None:
            raise self.ended
        return link

    async def close(self) -> None:
        """Close the queue; its waiting calls raise OperationCancelled.

        Raises InvalidHandle if it is closed already.
        """
        self._channel.remove(self)
        if (
            self._link.lost is None or not self._channel.lasting
        ):  # otherwise the server closed it with its link
            await self._link.request(Frame.CLOSE, [self._handle])

    # ------------------------------------------------------------------------------------------- sending

    async def send(
        self, message: Message | bytes, *, transaction: Transaction | Single | None = None, **properties: Any
    ) -> str:
        """Send one message; returns its message id when the server has stored the message on disk
        (recoverable) or in memory (express).

        `message` may also be a body. Keyword arguments are properties of Message and take precedence over
        those of `message`. In a `transaction`, the message is sent at the commit; SINGLE_MESSAGE sends it in
        a transaction of its own. If the queue manager refuses the message, raises the error that the queue
        manager reports: LabelTooLong, InsufficientResources, IllegalFormatName, AccessDenied,
        TransactionUsage.
        """
        if isinstance(message, ReceivedMessage):
            raise TypeError("a ReceivedMessage cannot be sent: send message.to_message()")
        if isinstance(message, str):
            raise TypeError("a body must be bytes: text.encode(), Message.of_text(text) or Message.of(value)")
        if not isinstance(message, Message):
            message = Message(message, **properties)
        elif properties:
            message = replace(message, **properties)
        return (await self.send_many([message], transaction=transaction))[0]

    async def send_many(
        self, messages: Iterable[Message], *, transaction: Transaction | Single | None = None
    ) -> list[str]:
        """Send messages in order, in as few frames as possible; returns their ids when all messages are
        stored or, in a `transaction`, when the transaction has accepted them.

        Raises BatchRefused if the server refused some messages and stored the others (a single message raises
        its own error); InsufficientResources if a message does not fit into a packet: then none is sent;
        SendInDoubt if the connection is lost before the answer.
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
        """Split the messages into SEND payloads within the limits of a frame."""
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
        """Return a sender that combines messages into batches, for high throughput: see Sender."""
        return Sender(self._channel, self, window, batch, transaction)

    # ------------------------------------------------------------------------------------------- receiving

    async def receive(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Remove and return the first message. If the queue is empty, wait up to `timeout` seconds for a
        message (None: without limit).

        In a `transaction`, the commit removes the message. A message that is larger than `limits` stays in
        the queue; the call raises BufferTooSmall with the sizes of the message. Raises IOTimeout if no
        message arrives in time.

        If the call is cancelled, a message returns to the queue only if the server has not sent it yet; a
        message in flight is lost. Use an acknowledging subscription if this matters.
        """
        return await self._read(timeout, False, transaction, limits)

    async def peek(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Return the first message without removing it; waits like `receive`. Raises IOTimeout,
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
        """Return the message with a lookup id, a neighbour of that message, or the first or last message.

        `receive` removes the message; in a `transaction`, the commit removes it. Raises MessageNotFound,
        BufferTooSmall.
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

    def cursor(self, *, after: ReceivedMessage | int | None = None) -> Opening[Cursor]:
        """Return a cursor before the first message, or after the place of `after`, a message or a lookup id:
        see Cursor. The message need not be in the queue any more, so that a program can continue where an
        earlier cursor was when its connection was lost.

        Raises AccessDenied; UnsupportedOperation for `after` in a queue of another computer.
        """
        return Opening(self._cursor(after))

    async def _cursor(self, after: ReceivedMessage | int | None) -> Cursor:
        link = await self.live()
        place = [] if after is None else [after if isinstance(after, int) else after.lookup_id]
        (number,) = await link.request(Frame.CURSOR_OPEN, [self._handle, *place])
        return Cursor(link, number)

    async def move(
        self, message: ReceivedMessage | int, target: Queue, *, transaction: Transaction | None = None
    ) -> None:
        """Move a message, given as a message or its lookup id, to `target`. The lookup id does not change.

        `target` must be open with Access.MOVE. It must be a subqueue of this queue (`orders;later`), or, if
        this queue is a subqueue, the queue to which it belongs. Raises MessageNotFound, MessageLocked;
        InvalidParameter if neither queue is a subqueue of the other.
        """
        lookup_id = message if isinstance(message, int) else message.lookup_id
        link = await self.live()
        payload = [self._handle, target.handle, lookup_id, *number_of(transaction)]
        await link.request(Frame.MOVE, payload)

    async def reject(self, message: ReceivedMessage | int, *, transaction: Transaction) -> None:
        """Reject a message, given as a message or its lookup id, that was received in `transaction`.

        At the commit the message leaves the queue, its sender gets a negative acknowledgment
        (MessageClass.NACK_RECEIVE_REJECTED), and it becomes a dead letter if the sender requested that.
        Raises MessageNotFound.
        """
        lookup_id = message if isinstance(message, int) else message.lookup_id
        link = await self.live()
        await link.request(Frame.REJECT, [self._handle, lookup_id, *number_of(transaction)])

    def subscribe(
        self, credit: int = 256, *, acknowledge: bool = True, transaction: Transaction | None = None
    ) -> Subscription:
        """Return a stream of messages; the server sends at most `credit` messages ahead of those that this
        program has processed.

        With `acknowledge`, messages stay locked in the queue until they are acknowledged; without it, they
        are removed before delivery. In a `transaction`, the commit removes them.
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

    async def purge(self, expected: Sequence[str] | None = None) -> int | None:
        """Remove all messages; returns their number, or None for a queue of another computer, because that
        computer does not report the number. With `expected`, raises Changed as `connection.admin.queues.set`.
        """
        removed = await self.request(Frame.PURGE, *expecting(expected))
        return None if removed is None else int(removed)
