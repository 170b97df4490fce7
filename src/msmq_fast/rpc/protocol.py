"""asyncio around one connection: the kernel writes into its buffer, PDUs go out as the socket takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from msmq_fast.lazytimer import LazyTimer
from msmq_fast.rpc.auth.context import AuthError
from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.endpoint import Offload
from msmq_fast.rpc.server import RpcServer

__all__ = ["RpcProtocol", "on_threads"]

_WRITE_HIGH = 1 << 19  # bytes that the transport holds before it says stop: two batches of fragments
_NOWHERE = memoryview(bytearray(1 << 16))  # for bytes that arrive after a connection ended; nobody reads it


def on_threads(loop: asyncio.AbstractEventLoop) -> Offload:
    """Runs legs of security contexts on the threads of the loop."""

    def offload(step: Callable[[], bytes], done: Callable[[bytes | None, AuthError | None], None]) -> None:
        def finished(future: asyncio.Future[bytes]) -> None:
            try:
                reply = future.result()
            except AuthError as error:
                done(None, error)
            else:
                done(reply, None)

        loop.run_in_executor(None, step).add_done_callback(finished)

    return offload


class RpcProtocol(asyncio.BufferedProtocol):
    """`touch` is called before anything that may put work into the store's current batch."""

    def __init__(
        self,
        server: RpcServer,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        touch: Callable[[], None],
    ) -> None:
        self._server = server
        self._loop = loop
        self._monotonic = monotonic
        self._touch = touch
        self._transport: asyncio.Transport | None = None
        self._connection: ServerConnection | None = None
        self._timer = LazyTimer(loop, monotonic, self._expire)
        self._flush_due = False
        self._paused = False
        self._reading = True

    # ----------------------------------------------------------------------------------- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH)
        peer = self._transport.get_extra_info("peername")  # None if the peer is gone already
        connection = self._server.open_connection(peer[0], self._monotonic(), self._wake) if peer else None
        if connection is None:
            self._transport.abort()
            return
        self._connection = connection
        self._timer.arm(connection.next_deadline())

    def get_buffer(self, sizehint: int) -> memoryview:
        """Room in the receive buffer of the connection."""
        if self._connection is None or self._connection.closing:
            return _NOWHERE
        return self._connection.buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """The kernel has written into the buffer."""
        if self._connection is not None and not self._connection.closing:
            self._touch()
            self._connection.received(nbytes, self._monotonic())
            self._flush()

    def eof_received(self) -> bool:
        """A client that closes its half has closed the connection."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._transport = None
        self._timer.close()
        if self._connection is not None:
            self._touch()
            self._connection.connection_lost()
            self._connection = None

    def pause_writing(self) -> None:
        """The client does not keep up."""
        self._paused = True
        if self._connection is not None:
            self._connection.pause_sending(self._monotonic())
            self._timer.arm(self._connection.next_deadline())

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._paused = False
        if self._connection is not None:
            self._touch()
            self._connection.resume_sending()
            self._flush()

    def close(self) -> None:
        """Close from our side, behind what is already to be said."""
        if self._connection is not None:
            self._connection.close()
            self._flush()

    def evict(self) -> None:
        """Close at once: another connection needs the place."""
        if self._connection is not None:
            self._connection.connection_lost()
            self._touch()
        if self._transport is not None:
            self._transport.abort()

    @property
    def silent(self) -> bool:
        """Whether nothing has arrived yet."""
        return self._connection is None or self._connection.silent

    def spare(self, seconds: float) -> bool:
        """See ServerConnection."""
        return self._connection is None or self._connection.spare(self._monotonic(), seconds)

    # ------------------------------------------------------------------------------------------------- inside

    def _wake(self) -> None:
        """Something happened outside a call from the transport: look at it once, in the next turn of the
        loop."""
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._woken)

    def _woken(self) -> None:
        self._flush_due = False
        self._touch()
        self._flush()

    def _flush(self) -> None:
        connection, transport = self._connection, self._transport
        if connection is None or transport is None:
            return
        while not self._paused:
            pdus = connection.data_to_send()
            if pdus:
                transport.writelines(pdus)
                if connection.drained:
                    break
            elif not connection.go_on():
                break
        else:
            connection.go_on()  # what was held back, before there is more
        if connection.finished:
            transport.close()
            self._timer.arm(connection.next_deadline())
            return
        reading = connection.reading
        if reading != self._reading and not transport.is_closing():
            self._reading = reading
            if reading:
                transport.resume_reading()
            else:
                transport.pause_reading()
        if not connection.looked_at_by(self._timer.at):
            self._timer.arm(connection.next_deadline())

    # ------------------------------------------------------------------------------------------- deadlines

    def _expire(self) -> None:
        if self._connection is None or self._transport is None:
            return
        now = self._monotonic()
        deadline = self._connection.next_deadline()
        if deadline is not None and deadline <= now:
            self._touch()
            self._connection.expire(now)
            self._transport.abort()
        else:
            self._timer.arm(deadline)
