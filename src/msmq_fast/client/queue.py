"""An open queue: sending, receiving, peeking, looking up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Any

from msmq_fast.client.cursor import Cursor
from msmq_fast.client.errors import BatchRefused, Refusal, from_wire
from msmq_fast.client.message import Message, ReceivedMessage, bulk, format_message_id, to_wire
from msmq_fast.client.sender import Sender
from msmq_fast.client.subscription import Subscription
from msmq_fast.client.transaction import Single, Transaction, number_of
from msmq_fast.client.transport import Link
from msmq_fast.protocol.frames import INFINITE, Frame, Lookup, SendFlag


class Queue:
    """An open queue of a connection. Close it with `close()` or `async with`.

    `async for message in queue` receives for ever: each message is removed when the loop asks for the next
    one, so that a loop that ends early leaves what it did not finish.
    """

    def __init__(self, link: Link, name: str, handle: int, hello: dict[str, Any]) -> None:
        self.name = name
        self._link = link
        self._handle = handle
        self._hello = hello

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._link.lost is None:
            await self.close()

    @property
    def handle(self) -> int:
        """Its number in the frames of this connection."""
        return self._handle

    async def request(self, kind: Frame, *fields: Any) -> Any:
        """One request about this queue, for parts of the protocol that have no method here."""
        return await self._link.request(kind, [self._handle, *fields])

    async def close(self) -> None:
        """Close the queue; its waiting calls raise OperationCancelled.

        Raises InvalidHandle if it is closed already.
        """
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
        kept. InsufficientResources for one that fits into no packet: then none is sent.
        """
        flags = int(SendFlag.IDS)
        number: list[Any] = []
        if isinstance(transaction, Transaction):
            number = number_of(transaction)
        elif transaction is not None:
            flags |= SendFlag.SINGLE
        parts = [[self._handle, flags, part, *number] for part in self._parts(messages)]
        frames = [self._link.request(Frame.SEND, part) for part in parts]
        refusals: list[Refusal] = []
        ids: list[str] = []
        taken = 0
        guid = self._hello["guid"]
        for count, refused, ordinals in await asyncio.gather(*frames):
            refusals += [Refusal(len(ids) + index, from_wire(code, text)) for index, code, _, text in refused]
            ids += [format_message_id(guid + ordinal.to_bytes(4, "little")) for ordinal in ordinals]
            taken += count
        if refusals:
            raise refusals[0].error if len(ids) == 1 else BatchRefused(taken, refusals)
        return ids

    def _parts(self, messages: Iterable[Message]) -> Iterable[list[tuple[Any, ...]]]:
        """The messages of SEND payloads within the limits of a frame."""
        limit, room = self._hello["max_batch"], self._hello["max_message"]
        part: list[tuple[Any, ...]] = []
        size = 0
        for message in messages:
            more = bulk(message, room) + 448
            if part and (len(part) >= limit or size + more > room):
                yield part
                part, size = [], 0
            part.append(to_wire(message))
            size += more
        if part:
            yield part

    def sender(
        self, *, window: int = 8192, batch: int = 256, transaction: Transaction | Single | None = None
    ) -> Sender:
        """A sender that batches by itself, for throughput: see Sender."""
        return Sender(
            self._link,
            self._handle,
            window,
            min(batch, self._hello["max_batch"]),
            self._hello["max_message"],
            transaction,
        )

    # ------------------------------------------------------------------------------------------- receiving

    async def receive(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        transaction: Transaction | None = None,
    ) -> ReceivedMessage:
        """Remove and return the first message, waiting for one up to `timeout` seconds (None: for ever). In a
        `transaction` it is removed with the commit.

        Raises IOTimeout. If the call is cancelled, a message that was on its way goes back only if the
        server still had it; use an acknowledging subscription where that matters.
        """
        return await self._read(timeout, False, transaction)

    async def peek(self, timeout: float | None = None) -> ReceivedMessage:  # noqa: ASYNC109 - the server waits
        """The first message, which stays in the queue; waits like `receive`. Raises IOTimeout."""
        return await self._read(timeout, True, None)

    async def lookup(
        self,
        lookup_id: int = 0,
        operation: Lookup = Lookup.CURRENT,
        *,
        receive: bool = False,
        transaction: Transaction | None = None,
    ) -> ReceivedMessage:
        """The message with a lookup id, or the one next to it, or the first or last; `receive` removes it, in
        a `transaction` with the commit.

        Raises MessageNotFound.
        """
        payload = [self._handle, lookup_id, int(operation), not receive, *number_of(transaction)]
        return ReceivedMessage(await self._link.request(Frame.LOOKUP, payload))

    async def _read(
        self,
        timeout: float | None,  # noqa: ASYNC109 - the server waits
        peek: bool,
        transaction: Transaction | None,
    ) -> ReceivedMessage:
        wait = None if timeout is None else min(max(int(timeout * 1000), 0), INFINITE - 1)
        number = self._link.next_id()
        payload = [self._handle, wait, peek, *number_of(transaction)]
        future = self._link.request(Frame.RECEIVE, payload, number)
        try:
            return ReceivedMessage(await future)
        except asyncio.CancelledError:
            self._link.post_cancel(number)
            raise

    async def cursor(self) -> Cursor:
        """A cursor before the first message: see Cursor. Raises AccessDenied."""
        (number,) = await self._link.request(Frame.CURSOR_OPEN, [self._handle])
        return Cursor(self._link, number)

    async def move(
        self, message: ReceivedMessage | int, target: Queue, *, transaction: Transaction | None = None
    ) -> None:
        """Move a message, or the one with a lookup id, to `target`, which is open with Access.MOVE: a
        subqueue of this queue (`orders;later`), or the queue of this subqueue. It keeps its lookup id.

        Raises MessageNotFound, MessageLocked, InvalidParameter for queues of different families.
        """
        lookup_id = message if isinstance(message, int) else message.lookup_id
        payload = [self._handle, target.handle, lookup_id, *number_of(transaction)]
        await self._link.request(Frame.MOVE, payload)

    async def reject(self, message: ReceivedMessage | int, *, transaction: Transaction) -> None:
        """Give up a message, or the one with a lookup id, that was received in `transaction`: with the commit
        it is gone, and its sender hears of it (MessageClass 0xC004) and has it as a dead letter, if he asked
        for that. Raises MessageNotFound.
        """
        lookup_id = message if isinstance(message, int) else message.lookup_id
        await self._link.request(Frame.REJECT, [self._handle, lookup_id, *number_of(transaction)])

    def subscribe(
        self, credit: int = 256, *, acknowledge: bool = True, transaction: Transaction | None = None
    ) -> Subscription:
        """Messages as they come, at most `credit` ahead of what this program has dealt with.

        With `acknowledge` messages stay locked in the queue until they are acknowledged, else they are
        removed before they are delivered. In a `transaction` the commit removes them.
        """
        return Subscription(
            self._link,
            self._handle,
            min(credit, self._hello["max_credit"]),
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
        removed = await self._link.request(Frame.PURGE, [self._handle])
        return None if removed is None else int(removed)
