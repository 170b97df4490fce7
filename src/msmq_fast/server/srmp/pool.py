"""Connections for messages that are sent over HTTP. All queues for the same server share the connections to
it; a connection is kept open for the next request.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Protocol, cast

from msmq_fast.server.net.connections import Share, Slot
from msmq_fast.server.srmp.lookups import PeerLookups
from msmq_fast.srmp.endpoint import Endpoint, Progress
from msmq_fast.srmp.http.client import BadAnswer, ClientConnection
from msmq_fast.srmp.returnpath import ReturnPaths
from msmq_fast.srmp.transfer import Close, Drop, Effect, Reach, Transfer

__all__ = ["Pool", "PoolSettings", "Proxy", "Request"]

_log = logging.getLogger("msmq_fast.srmp")
_NO_QUESTIONS = (b"Proxy-Accept", b"NonInteractiveClient")


class Request(Protocol):
    """A POST request. `target` is the path; `headers` include Host and Content-Length."""

    @property
    def target(self) -> bytes: ...
    @property
    def headers(self) -> list[tuple[bytes, bytes]]: ...
    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Proxy:
    """A forward proxy; connections to the proxy itself are without TLS."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Settings of the pool. `tls` is a context that always verifies servers."""

    tls: ssl.SSLContext
    per_host: int = 8  # connections to one server
    connect_timeout: float = 10.0  # seconds
    proxy: Callable[[str], Proxy | None] = lambda host: None
    source: str | None = None  # local address of connections
    paths: ReturnPaths = field(default_factory=ReturnPaths)  # where receipts may go


@dataclass(slots=True)
class _Job:
    """A queue that waits for a connection. If the previous connection of the queue ended before the answer
    to a request, `request` is that request, which is sent again; otherwise it is None.
    """

    number: int
    request: Request | None = None


@dataclass(slots=True)
class _Server:
    """The connections to one server (endpoint), and the queues that wait for a connection to it."""

    idle: list[_Connection] = field(default_factory=list)
    waiting: deque[_Job] = field(default_factory=deque)
    open: int = 0  # connections, those that are being opened included
    opening: int = 0


class Pool:
    """Executes the network operations (effects) that the engine `transfer` requests, on one event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: PoolSettings,
        monotonic: Callable[[], float],
        touch: Callable[[], None],
        share: Share,
        make_transfer: Callable[[Callable[[Effect], None]], Transfer[Request]],
    ) -> None:
        """`share` counts and limits the connections. `make_transfer(request)` returns the engine; the engine
        calls `request` with each network operation, such as a connection to open, that this pool must
        execute.
        """
        self._loop = loop
        self._settings = settings
        self._share = share
        self.monotonic = monotonic
        self.touch = touch
        self._lookups = PeerLookups(self._resolved, settings.connect_timeout)
        self._servers: dict[Endpoint, _Server] = {}
        self._busy: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.transfer = make_transfer(self.effect)

    @property
    def connections(self) -> int:
        """Number of connections that are open or being opened."""
        return sum(server.open for server in self._servers.values())

    def effect(self, effect: Effect) -> None:
        """Start a network operation that the engine requests. Its result is reported to the engine later."""
        match effect:
            case Reach(number, endpoint):
                self._enqueue(endpoint, _Job(number))
            case Drop(number):
                self._drop(number)
            case Close(endpoint):
                server = self._servers.get(endpoint)
                for connection in list(server.idle) if server is not None else ():
                    connection.close()

    # ------------------------------------------------------------------------------------------- connections

    def _enqueue(self, endpoint: Endpoint, job: _Job) -> None:
        server = self._servers.setdefault(endpoint, _Server())
        server.waiting.append(job)
        if server.idle:
            self._serve(server.idle.pop(), server)
        elif server.opening < len(server.waiting) and server.open < self._settings.per_host:
            self._open(endpoint, server)

    def _open(self, endpoint: Endpoint, server: _Server) -> None:
        if self._closed:
            return
        server.open += 1
        server.opening += 1
        self._spawn(self._dial(endpoint, server))

    def _serve(self, connection: _Connection, server: _Server) -> None:
        """Give a free connection to the first waiting queue that has a request to send."""
        while server.waiting and not connection.lost:
            job = server.waiting.popleft()
            request = job.request or self.transfer.opened(job.number, connection.address, self.monotonic())
            if request is not None:
                self._busy[job.number] = connection
                connection.send(job.number, request)
                return
        if not connection.lost:
            server.idle.append(connection)

    def answered(self, connection: _Connection, number: int, status: int, keep: bool) -> None:
        """Handle the answer to the request of queue `number`; `keep` is whether the connection can be used
        again.
        """
        self.touch()
        now = self.monotonic()
        del self._busy[number]
        keep = self.transfer.answered(number, status, now) and keep
        server = self._servers[connection.endpoint]
        if not keep:
            connection.close()
        elif server.waiting:
            self._serve(connection, server)
        else:
            server.idle.append(connection)
        self.transfer.proceed(number, now)

    def ended(self, connection: _Connection, number: int, request: Request | None, detail: str) -> None:
        """Handle the end of a connection. `number` and `request` are the queue and the request that were in
        progress; 0 and None if there were none.
        """
        self.touch()
        server = self._servers[connection.endpoint]
        server.open -= 1
        if connection in server.idle:
            server.idle.remove(connection)
        if number:
            del self._busy[number]
            if connection.stale and request is not None:
                # It was closed as we began: the server has not read the request, or does not say so.
                server.waiting.appendleft(_Job(number, request))
            else:
                self.transfer.failed(number, Progress.SEND_FAILURE, detail, self.monotonic())
        self._refill(connection.endpoint, server)

    def _refill(self, endpoint: Endpoint, server: _Server) -> None:
        """Open connections for queues that still wait for one."""
        while server.waiting and server.idle:
            self._serve(server.idle.pop(), server)
        while (
            server.opening < len(server.waiting)
            and server.open < self._settings.per_host
            and not self._closed
        ):
            self._open(endpoint, server)
        if not server.open and not server.waiting:
            self._servers.pop(endpoint, None)

    def _drop(self, number: int) -> None:
        connection = self._busy.pop(number, None)
        if connection is not None:
            connection.forget()
            connection.close()
            return
        for server in self._servers.values():
            for job in [job for job in server.waiting if job.number == number]:
                server.waiting.remove(job)

    # -------------------------------------------------------------------------------------------- dialling

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, endpoint: Endpoint, server: _Server) -> None:
        try:
            connection = await self._reached(endpoint)
        except (OSError, TimeoutError, UnicodeError, BadAnswer, ValueError) as error:
            self.touch()
            server.open -= 1
            server.opening -= 1
            self._unreachable(endpoint, server, error)
        else:
            self.touch()
            server.opening -= 1
            if connection.lost:
                server.open -= 1
                self._unreachable(endpoint, server, ConnectionResetError(errno.ECONNRESET, "closed at once"))
            else:
                connection.in_pool = True
                self._serve(connection, server)

    def _unreachable(self, endpoint: Endpoint, server: _Server, error: Exception) -> None:
        """Report the error to all queues that wait for a connection to this server, unless other open
        connections can serve them.
        """
        if server.open > server.opening:
            return
        progress, detail, now = _cause(error), _reason(error), self.monotonic()
        _log.info("%s://%s:%d: %s", endpoint.scheme, endpoint.host, endpoint.port, detail)
        waiting, server.waiting = server.waiting, deque()
        for job in waiting:
            self.transfer.failed(job.number, progress, detail, now)
        self._refill(endpoint, server)

    async def _reached(self, endpoint: Endpoint) -> _Connection:
        """Return an open connection to the server or its proxy. Raises TimeoutError after the connect
        time-out.
        """
        peer, paths, timeout = endpoint.only, self._settings.paths, self._settings.connect_timeout
        proxy = None  # which would resolve a name itself
        if peer is None or paths.is_named(endpoint.host):
            proxy = self._settings.proxy(endpoint.host)
        if peer is None or proxy is not None:
            return await asyncio.wait_for(self._connected(endpoint, proxy), timeout)
        addresses = await self._lookups(peer, endpoint.host, endpoint.port)
        addresses = _admitted(addresses, peer, endpoint.host, paths)
        return await asyncio.wait_for(self._connected(endpoint, None, addresses), timeout)

    async def _connected(
        self, endpoint: Endpoint, proxy: Proxy | None, addresses: list[str] | None = None
    ) -> _Connection:
        secure = endpoint.scheme == "https"
        host, port = (endpoint.host, endpoint.port) if proxy is None else (proxy.host, proxy.port)
        failure: OSError = OSError(errno.EHOSTUNREACH, "no address")
        for address in await self._resolved(host, port) if addresses is None else addresses:
            slot = self._share.enter(address)
            if slot is None:
                raise OSError(errno.EMFILE, "too many connections are open (limits.outgoing_connections)")
            absolute = proxy is not None and not secure
            connection = _Connection(self, endpoint, address, slot, absolute=absolute)
            try:
                await self._attached(connection, address, port, endpoint, secure=secure, proxy=proxy)
            except OSError as error:
                connection.close()
                failure = error
                if isinstance(error, ssl.SSLError):
                    break
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise failure

    async def _resolved(self, host: str, port: int) -> list[str]:
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise _Unresolved(error.errno, error.strerror or str(error)) from None
        except UnicodeError as error:  # a label of the name is empty or longer than 63 characters
            raise _Unresolved(errno.EINVAL, str(error)) from None
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def _attached(
        self,
        connection: _Connection,
        address: str,
        port: int,
        endpoint: Endpoint,
        *,
        secure: bool,
        proxy: Proxy | None,
    ) -> None:
        opened = self._socket(address)
        tls = self._settings.tls if secure else None
        name = endpoint.host if secure else None
        try:
            await self._loop.sock_connect(opened, (address, port))
            if proxy is None or not secure:
                await self._loop.create_connection(
                    lambda: connection, sock=opened, ssl=tls, server_hostname=name
                )
                return
            tunnel = _Tunnel(self._loop)
            transport, _ = await self._loop.create_connection(lambda: tunnel, sock=opened)
            await tunnel.open(transport, endpoint)
            assert tls is not None  # noqa: S101 - of https
            secured = await self._loop.start_tls(transport, connection, tls, server_hostname=name)
        except BaseException:
            opened.close()
            raise
        if secured is None:
            raise ConnectionResetError(errno.ECONNRESET, "the server closed it in the TLS handshake")
        connection.connection_made(secured)

    def _socket(self, address: str) -> socket.socket:
        """Return a socket for one connection, bound to the source address."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setblocking(False)
        source = self._settings.source
        if source and (":" in source) == (":" in address):
            try:
                made.bind((source, 0))
            except OSError:
                made.close()
                raise
        return made

    def close(self) -> None:
        """Cancel all operations and close all connections; requests in progress get no result."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        for connection in self._busy.values():
            connection.forget()
            connection.close()
        self._busy.clear()
        for server in list(self._servers.values()):
            server.waiting.clear()
            for connection in list(server.idle):
                connection.close()


class _Connection(asyncio.Protocol):
    """One connection to a server, or to the proxy in front of it."""

    def __init__(self, pool: Pool, endpoint: Endpoint, address: str, slot: Slot, *, absolute: bool) -> None:
        self._pool = pool
        self._slot = slot
        self.endpoint = endpoint
        self.address = address
        self._absolute = absolute
        self._http = ClientConnection()
        self._transport: asyncio.Transport | None = None
        self._number = 0  # of the queue whose request is in progress
        self._request: Request | None = None
        self._detail = "the connection was closed"
        self.lost = False
        self.in_pool = False

    @property
    def stale(self) -> bool:
        """Whether the connection has answered earlier requests, but ended without a byte of an answer to the
        last request.
        """
        return self._http.answers > 0 and self._http.silent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._slot.follow(None, self._transport.abort)

    def send(self, number: int, request: Request) -> None:
        """Send a request of the queue `number`."""
        self._number, self._request = number, request
        target = request.target
        if self._absolute:
            host = f"[{self.endpoint.host}]" if ":" in self.endpoint.host else self.endpoint.host
            target = f"http://{host}:{self.endpoint.port}".encode() + target
        try:
            pieces = self._http.request(target, request.headers, request.body)
        except ValueError as error:
            self._detail = str(error)
            self.close()
            return
        if self._transport is not None:
            self._transport.writelines(pieces)

    def forget(self) -> None:
        """Drop the request in progress; no result is reported for it."""
        self._number, self._request = 0, None

    def data_received(self, data: bytes) -> None:
        try:
            answer = self._http.receive(data)
        except BadAnswer as error:
            self._detail = str(error)
            self.close()
            return
        if answer is not None and self._number:
            number = self._number
            self.forget()
            self._pool.answered(self, number, answer.status, answer.keep)

    def eof_received(self) -> None:
        if self._number:
            self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._detail = _reason(exc)
        self.close()

    def close(self) -> None:
        """Close the connection at once; the request in progress gets an error."""
        if self.lost:
            return
        self.lost = True
        self._slot.leave()
        if self._transport is not None:
            self._transport.abort()
        if self.in_pool:
            number, request = self._number, self._request
            self.forget()
            self._pool.ended(self, number, request, self._detail)


class _Tunnel(asyncio.Protocol):
    """Requests a tunnel to a server from a proxy (CONNECT)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._http = ClientConnection()
        self._done: asyncio.Future[int] = loop.create_future()

    async def open(self, transport: asyncio.Transport, endpoint: Endpoint) -> None:
        """Open the tunnel. Raises ConnectionRefusedError if the proxy refuses, BadAnswer if it does not speak
        HTTP.
        """
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        transport.write(self._http.tunnel(f"{host}:{endpoint.port}".encode(), [_NO_QUESTIONS]))
        status = await self._done
        if not 200 <= status < 300:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"the proxy refused with status {status}")

    def data_received(self, data: bytes) -> None:
        try:
            answer = self._http.receive(data)
        except BadAnswer as error:
            if not self._done.done():
                self._done.set_exception(error)
            return
        if answer is not None and not self._done.done():
            self._done.set_result(answer.status)

    def eof_received(self) -> None:
        self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(
                exc or ConnectionResetError(errno.ECONNRESET, "the proxy closed the connection")
            )


class _Unresolved(OSError):
    """The name of a host has no address, or none that may be used."""


def _admitted(addresses: list[str], peer: str, host: str, paths: ReturnPaths) -> list[str]:
    """Return the addresses to which receipts for messages from `peer` may be sent; `addresses` are all those
    of `host`. Raises _Unresolved if receipts may be sent to none of them.
    """
    admitted = [each for each in addresses if paths.admits(peer, host, each)]
    if addresses and not admitted:
        shown = ", ".join(addresses[:4])
        raise _Unresolved(
            errno.EACCES,
            f"{host} is at {shown}, but the message that asked for receipts came from {peer}; "
            "see srmp.receipts_to",
        )
    return admitted


def _cause(error: Exception) -> Progress:
    if isinstance(error, _Unresolved | UnicodeError):
        return Progress.DNS_FAILURE
    if isinstance(error, ssl.SSLCertVerificationError):
        return Progress.CERTIFICATE_FAILURE
    if isinstance(error, ConnectionRefusedError):
        return Progress.REFUSED
    if isinstance(error, OSError) and error.errno in (
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
    ):
        return Progress.CREATE_FAILURE
    return Progress.CONNECT_FAILURE


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
