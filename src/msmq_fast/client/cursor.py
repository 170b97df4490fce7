"""A cursor: a position in a queue at which a program peeks and receives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType

from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.message import ReceivedMessage
from msmq_fast.client.transaction import Transaction, number_of
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import IOTimeout
from msmq_fast.protocol.frames import INFINITE, CursorRead, Frame, MessageSizes


class Cursor:
    """A position in a queue, initially before the first message. A queue may have any number of cursors.

    `Queue.cursor()` makes a cursor; `close()`, the end of `async with`, or the close of the queue ends it.

    `async for message in cursor` peeks every message once and ends after the last. Make one call at a time: a
    second call while the first waits raises IllegalCursorAction.
    """

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self._number = number

    async def __aenter__(self) -> Cursor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._link.lost is None:
            with suppress(ConnectionLost):  # which closes it as well
                await self.close()

    async def close(self) -> None:
        """Close the cursor; a waiting call raises OperationCancelled. Raises InvalidHandle if it is closed
        already.
        """
        await self._link.request(Frame.CURSOR_CLOSE, [self._number])

    async def peek(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Return the message at the cursor, or the next message if there is none at it; waits up to `timeout`
        seconds.

        Raises IOTimeout; MessageAlreadyReceived; BufferTooSmall: the cursor is then at the message that is
        too large.
        """
        return await self._read(CursorRead.PEEK, timeout, limits=limits)

    async def peek_next(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Return the message after the one that was peeked last.

        Raises IOTimeout; IllegalCursorAction if no message was peeked; BufferTooSmall: the cursor is then at
        the message that is too large, and `peek` with larger limits returns it.
        """
        return await self._read(CursorRead.PEEK_NEXT, timeout, limits=limits)

    async def receive(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the server waits
        *,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Remove and return the message at the cursor, or the next message if there is none at it.

        Raises MessageAlreadyReceived; MessageNotFound with a `timeout` of 0; IOTimeout; BufferTooSmall for a
        message that does not fit into `limits`: the message stays, and the cursor does not move.
        """
        return await self._read(CursorRead.RECEIVE, timeout, transaction, limits)

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        action = CursorRead.PEEK
        while True:
            try:
                message = await self._read(action, 0)
            except IOTimeout:
                return
            action = CursorRead.PEEK_NEXT
            yield message

    async def _read(
        self,
        action: CursorRead,
        timeout: float | None,  # noqa: ASYNC109 - the server waits
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        wait = None if timeout is None else min(max(int(timeout * 1000), 0), INFINITE - 1)
        number = self._link.next_id()
        payload = [self._number, wait, int(action), *number_of(transaction, limits)]
        future = self._link.request(Frame.CURSOR_READ, payload, number)
        try:
            return ReceivedMessage(await future)
        except asyncio.CancelledError:
            self._link.post_cancel(number)
            raise
