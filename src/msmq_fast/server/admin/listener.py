"""The admin port: runs aiohttp on the listening sockets of the server."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from msmq_fast.admin.application import build
from msmq_fast.admin.view import View
from msmq_fast.logfields import Refuse
from msmq_fast.security.callers import Callers
from msmq_fast.server.net.accepting import Acceptors
from msmq_fast.server.net.connections import Slot, Standing

__all__ = ["AdminListener"]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_KEEP_ALIVE = 75.0  # seconds that a connection may be idle between two requests
_HEAD = 10.0  # seconds from the first byte of a connection to its first whole head


class _Refused(logging.Filter):
    """A log filter that counts errors that a client causes. Without it, aiohttp would log a traceback for
    each of them, as for a fault of the server.
    """

    def __init__(self, refuse: Refuse) -> None:
        super().__init__()
        self._refuse = refuse

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether aiohttp logs the record: False if a request could not be parsed, or its client did
        not wait for the answer.
        """
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError | web.RequestPayloadError):
            client = _client(record)
            self._refuse("admin request", "malformed", client, peer=client)
        elif isinstance(error, ConnectionError):
            client = _client(record)
            self._refuse("admin request", "client left", client, peer=client)
        else:
            return True
        return False


def _client(record: logging.LogRecord) -> str:
    """Return the client address in a log record of aiohttp."""
    return str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""


class AdminListener:
    """Serves the admin application until `close`. Calls `refuse(what, reason, detail)` for malformed
    requests. `callers` and `open_metrics` are those of `admin.application.build`.

    `parts` maps a path to the application that is served under this path.
    """

    def __init__(
        self,
        view: View,
        queue_limit: int,
        refuse: Refuse,
        acceptors: Acceptors,
        callers: Callers,
        *,
        open_metrics: bool = False,
        tls: ssl.SSLContext | None = None,
        parts: Mapping[str, web.Application] | None = None,
    ) -> None:
        self._tls = tls
        self._acceptors = acceptors
        self._share = acceptors.table.admin.share("admin connection")
        self._stop_accepting: list[Callable[[], None]] = []
        self._connections: dict[asyncio.BaseProtocol, _Connection] = {}
        application = build(view, queue_limit, callers, open_metrics=open_metrics)
        application.middlewares.insert(0, self._count)
        for path, part in (parts or {}).items():
            application.add_subapp(path, part)
        logger = logging.Logger("msmq_fast.admin")
        logger.parent = logging.getLogger("msmq_fast")
        logger.addFilter(_Refused(refuse))
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1.0,
            keepalive_timeout=_KEEP_ALIVE,
            logger=logger,
        )

    async def listen(self, listeners: list[socket.socket]) -> None:
        """Accept on bound sockets."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        server = self._runner.server
        assert server is not None  # noqa: S101 - setup() has made it

        def factory(slot: Slot) -> _Connection:
            handler = server()

            def lost() -> None:
                del self._connections[handler]

            connection = self._connections[handler] = _Connection(handler, slot, loop, lost)
            return connection

        for listener in listeners:
            self._stop_accepting.append(
                self._acceptors.accept(listener, self._share, factory, tls=self._tls, reserved=True)
            )

    async def close(self) -> None:
        """Close the sockets and all connections."""
        for stop in self._stop_accepting:
            stop()
        self._stop_accepting.clear()
        await self._runner.cleanup()

    @web.middleware
    async def _count(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Handle a request, and count it as in progress until it is answered. Until then, its connection is
        not closed to make room for another connection.
        """
        connection = self._connections.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.began()
        try:
            return await handler(request)
        finally:
            connection.ended()


class _Connection(asyncio.Protocol):
    """Wraps the protocol object of aiohttp, and adds limits on connections and on idle time."""

    def __init__(
        self,
        handler: asyncio.Protocol,
        slot: Slot,
        loop: asyncio.AbstractEventLoop,
        lost: Callable[[], None],
    ) -> None:
        self._handler = handler
        self._slot = slot
        self._lost = lost
        self._loop = loop
        self._silent = True
        self._handled = 0  # requests that are being handled
        self._head: asyncio.TimerHandle | None = None

    def began(self) -> None:
        """Record that a request is being handled."""
        self._handled += 1
        if self._head is not None:
            self._head.cancel()

    def ended(self) -> None:
        """Record that the request has been answered."""
        self._handled -= 1
        self._slot.used()

    def _standing(self) -> Standing:
        if self._silent:
            return Standing.SILENT
        return Standing.BUSY if self._handled else Standing.IDLE

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection is open."""
        self._slot.follow(self._standing, cast(asyncio.Transport, transport).abort)
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio: bytes from the client."""
        if self._silent:
            self._silent = False
            self._head = self._loop.call_later(_HEAD, self._slot.end)
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        """Called by asyncio: the client sends no more."""
        return self._handler.eof_received()

    def pause_writing(self) -> None:
        """Called by asyncio: the client does not read its answer."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Called by asyncio: the client reads again."""
        self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed."""
        if self._head is not None:
            self._head.cancel()
        self._handler.connection_lost(exc)
        self._slot.leave()
        self._lost()
