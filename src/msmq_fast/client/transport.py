"""Requests and replies over one connection: assigns request ids, resolves futures, and fails them when the
connection ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from msmq_fast.client.endpoint import Endpoint
from msmq_fast.client.errors import ConnectionLost, from_wire
from msmq_fast.protocol.frames import Frame, FrameCutter, WireError, pack_frame, unpack_payload

FrameSink = Callable[[int, Any], None]

_LAST_ID = 0xFFFF_FFFF
_KEEP_ALIVE = {
    "TCP_KEEPIDLE": 30,  # seconds
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,  # milliseconds that sent data may stay unconfirmed
}

_links: weakref.WeakSet[Link] = weakref.WeakSet()  # those of this process, for the moment of a fork


def _disown_links() -> None:
    """In a forked child, disown the connections: they belong to the parent, whose bytes must not mix with
    those of the child.
    """
    for link in list(_links):
        link.disown()


if hasattr(os, "register_at_fork"):  # not on Windows, where no process forks
    os.register_at_fork(after_in_child=_disown_links)


class Requester(Protocol):
    """An object that answers requests: a Link, or a Channel, which replaces lost links."""

    def request(self, kind: Frame, payload: Any) -> Awaitable[Any]:
        """Send a request and return the payload of its reply. Raises ConnectionLost, or the error that the
        server reports.
        """


class Link(asyncio.Protocol):
    """One connection. A reply resolves the future of its request. If a request, such as a subscription, gets
    many frames, they go to the function (sink) that `next_id` registered for the id of the request.

    `ended` is called once, when the connection has ended and its pending calls have failed; not in a forked
    child.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self.lost: ConnectionLost | None = None
        self.disowned = False
        self.answered = False  # whether a frame has arrived
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._cutter = FrameCutter()
        self._transport: asyncio.Transport | None = None
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._sinks: dict[int, FrameSink] = {}
        self._room: asyncio.Future[None] | None = None
        self._closed = self._loop.create_future()
        _links.add(self)

    # ------------------------------------------------------------------------------------------- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes have arrived."""
        try:
            for kind, request_id, payload in self._cutter.feed(data):
                self._frame(kind, request_id, payload)
        except WireError as error:
            self._end(ConnectionLost(f"the server broke the protocol: {error}"))
            if self._transport is not None:
                self._transport.abort()

    def pause_writing(self) -> None:
        """asyncio: the transport's write buffer is full."""
        if self._room is None:
            self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """asyncio: the transport's write buffer has room again."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the connection has ended."""
        self._end(
            ConnectionLost(
                f"the connection was lost: {exc}" if exc else "the queue manager closed the connection"
            )
        )
        if not self._closed.done():
            self._closed.set_result(None)

    # ------------------------------------------------------------------------------------------- for the API

    def next_id(self, sink: FrameSink | None = None) -> int:
        """Return a free request id. Frames with this id go to `sink` until `forget` is called."""
        while True:
            self._last_id = self._last_id % _LAST_ID + 1
            if self._last_id not in self._waiting and self._last_id not in self._sinks:
                break
        if sink is not None:
            self._sinks[self._last_id] = sink
        return self._last_id

    def forget(self, request_id: int) -> None:
        """Remove the sink of a request id."""
        self._sinks.pop(request_id, None)

    def write(self, data: bytes) -> None:
        """Send whole frames. Raises ConnectionLost."""
        if self.lost is not None:
            raise self.lost
        assert self._transport is not None  # noqa: S101 - write is possible only after connection_made
        if self._transport.is_closing():  # asyncio would log each further write
            raise ConnectionLost("the connection was lost")
        self._transport.write(data)

    def post(self, kind: Frame, payload: Any) -> None:
        """Send a request that has no reply. Raises ConnectionLost."""
        self.write(pack_frame(kind, 0, payload))

    def request(self, kind: Frame, payload: Any, request_id: int | None = None) -> asyncio.Future[Any]:
        """Send a request; returns a future that gets the payload of the reply, or the error that the server
        reports. Raises ConnectionLost.
        """
        number = self.next_id() if request_id is None else request_id
        self.write(pack_frame(kind, number, payload))
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[number] = future
        return future

    def post_cancel(self, number: int) -> None:
        """Send CANCEL for request `number`; the reply of that request is ignored."""
        if self.lost is None:
            self.request(Frame.CANCEL, [number]).add_done_callback(_swallow)

    @property
    def congested(self) -> bool:
        """True while the transport's write buffer is full."""
        return self._room is not None

    async def drain(self) -> None:
        """Wait until the transport's write buffer has room. Raises ConnectionLost."""
        while self._room is not None and self.lost is None:
            await asyncio.shield(self._room)
        if self.lost is not None:
            raise self.lost

    async def close(self) -> None:
        """Close the connection; pending calls raise ConnectionLost."""
        self._end(ConnectionLost("the connection was closed by this program"))
        if self._transport is not None:
            self._transport.close()
            await asyncio.shield(self._closed)

    def disown(self) -> None:
        """Release the connection without sending a byte or calling `ended`: another process owns it.

        The descriptor of this process is replaced with one of the null device, so that the connection ends
        when the owner closes it.
        """
        transport, self._transport = self._transport, None
        self.disowned = True
        if self.lost is None:
            self.lost = ConnectionLost(
                "this connection belongs to the parent process: connect again after a fork"
            )
        if transport is not None and (shared := transport.get_extra_info("socket")) is not None:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(null, shared.fileno(), inheritable=False)
            os.close(null)

    # ------------------------------------------------------------------------------------------- inside

    def _frame(self, kind: int, request_id: int, payload: bytes) -> None:
        self.answered = True
        value = unpack_payload(payload)
        sink = self._sinks.get(request_id)
        if sink is not None and (kind not in (Frame.REPLY, Frame.ERROR) or request_id not in self._waiting):
            sink(kind, value)
            return
        if kind == Frame.ERROR:
            code, _, text, *needed = value
            error = from_wire(code, text, *needed)
            if request_id == 0:
                self._end(ConnectionLost(f"the queue manager closed the connection: {error}"))
                return
            future = self._waiting.pop(request_id, None)
            if future is not None and not future.done():
                future.set_exception(error)
            return
        future = self._waiting.pop(request_id, None)
        if future is not None and not future.done():
            future.set_result(value)

    def _end(self, error: ConnectionLost) -> None:
        if self.lost is not None:
            return
        self.lost = error
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # a caller that went away must not cause a warning
        sinks, self._sinks = self._sinks, {}
        for sink in sinks.values():
            sink(Frame.ENDED, [error.code, error.name, error.detail])
        self.resume_writing()
        self._ended()


def _swallow(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


def _keep_alive(connected: socket.socket) -> None:
    """Enable TCP keep-alive, which detects within a minute that the other computer is gone, also on an idle
    connection.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        option = getattr(socket, name, None)  # not on every system
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


async def open_link(endpoint: Endpoint, tls: ssl.SSLContext | None, ended: Callable[[], None]) -> Link:
    """Connect to `endpoint`. Raises ConnectionLost with the reason in one line."""
    loop = asyncio.get_running_loop()

    def made() -> Link:
        return Link(ended)

    try:
        if endpoint.path:
            if not hasattr(loop, "create_unix_connection"):
                raise ConnectionLost(f"{endpoint}: this system has no Unix sockets; use tcp:// or tls://")
            _, link = await loop.create_unix_connection(made, endpoint.path)
        else:
            context = (tls or ssl.create_default_context()) if endpoint.tls else None
            transport, link = await loop.create_connection(made, endpoint.host, endpoint.port, ssl=context)
            _keep_alive(transport.get_extra_info("socket"))
    except PermissionError:
        raise ConnectionLost(
            f"no permission to connect to {endpoint}: only root and the user of the server may"
        ) from None
    except ssl.SSLCertVerificationError as error:
        raise ConnectionLost(
            f"the certificate of {endpoint} is not trusted ({error.verify_message}): give the file of its CA"
        ) from None
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        raise ConnectionLost(
            f"no TLS at {endpoint} ({reason}): a port without TLS needs {endpoint.other_scheme}"
        ) from None
    except OSError as error:
        raise ConnectionLost(f"no queue manager at {endpoint}: {error.strerror or error}") from None
    return link
