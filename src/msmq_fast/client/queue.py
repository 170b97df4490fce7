"""An open queue: sending, receiving, peeking, looking up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any

from msmq_fast.app.wire import INFINITE, Frame, Lookup, SendFlag
from msmq_fast.client.errors import BatchRefused, Refusal, from_wire
from msmq_fast.client.message import Message, bulk, format_message_id, to_wire
from msmq_fast.client.message import from_wire as message_from_wire
from msmq_fast.client.sender import Sender
from msmq_fast.client.subscription import Subscription
from msmq_fast.client.transport import Link


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

    async def send(self, message: Message | bytes, **properties: Any) -> str:
        """Send one message; returns its message id when it is kept (recoverable) or in memory (express).

        `message` may be a body, with properties of Message as keywords. Raises what the queue manager refuses
        it with: LabelTooLong, InsufficientResources, IllegalFormatName, AccessDenied.
        """
        if not isinstance(message, Message):
            message = Message(message, **properties)
        return (await self.send_many([message]))[0]

    async def send_many(self, messages: Iterable[Message]) -> list[str]:
        """Send messages in order, as few frames; returns their ids when all are kept.

        Raises BatchRefused if some were refused (a lone message raises the refusal itself); the others are
        kept. InsufficientResources for one that fits into no packet: then none is sent.
        """
        frames = [self._link.request(Frame.SEND, part) for part in list(self._parts(messages))]
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

    def _parts(self, messages: Iterable[Message]) -> Iterable[list[Any]]:
        """SEND payloads within the limits of a frame."""
        limit, room = self._hello["max_batch"], self._hello["max_message"]
        part: list[tuple[Any, ...]] = []
        size = 0
        for message in messages:
            more = bulk(message, room) + 448
            if part and (len(part) >= limit or size + more > room):
                yield [self._handle, int(SendFlag.IDS), part]
                part, size = [], 0
            part.append(to_wire(message))
            size += more
        if part:
            yield [self._handle, int(SendFlag.IDS), part]

    def sender(self, *, window: int = 8192, batch: int = 256) -> Sender:
        """A sender that batches by itself, for throughput: see Sender."""
        return Sender(
            self._link, self._handle, window, min(batch, self._hello["max_batch"]), self._hello["max_message"]
        )

    # ------------------------------------------------------------------------------------------- receiving

    async def receive(self, timeout: float | None = None) -> Message:  # noqa: ASYNC109
        """Remove and return the first message, waiting for one up to `timeout` seconds (None: for ever).

        Raises IOTimeout. If the call is cancelled, a message that was on its way goes back only if the
        server still had it; use an acknowledging subscription where that matters.
        """
        return await self._read(timeout, peek=False)

    async def peek(self, timeout: float | None = None) -> Message:  # noqa: ASYNC109
        """The first message, which stays in the queue; waits like `receive`. Raises IOTimeout."""
        return await self._read(timeout, peek=True)

    async def lookup(
        self, lookup_id: int = 0, operation: Lookup = Lookup.CURRENT, *, receive: bool = False
    ) -> Message:
        """The message with a lookup id, or the one next to it, or the first or last.

        Raises MessageNotFound.
        """
        fields = await self._link.request(
            Frame.LOOKUP, [self._handle, lookup_id, int(operation), not receive]
        )
        return message_from_wire(fields)

    async def _read(self, timeout: float | None, *, peek: bool) -> Message:  # noqa: ASYNC109
        wait = None if timeout is None else min(max(int(timeout * 1000), 0), INFINITE - 1)
        number = self._link.next_id()
        future = self._link.request(Frame.RECEIVE, [self._handle, wait, peek], number)
        try:
            return message_from_wire(await future)
        except asyncio.CancelledError:
            self._link.post_cancel(number)
            raise

    def subscribe(self, credit: int = 256, *, acknowledge: bool = True) -> Subscription:
        """Messages as they come, at most `credit` ahead of what this program has dealt with.

        With `acknowledge` messages stay locked in the queue until they are acknowledged, else they are
        removed before they are delivered.
        """
        return Subscription(
            self._link, self._handle, min(credit, self._hello["max_credit"]), acknowledge=acknowledge
        )

    async def __aiter__(self) -> AsyncIterator[Message]:
        async with self.subscribe() as messages:
            async for message in messages:
                yield message
                messages.acknowledge_soon(message)

    async def purge(self) -> int:
        """Remove all messages; their number."""
        return int(await self._link.request(Frame.PURGE, [self._handle]))
