"""High-throughput sending: messages posted in one turn of the event loop share frames, without a task or
future for each message.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Any

import msgpack

from msmq_fast.client.channel import Channel, OpenQueue
from msmq_fast.client.errors import BatchRefused, ConnectionLost, Refusal, SendInDoubt, from_wire
from msmq_fast.client.message import Message, bulk, to_wire
from msmq_fast.client.transaction import Single, Transaction
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import HEADER, MIN_LENGTH, Frame, SendFlag

FLUSH_BYTES = 262_144


class Sender:
    """A sender that forms batches. Made by `Queue.sender()`; the end of `async with queue.sender() as
    sender:` waits until all messages are acknowledged.

    `post` never waits; `send` waits while `window` messages are unacknowledged. If earlier messages failed,
    the next call raises their error: BatchRefused (with indices counted from the first message of the
    sender), or ConnectionLost. `acknowledged` counts the messages that are stored.

    SendInDoubt is raised once for each lost connection and holds the messages that were in flight on it. With
    a connection that reconnects, the sender can still be used after that: messages that were not sent yet are
    sent on the next link, and `send` waits for that link once the window is full.
    """

    def __init__(
        self,
        channel: Channel,
        queue: OpenQueue,
        window: int,
        batch: int,
        transaction: Transaction | Single | None = None,
    ) -> None:
        self.posted = 0
        self.acknowledged = 0
        self.refusals: list[Refusal] = []
        self._channel = channel
        self._queue = queue
        self._link = channel.link
        self._restored = False  # in `async with`: the channel gives it the next link
        self._loop = asyncio.get_running_loop()
        self._flags = int(SendFlag.SINGLE) if isinstance(transaction, Single) else 0
        self._transaction = transaction if isinstance(transaction, Transaction) else None
        self._window = window
        self._batch = min(batch, channel.hello["max_batch"])
        self._max_bytes = channel.hello["max_message"]
        self._packer = msgpack.Packer(autoreset=False)
        self._queued: list[Message] = []
        self._bytes = 0
        self._scheduled = False
        self._next = 0  # number of the next message that leaves
        self._answered = 0  # messages with an answer, or in doubt
        self._doubtful: list[Message] = []
        self._waiter: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Sender:
        await self._channel.live()
        self._link = self._channel.link
        self._restored = self._transaction is None
        self._channel.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            self._channel.remove(self)

    async def restore(self, link: Link) -> None:
        """Continue on a new link: send the messages that are still queued."""
        if self._queue.ended is not None or not self._restored:
            self._restored = False
        else:
            self._link = self._channel.link  # the same as `link`
            self._flush()
        self._wake()

    def give_up(self, error: MSMQError) -> None:
        """Stop the sender: the client does not connect again."""
        self._restored = False
        self._wake()

    @property
    def unacknowledged(self) -> int:
        """Number of posted messages that the server has neither accepted nor refused yet."""
        return self.posted - self._answered

    @property
    def unsent(self) -> list[Message]:
        """Posted messages that are still queued. After a lost connection, these were certainly not sent."""
        return list(self._queued)

    def post(self, message: Message) -> None:
        """Queue one message; it is sent together with the other messages that are posted in this turn of the
        event loop.

        Raises the errors of earlier messages; `message` is then not queued.
        """
        if self._link.lost is not None or self.refusals or self._doubtful:
            self._check()
        size = bulk(message, self._max_bytes)
        if self._queued and self._bytes + size > self._max_bytes:
            self._flush()
        self._queued.append(message)
        self._bytes += size
        self.posted += 1
        if len(self._queued) >= self._batch or self._bytes >= FLUSH_BYTES:
            self._flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._tick)

    async def send(self, message: Message) -> None:
        """Queue one message once there is room in the window; returns before the message is acknowledged.

        Raises the errors of earlier messages; `message` is then not queued.
        """
        if self.posted - self._answered >= self._window or self._link.congested:
            await self.ready()
        self.post(message)

    async def ready(self) -> None:
        """Wait until there is room in the window."""
        self._flush()
        try:
            await self._link.drain()
        except ConnectionLost:
            if not self._lasting:
                raise
        while self.unacknowledged >= self._window and not self._doubtful:
            await self._next_answer()
        self._check()

    async def flush(self) -> None:
        """Send the queued messages and wait until all messages are acknowledged.

        Raises BatchRefused, ConnectionLost; SendInDoubt for messages that were not answered.
        """
        self._flush()
        while self.unacknowledged and (self._link.lost is None or self._lasting):
            await self._next_answer()
        self._check()

    # ------------------------------------------------------------------------------------------- inside

    @property
    def _lasting(self) -> bool:
        return self._restored and self._channel.lasting

    def _check(self) -> None:
        if self._doubtful:
            doubtful, self._doubtful = self._doubtful, []
            reason = "the connection was lost" if self._link.lost is None else self._link.lost.detail
            raise SendInDoubt(doubtful, self.acknowledged, reason)
        if self.refusals:
            refusals, self.refusals = self.refusals, []
            raise BatchRefused(self.acknowledged, refusals)
        if self._link.lost is not None and not self._lasting:
            raise self._queue.ended or self._link.lost

    def _tick(self) -> None:
        self._scheduled = False
        self._flush()

    def _flush(self) -> None:
        if not self._queued or self._link.lost is not None:
            return
        if len(self._queued) <= self._batch and self._bytes <= self._max_bytes:
            self._write(self._queued)
        else:  # they waited for a link
            for part in self._parts():
                self._write(part)
        self._queued = []
        self._bytes = 0

    def _parts(self) -> list[list[Message]]:
        """Split the queued messages into parts that fit into one SEND frame each."""
        parts: list[list[Message]] = [[]]
        size = 0
        for message in self._queued:
            more = bulk(message, self._max_bytes)
            if parts[-1] and (len(parts[-1]) >= self._batch or size + more > self._max_bytes):
                parts.append([])
                size = 0
            parts[-1].append(message)
            size += more
        return parts

    def _write(self, messages: list[Message]) -> None:
        """Send a SEND frame: [handle, flags, [message, …]], with the transaction number as a fourth value if
        there is a transaction.
        """
        inside = self._transaction
        count = len(messages)
        head = b"".join(
            (
                b"\x93" if inside is None else b"\x94",
                msgpack.packb(self._queue.handle),
                bytes((self._flags, 0xDD)),
                count.to_bytes(4, "big"),
            )
        )
        tail = b"" if inside is None else msgpack.packb(inside.number)
        packer, link = self._packer, self._link
        for message in messages:
            packer.pack(to_wire(message))
        first = self._next
        self._next += count
        request_id = link.next_id(lambda kind, value: self._answer(request_id, kind, value, first, messages))
        with packer.getbuffer() as packed:
            length = MIN_LENGTH + len(head) + len(packed) + len(tail)
            frame = b"".join((HEADER.pack(length, Frame.SEND, request_id), head, packed, tail))
        packer.reset()
        with suppress(ConnectionLost):  # about to end: then the messages are in doubt
            link.write(frame)

    def _answer(self, request_id: int, kind: int, value: Any, first: int, messages: list[Message]) -> None:
        if kind == Frame.SENT:
            taken, refused = value[0], value[1]
            self.acknowledged += taken
            for index, code, _, text in refused:
                self.refusals.append(Refusal(first + index, from_wire(code, text)))
        elif kind == Frame.ENDED:  # with the connection
            self._doubtful += messages
        else:  # the whole frame was refused
            code, _, text = value
            self.refusals += [Refusal(first + index, from_wire(code, text)) for index in range(len(messages))]
        self._link.forget(request_id)
        self._answered += len(messages)
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _next_answer(self) -> None:
        if self._link.lost is not None and not self._lasting:
            self._check()
        if self._waiter is None:
            self._waiter = self._loop.create_future()
        await asyncio.shield(self._waiter)
