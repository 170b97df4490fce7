"""Accepts connections at the ports of the server, counts and limits them, and reports every failure.

This module calls `accept` itself instead of using the servers of the event loop, because those silently close
a connection for which there is no descriptor.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from msmq_fast.admin.view import Labelled
from msmq_fast.server.net.connections import ConnectionTable, Share, Slot
from msmq_fast.server.runtime.descriptors import ConnectionLimits, ConnectionScale, SpareDescriptors

__all__ = ["Acceptors", "Factory"]

_log = logging.getLogger("msmq_fast.server")

Factory = Callable[[Slot], asyncio.BaseProtocol]
"""Makes the protocol object of a connection that got a slot."""

_BATCH: Final = 64
"""Maximum number of connections that one port accepts in one iteration of the event loop."""
_PAUSE: Final = 0.2
"""Seconds after a failure until the port is tried again."""
_REPORT: Final = 60.0
"""Seconds between two log lines on failures."""
_SPARE: Final = 16
_TLS_HANDSHAKE: Final = 10.0
"""Seconds that a TLS handshake may take."""
_LATE: Final = (errno.ECONNABORTED, errno.EPROTO, errno.ENETDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH)
"""Errors of accept(2) that mean that the peer has already closed the connection; they are not failures of
this server.
"""


class Acceptors:
    """Accepts the connections at all ports of one server."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float], table: ConnectionTable
    ) -> None:
        self._loop = loop
        self._monotonic = monotonic
        self.table = table
        self._spare = SpareDescriptors(_SPARE)
        self._ports: list[_Port] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: Counter[str] = Counter()
        self._failing: dict[str, str] = {}
        self._reported = float("-inf")
        self._unreported = 0
        self._sweep: asyncio.TimerHandle | None = None

    def accept(
        self,
        listener: socket.socket,
        share: Share,
        factory: Factory,
        *,
        tls: ssl.SSLContext | None = None,
        reserved: bool = False,
    ) -> Callable[[], None]:
        """Accept connections on a bound socket. Returns a function that stops accepting and closes the
        socket.

        `reserved`: if the system has no descriptor left, a spare one is used for a connection to this socket.
        """
        port = _Port(self, listener, share, factory, tls, reserved=reserved)
        self._ports.append(port)
        port.listen()
        return port.close

    def set_limits(self, limits: ConnectionLimits, scale: ConnectionScale, first_byte: float) -> None:
        """Replace the limits of the connection table, and the time in seconds within which the first byte
        must arrive.
        """
        self.table.resize(limits, scale, first_byte)
        if self._sweep is not None:
            self._sweep.cancel()
        self._watch()

    def close(self) -> None:
        """Stop accepting at all ports."""
        for port in self._ports:
            port.close()
        for task in self._tasks:
            task.cancel()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._spare.close()

    # -------------------------------------------------------------------------------------------- figures

    @property
    def why_failing(self) -> str | None:
        """Return why connections cannot be accepted now, None if they can."""
        for what, reason in self._failing.items():
            return f"a {what} cannot be accepted: {reason}"
        return None

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of the ports with their labels."""
        yield Labelled(
            "accept_failures_total",
            "Connections that failed to be accepted for lack of descriptors or memory.",
            ("kind",),
            {(what,): float(count) for what, count in sorted(self._failures.items())},
        )
        yield Labelled(
            "connections",
            "Open connections by kind.",
            ("kind",),
            _sums((share.what, len(share)) for pool in self.table for share in pool.shares),
            grows=False,
        )
        yield Labelled(
            "connections_evicted_total",
            "Idle connections that were closed to make room for others.",
            (),
            {(): float(sum(pool.evicted for pool in self.table))},
        )

    # --------------------------------------------------------------------------------------- for the ports

    def failed(self, what: str, error: OSError) -> None:
        """Count a failure to accept a connection of the kind `what`, and log such failures at most once a
        minute.
        """
        self._failures[what] += 1
        self._failing[what] = reason = error.strerror or str(error)
        now = self._monotonic()
        self._unreported += 1
        if now - self._reported >= _REPORT:
            _log.error("a %s cannot be accepted: %s (%d times)", what, reason, self._unreported)
            self._reported, self._unreported = now, 0

    def worked(self, what: str) -> None:
        """Record that a connection of the kind `what` was accepted."""
        self._failing.pop(what, None)
        self._spare.refill()

    def spare(self) -> bool:
        """Close a spare descriptor, so that the system can use it. Return False if no spare descriptor is
        left.
        """
        return self._spare.give()

    def opened(self, connection: socket.socket, slot: Slot, port: _Port) -> None:
        """Create the protocol object of an accepted connection, and attach the connection to it."""
        task = self._loop.create_task(self._start(connection, slot, port))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._sweep is None:
            self._watch()

    async def _start(self, connection: socket.socket, slot: Slot, port: _Port) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: port.factory(slot),
                connection,
                ssl=port.tls,
                ssl_handshake_timeout=None if port.tls is None else _TLS_HANDSHAKE,
            )
        except (OSError, ssl.SSLError, ConnectionError) as error:
            _log.debug("%s from %s: %s", slot.share.what, slot.address, error)
            slot.leave()
            connection.close()
        except BaseException:
            slot.leave()
            connection.close()
            raise

    # ----------------------------------------------------------------------------------- silent connections

    def _watch(self) -> None:
        deadlines = [due for pool in self.table if (due := pool.next_deadline()) is not None]
        if not deadlines:
            self._sweep = None
            return
        # Once a second is enough: a flood of connections does not arm a timer for each of them.
        delay = max(1.0, min(deadlines) - self._monotonic())
        self._sweep = self._loop.call_later(delay, self._expire)

    def _expire(self) -> None:
        try:
            for pool in self.table:
                pool.expire(self._monotonic())
        finally:
            self._watch()


class _Port:
    """One listening socket."""

    def __init__(
        self,
        owner: Acceptors,
        listener: socket.socket,
        share: Share,
        factory: Factory,
        tls: ssl.SSLContext | None,
        *,
        reserved: bool,
    ) -> None:
        self._owner = owner
        self._loop = owner._loop
        self._listener = listener
        self._share = share
        self.factory = factory
        self.tls = tls
        self._reserved = reserved
        self._again: asyncio.TimerHandle | None = None
        self._closed = False

    def listen(self) -> None:
        """Start to accept connections."""
        self._again = None
        if not self._closed:
            self._loop.add_reader(self._listener.fileno(), self._ready)

    def close(self) -> None:
        """Close the socket."""
        if self._closed:
            return
        self._closed = True
        if self._again is not None:
            self._again.cancel()
        elif self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
        self._listener.close()

    def _ready(self) -> None:
        for _ in range(_BATCH):
            if self._share.pool.congested:
                return  # the loop calls this again in its next turn
            try:
                accepted = self._accept()
            except OSError as error:
                self._owner.failed(self._share.what, error)
                # The connection still waits: without a pause the loop would be woken continuously.
                self._loop.remove_reader(self._listener.fileno())
                self._again = self._loop.call_later(_PAUSE, self.listen)
                return
            if accepted is None:
                return
            connection, address = accepted
            connection.setblocking(False)
            slot = self._share.enter(address, connection)
            if slot is None:
                connection.close()
            else:
                self._owner.opened(connection, slot, self)

    def _accept(self) -> tuple[socket.socket, str] | None:
        """Return the next connection and the address of its peer, None if none is waiting. Raises OSError."""
        while True:
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                self._owner.worked(self._share.what)
                return None
            except OSError as error:
                if error.errno in _LATE:
                    continue
                if error.errno == errno.EMFILE and self._reserved and self._owner.spare():
                    continue
                raise
            self._owner.worked(self._share.what)
            return connection, str(address[0]) if isinstance(address, tuple) else ""


def _sums(parts: Iterator[tuple[str, int]]) -> dict[tuple[str, ...], float]:
    sums: Counter[str] = Counter()
    for what, count in parts:
        sums[what] += count
    return {(what,): float(count) for what, count in sorted(sums.items())}
