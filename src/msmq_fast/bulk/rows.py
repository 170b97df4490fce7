"""The call /rows: messages of a queue, deliveries of a lease, or events, as an Arrow stream."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

from aiohttp import web

from msmq_fast.bulk.context import Context, caller
from msmq_fast.bulk.errors import bad_request, events_gone
from msmq_fast.bulk.fields import ARROW_TYPE, Fields, body_fields, query_fields, stretch
from msmq_fast.bulk.leasing import lease_refusals, leased_queue
from msmq_fast.bulk.pacing import Charged
from msmq_fast.bulk.queues import CONTENTS, DEADLETTERS, EVENTS, JOURNAL, MESSAGES, named
from msmq_fast.bulk.reader import UNLIMITED_BYTES, BulkReader, EventsGone, with_numbers
from msmq_fast.bulk.several import MOST_AT_ONCE
from msmq_fast.protocol.arrow import END_OF_STREAM, arrow, arrow_schema
from msmq_fast.protocol.columns import Column, chosen, chosen_events
from msmq_fast.qm.queues.queue import Queue

__all__ = ["chosen_columns", "routes"]

_log = logging.getLogger("msmq_fast.bulk")

SLICE: Final = 1 << 18
"""Maximum number of bytes that one stream writes in one turn of the event loop, so that other connections are
served.
"""

Parts = AsyncGenerator[bytes | memoryview, None]


def chosen_columns(fields: Fields) -> tuple[Column, ...]:
    """Return the columns that the parameters `columns`, `body`, `raw` and `security` select. Raises Refusal
    or ValueError.
    """
    columns = fields.text("columns", "core")
    body, raw, security = fields.flag("body", True), fields.flag("raw", False), fields.flag("security", False)
    return chosen(columns, body=body, raw=raw, security=security)


def routes(context: Context, reader: BulkReader) -> list[web.RouteDef]:
    """Return the routes GET and POST /rows."""
    rows = _Rows(context, reader)
    return [web.get("/rows", rows.handle, allow_head=False), web.post("/rows", rows.handle_many)]


class _Rows:
    """Handles GET and POST /rows. If a stream fails after it has begun, the connection is closed without the
    end marks of Arrow and HTTP, so that the client detects the failure.
    """

    def __init__(self, context: Context, reader: BulkReader) -> None:
        self._context = context
        self._reader = reader
        self._places = asyncio.Semaphore(context.limits.streams)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the stream that a request asks for: messages, deliveries of a lease, or events."""
        fields = query_fields(request)
        content = fields.choice("content", CONTENTS, MESSAGES)
        if content == EVENTS:
            return await self._send(request, self._events(request, fields))
        if "subscription" in fields:
            return await self._send(request, self._deliveries(request, fields, content))
        return await self._send(request, self._messages(request, fields, content))

    async def handle_many(self, request: web.Request) -> web.StreamResponse:
        """Return one stream with the rows of many ranges, in their order, of messages or of deliveries."""
        fields = await body_fields(request)
        columns = chosen_columns(fields)
        content = fields.choice("content", (MESSAGES, JOURNAL, DEADLETTERS), MESSAGES)
        subscription = fields.text("subscription") if "subscription" in fields else None
        items = fields.objects("queues", MOST_AT_ONCE)
        fields.done()
        wanted = []
        for item in items:
            wanted.append((item.text("queue"), *stretch(item)))
            item.done()
        if subscription is not None:
            _only_messages(content)
            columns = with_numbers(columns)
        streams = [self._stream_of(request, subscription, content, columns, *one) for one in wanted]
        return await self._send(request, _joined(arrow_schema(columns), streams))

    def _stream_of(
        self,
        request: web.Request,
        subscription: str | None,
        content: str,
        columns: Sequence[Column],
        name: str,
        start: int,
        stop: int,
    ) -> Callable[[], Parts]:
        """Check that the caller may read a queue, and return the function that begins to read it."""
        if subscription is None:
            queue = self._readable(request, name, content)
            return lambda: self._reader.messages(queue, start, stop, columns)
        queue = leased_queue(self._context, request, name)
        return lambda: self._deliver(subscription, queue, start, stop, columns)

    def _messages(self, request: web.Request, fields: Fields, content: str) -> Parts:
        name, (start, stop), columns = fields.text("queue"), stretch(fields), chosen_columns(fields)
        fields.done()
        return self._reader.messages(self._readable(request, name, content), start, stop, columns)

    def _readable(self, request: web.Request, name: str, content: str) -> Queue:
        manager = self._context.manager
        queue = named(manager, name, content)
        manager.guard.read(caller(request), queue)
        return queue

    def _deliveries(self, request: web.Request, fields: Fields, content: str) -> Parts:
        subscription, name = fields.text("subscription"), fields.text("queue")
        (start, stop), columns = stretch(fields), chosen_columns(fields)
        fields.done()
        _only_messages(content)
        return self._deliver(subscription, leased_queue(self._context, request, name), start, stop, columns)

    def _deliver(
        self, subscription: str, queue: Queue, start: int, stop: int, columns: Sequence[Column]
    ) -> Parts:
        with lease_refusals():
            lookup_ids, numbers = self._context.manager.leases.rows(subscription, queue, start, stop)
        return self._renewing(subscription, self._reader.chosen(queue, lookup_ids, numbers, columns))

    async def _renewing(self, subscription: str, parts: Parts) -> Parts:
        """Yield the parts of the stream and renew the lease with each, so that a slow client keeps its lease
        as long as it reads.
        """
        try:
            async for part in parts:
                self._context.manager.leases.renew(subscription)
                yield part
        finally:
            await parts.aclose()

    def _events(self, request: web.Request, fields: Fields) -> Parts:
        start, stop = stretch(fields)
        columns: Sequence[Column] = chosen_events(fields.text("columns", "core"))
        fields.done()
        self._context.manager.guard.read_everything(caller(request), "read the event feed")
        return self._reader.events(start, stop, columns)

    async def _send(self, request: web.Request, parts: Parts) -> web.StreamResponse:
        figures = self._context.figures
        async with self._places:
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError("the client disconnected while it waited")
            figures.streams += 1
            try:
                return await Charged(self._stream(request, parts), self._reader.charge, time.thread_time)
            finally:
                figures.streams -= 1

    async def _stream(self, request: web.Request, parts: Parts) -> web.StreamResponse:
        try:
            first = await anext(parts)
        except EventsGone as error:
            raise events_gone(error.first) from None
        response = web.StreamResponse(headers={"Content-Type": ARROW_TYPE, "Cache-Control": "no-store"})
        await response.prepare(request)
        try:
            await self._write(response, first)
            async for part in parts:
                await self._write(response, part)
        except BaseException as error:
            self._context.figures.broken += 1
            if request.transport is not None:
                request.transport.abort()
            if not isinstance(error, Exception):
                raise
            self._tell(error, request.remote or "")
        finally:
            await parts.aclose()
        return response

    async def _write(self, response: web.StreamResponse, part: bytes | memoryview) -> None:
        async with asyncio.timeout(self._context.limits.slow_client):
            size = SLICE if self._reader.limited else UNLIMITED_BYTES
            for start in range(0, len(part), size):
                await response.write(part[start : start + size])
                await asyncio.sleep(0)
        self._context.figures.bytes_out += len(part)

    def _tell(self, error: Exception, peer: str) -> None:
        if isinstance(error, TimeoutError):
            reason = f"the client read nothing for {self._context.limits.slow_client:g} s"
            self._context.refuse("bulk stream", "slow reader", reason, peer=peer)
        elif isinstance(error, ConnectionError):
            self._context.refuse("bulk stream", "client left", peer=peer)
        else:
            self._context.refuse("bulk stream", "broken off", str(error), peer=peer)
            _log.debug("a stream of rows ended early", exc_info=error)


def _only_messages(content: str) -> None:
    if content != MESSAGES:
        raise bad_request("content must be messages if a subscription is given")


async def _joined(schema: Any, streams: Sequence[Callable[[], Parts]]) -> Parts:
    """Yield the parts of one stream with the batches of several streams of the same schema, each of which
    begins when its turn comes. An empty batch follows the batches of each.
    """
    empty = memoryview(arrow().RecordBatch.from_pylist([], schema=schema).serialize())
    begun = False
    for begin in streams:
        async with aclosing(begin()) as stream:
            first = await anext(stream)
            if not begun:
                begun = True
                yield first
            async for part in stream:
                if part is not END_OF_STREAM:
                    yield part
        yield empty
    if not begun:
        yield memoryview(schema.serialize())
    yield END_OF_STREAM
