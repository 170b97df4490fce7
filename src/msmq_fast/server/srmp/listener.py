"""The ports for messages over HTTP and HTTPS."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from msmq_fast.admin.view import Labelled
from msmq_fast.config.kinds import Preferred
from msmq_fast.config.sections import Config, ListenHttp, ListenHttps
from msmq_fast.release import release
from msmq_fast.server.credentials import TlsFiles
from msmq_fast.server.net.accepting import Acceptors
from msmq_fast.server.net.connections import Slot, Standing
from msmq_fast.server.net.sockets import DENIED, ListenError, tcp_sockets
from msmq_fast.server.runtime.refusals import RefusalCounters
from msmq_fast.server.srmp.tls import https_context
from msmq_fast.srmp.http.protocol import HttpProtocol, Shared
from msmq_fast.srmp.http.request import Handler
from msmq_fast.srmp.http.server import Limits

__all__ = ["HTTP", "HTTPS", "SrmpListener", "bind_http"]

_log = logging.getLogger("msmq_fast.server")

HTTP, HTTPS = "http", "https"  # in the ready line
_PATIENCE = 1.0  # seconds without a byte after which an unfinished request makes room for others


def bind_http(config: Config) -> dict[str, list[socket.socket]]:
    """Return the sockets of the enabled ports.

    If a default port cannot be bound, logs a warning and leaves it out. Raises ListenError for any other
    port.
    """
    listen = config.listen
    listeners: dict[str, ListenHttp | ListenHttps] = {HTTP: listen.http}
    if listen.https.tls_certificate is not None:
        listeners[HTTPS] = listen.https
    bound: dict[str, list[socket.socket]] = {}
    for name, listener in listeners.items():
        port = listener.port
        if port is None:
            continue
        try:
            bound[name] = tcp_sockets(listen.hosts(listener), port, f"messages over {name.upper()}")
        except ListenError as error:
            if not isinstance(port, Preferred) or error.errno not in DENIED:
                for opened in [opened for group in bound.values() for opened in group]:
                    opened.close()
                raise
            _log.warning(
                '%s; without it, no messages arrive over %s (set listen.%s.port to another port or "off")',
                error,
                name.upper(),
                name,
            )
    return bound


class _Connection(HttpProtocol):
    """A connection that the listener counts."""

    def __init__(
        self, owner: SrmpListener, shared: Shared, loop: asyncio.AbstractEventLoop, slot: Slot
    ) -> None:
        super().__init__(shared, loop, slot.used)
        self._owner = owner
        self._slot = slot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._slot.follow(self._standing, cast(asyncio.Transport, transport).abort)
        self._owner.opened(self)

    def _standing(self) -> Standing:
        if self.silent:
            return Standing.SILENT
        return Standing.IDLE if self.waits >= _PATIENCE else Standing.BUSY

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._slot.leave()
        self._owner.closed(self)


class SrmpListener:
    """Accepts connections within limits, and passes their requests to `handler`."""

    def __init__(
        self,
        config: Config,
        handler: Handler,
        monotonic: Callable[[], float],
        touch: Callable[[], None],
        refused: RefusalCounters,
        acceptors: Acceptors,
    ) -> None:
        """Raises DeclarationError if the files for HTTPS are invalid."""
        self._settings = config.srmp
        self._open: set[_Connection] = set()
        self._acceptors = acceptors
        self._share = acceptors.table.network.share(
            "http connection",
            config.listen.http.max_connections,
            config.listen.http.max_connections_per_address,
        )
        self._stop_accepting: list[Callable[[], None]] = []
        self.certificates = TlsFiles()
        self._tls = https_context(config, self.certificates)
        self._fixed = b""
        self._fixed_at = -1
        self._server_line = f"Server: msmq-fast/{release()}\r\n".encode()
        self.shared = Shared(
            handler=handler,
            touch=touch,
            refuse=refused.refuse,
            fixed=self._fixed_lines,
            monotonic=monotonic,
            limits=Limits(spare=self._spare),
            keep_alive=self._settings.keep_alive,
            slow=config.limits.slow_writer_timeout,
        )

    def set_limits(self, config: Config) -> None:
        """Apply the connection limits of a configuration."""
        http = config.listen.http
        self._share.resize(http.max_connections, http.max_connections_per_address)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of the HTTP ports with their labels."""
        yield Labelled(
            "http_answers_total",
            "Answers to messages that came over HTTP, by status.",
            ("status",),
            {(str(status),): float(count) for status, count in sorted(self.shared.answers.items())},
        )
        yield Labelled(
            "http_connections",
            "Open connections at the HTTP ports.",
            (),
            {(): float(self.connections)},
            grows=False,
        )

    def listen(self, bound: Mapping[str, list[socket.socket]]) -> None:
        """Accept on the sockets of `bind_http`."""
        loop = asyncio.get_running_loop()
        for name in (HTTP, HTTPS):
            tls = self._tls if name == HTTPS else None
            for listener in bound.get(name, []):
                stop = self._acceptors.accept(
                    listener, self._share, lambda slot: _Connection(self, self.shared, loop, slot), tls=tls
                )
                self._stop_accepting.append(stop)

    def opened(self, connection: _Connection) -> None:
        """Record an open connection."""
        self._open.add(connection)

    def closed(self, connection: _Connection) -> None:
        """Record that a connection has ended."""
        self._open.discard(connection)

    def stop_accepting(self) -> None:
        """Close the listening sockets; each connection closes once its pending answers are sent."""
        for stop in self._stop_accepting:
            stop()
        self._stop_accepting.clear()
        for connection in tuple(self._open):
            connection.close()

    def _spare(self, size: int) -> bool:
        return sum(connection.held for connection in self._open) + size <= self._settings.unfinished

    def _fixed_lines(self) -> bytes:
        """Return the headers Server and Date (RFC 9110 6.6.1), which are rebuilt once a second."""
        now = int(time.time())
        if now != self._fixed_at:
            self._fixed_at = now
            stamp = time.gmtime(now)
            date = (
                f"{_DAYS[stamp.tm_wday]}, {stamp.tm_mday:02} {_MONTHS[stamp.tm_mon - 1]} {stamp.tm_year} "
                f"{stamp.tm_hour:02}:{stamp.tm_min:02}:{stamp.tm_sec:02} GMT"
            )
            self._fixed = self._server_line + f"Date: {date}\r\n".encode()
        return self._fixed


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
