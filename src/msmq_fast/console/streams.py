"""Streams of changes for open pages: one stream of server-sent events for each visible tab.

1. Once a second, a stream renders its page with the rights of that moment, and sends what has changed. It
   ends with the session, when the server stops, when the browser leaves, and when the browser does not read
   for `PATIENCE` seconds: at most one event and the write buffer of the connection are kept for a slow
   reader.
2. A page that takes long to render is rendered less often, but every `LONGEST` seconds: one stream takes
   1/`SHARE` of the time of the event loop, so that one message in `SHARE` waits for a rendering, and all
   streams together take 1/`SHARE_OF_ALL`. A rendering is divided into slices (slices.py), so that a message
   waits for one of them, not for all.
3. The number of streams is limited in all, for each session and for each address. A browser without a stream
   asks for the changes every few seconds instead.
4. Neither a stream nor such a question is a use of the session: a tab that is left open does not keep it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import refusal_of
from msmq_fast.console.guard import HEADERS
from msmq_fast.console.live import Live, changes

__all__ = ["MOST", "MOST_OF_ADDRESS", "MOST_OF_SESSION", "Ended", "Streams"]

MOST: Final = 64
MOST_OF_SESSION: Final = 8
MOST_OF_ADDRESS: Final = 32
INTERVAL: Final = 1.0  # seconds between two renderings
LONGEST: Final = (
    4.0  # seconds between two renderings of a page that takes long, unless there are many streams
)
SHARE: Final = 1000
SHARE_OF_ALL: Final = 10
PATIENCE: Final = 10.0  # seconds
_PING: Final = 15.0  # seconds without a change after which a comment is sent, so that proxies keep the stream
_RETRY_MS: Final = 3000  # after which a browser opens a broken stream again
_RETRY_S: Final = 5  # after which it asks again if there are too many streams

Render = Callable[[Live], Awaitable[None]]
"""Renders the page of a stream. Raises Ended, and whatever the page raises."""


class Ended(Exception):
    """The session has ended."""


@dataclass(slots=True, eq=False)
class _Stream:
    session: int
    address: str
    cost: float = 0.0  # seconds that the last rendering took


class Streams:
    """All streams of one server. `interval` and `patience` are seconds, see above."""

    def __init__(self, interval: float = INTERVAL, patience: float = PATIENCE) -> None:
        self._interval = interval
        self._patience = patience
        self._open: set[_Stream] = set()
        self._stopping = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    async def close(self) -> None:
        """End all streams, because the server stops."""
        self._stopping.set()

    async def once(self, render: Render, since: int) -> web.Response:
        """Return everything of a page that can change, for a browser without a stream."""
        live = Live(since)
        try:
            await render(live)
        except Ended:
            return web.json_response({"ended": True}, status=401)
        return web.json_response({**changes(None, live), "since": live.since})

    async def follow(
        self, request: web.Request, session: int, render: Render, since: int
    ) -> web.StreamResponse:
        """Send the changes of a page until its stream ends. `session` is the number of the session."""
        stream = _Stream(session, request.remote or "")
        if (
            len(self._open) >= MOST
            or sum(one.session == session for one in self._open) >= MOST_OF_SESSION
            or sum(one.address == stream.address for one in self._open) >= MOST_OF_ADDRESS
        ):
            return web.Response(status=503, headers={"Retry-After": str(_RETRY_S)}, text="Too many streams.")
        self._open.add(stream)
        try:
            return await self._send(request, stream, render, since)
        finally:
            self._open.discard(stream)

    async def _send(
        self, request: web.Request, stream: _Stream, render: Render, since: int
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={**HEADERS, "X-Accel-Buffering": "no"})
        response.content_type = "text/event-stream"
        response.charset = "utf-8"
        await response.prepare(request)
        try:
            await self._write(response, f"retry: {_RETRY_MS}\n\n")
            before, quiet = None, time.monotonic()
            while not self._stopping.is_set():
                live = Live(since if before is None else before.since, before)
                ending = await self._render(stream, render, live)
                if ending is not None:
                    await self._write(response, f"event: {ending[0]}\ndata: {json.dumps(ending[1])}\n\n")
                    break
                changed = changes(before, live)
                before, now = live, time.monotonic()
                if changed:
                    await self._write(response, f"data: {json.dumps({**changed, 'since': live.since})}\n\n")
                    quiet = now
                elif now - quiet >= _PING:
                    await self._write(response, ":\n\n")
                    quiet = now
                await self._pause(stream)
                if request.transport is None or request.transport.is_closing():
                    break
        except ConnectionError:  # the browser left
            pass
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        return response

    async def _render(self, stream: _Stream, render: Render, live: Live) -> tuple[str, Any] | None:
        """Render the page; return the event that ends the stream, None if it goes on."""
        began = time.monotonic()
        try:
            await render(live)
        except Ended:
            return "ended", None
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None and not isinstance(error, web.HTTPException):
                raise
            return "failed", str(refusal or "This page has moved.")
        finally:
            stream.cost = time.monotonic() - began
        return None

    async def _pause(self, stream: _Stream) -> None:
        every = sum(one.cost for one in self._open)
        seconds = max(self._interval, min(stream.cost * SHARE, LONGEST), every * SHARE_OF_ALL)
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _write(self, response: web.StreamResponse, text: str) -> None:
        """Send a text. Raises TimeoutError if the browser does not read, ConnectionError if it left."""
        async with asyncio.timeout(self._patience):
            await response.write(text.encode())
