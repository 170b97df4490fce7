"""Sending for throughput: messages posted in one turn of the loop share frames, without a task or future
for each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Any

import msgpack

from msmq_fast.client.errors import BatchRefused, Refusal, from_wire
from msmq_fast.client.message import Message, bulk, to_wire
from msmq_fast.client.transaction import Single, Transaction
from msmq_fast.client.transport import Link
from msmq_fast.protocol.frames import HEADER, MIN_LENGTH, Frame, SendFlag

FLUSH_BYTES = 262_144


class Sender:
    """Made by `Queue.sender()`; `async with queue.sender() as sender:` ends with everything acknowledged.

    `post` never waits; `send` waits while `window` messages are not acknowledged yet. Refusals
    (BatchRefused, with indices counted from the first message of the sender) and a lost connection are
    raised by the next call. `acknowledged` counts messages that are kept.
    """

    def __init__(
        self,
        link: Link,
        handle: int,
        window: int,
        batch: int,
        max_bytes: int,
        transaction: Transaction | Single | None = None,
    ) -> None:
        self.posted = 0
        self.acknowledged = 0
        self.refusals: list[Refusal] = []
        self._link = link
        self._loop = asyncio.get_running_loop()
        # [handle, flags, [message, …]] around the messages, or [handle, flags, [message, …], transaction]
        flags = int(SendFlag.SINGLE) if isinstance(transaction, Single) else 0
        inside = isinstance(transaction, Transaction)
        self._head = (b"\x94" if inside else b"\x93") + msgpack.packb(handle) + bytes((flags, 0xDD))
        self._tail = msgpack.packb(transaction.number) if isinstance(transaction, Transaction) else b""
        self._window = window
        self._batch = batch
        self._max_bytes = max_bytes
        self._packer = msgpack.Packer(autoreset=False)
        self._packed = 0
        self._bytes = 0
        self._scheduled = False
        self._frames: deque[int] = deque()  # messages of each frame without an answer, in order of sending
        self._answered = 0  # messages with an answer, refused ones included
        self._waiter: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Sender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.flush()

    @property
    def unacknowledged(self) -> int:
        """Messages posted and not answered yet."""
        return self.posted - self._answered

    def post(self, message: Message) -> None:
        """Queue one message; it leaves with the others of this turn of the loop.

        Raises what went wrong before.
        """
        if self._link.lost is not None or self.refusals:
            self._check()
        size = bulk(message, self._max_bytes)
        if self._packed and self._bytes + size > self._max_bytes:
            self._flush()
        self._packer.pack(to_wire(message))
        self._packed += 1
        self._bytes += size
        self.posted += 1
        if self._packed >= self._batch or self._bytes >= FLUSH_BYTES:
            self._flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._tick)

    async def send(self, message: Message) -> None:
        """Queue one message once there is room in the window; returns before it is acknowledged."""
        self.post(message)
        if self.posted - self._answered >= self._window or self._link.congested:
            await self.ready()

    async def ready(self) -> None:
        """Wait until there is room in the window."""
        self._flush()
        await self._link.drain()
        while self.unacknowledged >= self._window:
            await self._next_answer()
        self._check()

    async def flush(self) -> None:
        """Send what is queued and wait until all of it is acknowledged.

        Raises BatchRefused, ConnectionLost.
        """
        self._flush()
        while self.unacknowledged and self._link.lost is None:
            await self._next_answer()
        self._check()

    # ------------------------------------------------------------------------------------------- inside

    def _check(self) -> None:
        if self._link.lost is not None:
            raise self._link.lost
        if self.refusals:
            refusals, self.refusals = self.refusals, []
            raise BatchRefused(self.acknowledged, refusals)

    def _tick(self) -> None:
        self._scheduled = False
        if self._link.lost is None:
            self._flush()

    def _flush(self) -> None:
        count = self._packed
        if not count:
            return
        head = self._head + count.to_bytes(4, "big")
        link = self._link
        first = self.posted - count
        request_id = link.next_id(lambda kind, value: self._answer(request_id, kind, value, first, count))
        with self._packer.getbuffer() as messages:
            length = MIN_LENGTH + len(head) + len(messages) + len(self._tail)
            frame = b"".join((HEADER.pack(length, Frame.SEND, request_id), head, messages, self._tail))
        self._packer.reset()
        self._packed = self._bytes = 0
        link.write(frame)

    def _answer(self, request_id: int, kind: int, value: Any, first: int, count: int) -> None:
        if kind == Frame.SENT:
            taken, refused = value[0], value[1]
            self.acknowledged += taken
            for index, code, _, text in refused:
                self.refusals.append(Refusal(first + index, from_wire(code, text)))
        else:  # the connection ended, or the whole frame was refused
            code, _, text = value
            self.refusals += [Refusal(first + index, from_wire(code, text)) for index in range(count)]
        self._link.forget(request_id)
        self._answered += count
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _next_answer(self) -> None:
        if self._link.lost is not None:
            raise self._link.lost
        if self._waiter is None:
            self._waiter = self._loop.create_future()
        await asyncio.shield(self._waiter)
