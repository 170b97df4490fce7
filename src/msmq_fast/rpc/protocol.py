"""The asyncio adapter of one connection: passes bytes between the transport and the ServerConnection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from msmq_fast.adapter import NOWHERE, Adapter
from msmq_fast.lazytimer import LazyTimer
from msmq_fast.rpc.auth.context import AuthError
from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.endpoint import Offload
from msmq_fast.rpc.server import RpcServer

__all__ = ["RpcProtocol", "on_threads"]

_WRITE_HIGH = (
    1 << 19
)  # bytes in the buffer of the transport at which it calls pause_writing: two batches of fragments


def on_threads(loop: asyncio.AbstractEventLoop) -> Offload:
    """Returns a function that runs legs of security contexts on the threads of the loop."""

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


class RpcProtocol(Adapter, asyncio.BufferedProtocol):
    """The adapter of one connection. `touch` is called before any action that may add work to the store's
    current batch.
    """

    def __init__(
        self,
        server: RpcServer,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        touch: Callable[[], None],
    ) -> None:
        super().__init__(loop)
        self._server = server
        self._monotonic = monotonic
        self._touch = touch
        self._connection: ServerConnection | None = None
        self._timer = LazyTimer(loop, monotonic, self._expire)
        self._paused = False

    # ----------------------------------------------------------------------------------- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Opens a ServerConnection for the new transport. Aborts the transport if there are too many
        connections or the peer has already disconnected.
        """
        super().connection_made(transport)
        stream = cast(asyncio.Transport, transport)
        stream.set_write_buffer_limits(high=_WRITE_HIGH)
        peer = stream.get_extra_info("peername")  # None if the peer has already disconnected
        connection = self._server.open_connection(peer[0], self._monotonic(), self._wake) if peer else None
        if connection is None:
            stream.abort()
            return
        self._connection = connection
        self._timer.arm(connection.next_deadline())

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns the free part of the receive buffer, into which asyncio must write received bytes."""
        if self._connection is None or self._connection.closing:
            return NOWHERE
        return self._connection.buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Processes the `nbytes` bytes that asyncio has received into the buffer, and writes the answers."""
        if self._connection is not None and not self._connection.closing:
            self._touch()
            self._connection.received(nbytes, self._monotonic())
            self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Abandons the calls of the connection; asyncio calls this when the transport is closed."""
        self._transport = None
        self._timer.close()
        if self._connection is not None:
            self._touch()
            self._connection.connection_lost()
            self._connection = None

    def pause_writing(self) -> None:
        """Stops the output: the buffer of the transport is full, because the client reads too slowly."""
        self._paused = True
        if self._connection is not None:
            self._connection.pause_sending(self._monotonic())
            self._timer.arm(self._connection.next_deadline())

    def resume_writing(self) -> None:
        """Resumes the output: the buffer of the transport has room again."""
        self._paused = False
        if self._connection is not None:
            self._touch()
            self._connection.resume_sending()
            self._flush()

    def close(self) -> None:
        """Closes the connection from the server's side once pending output is written."""
        if self._connection is not None:
            self._connection.close()
            self._flush()

    def evict(self) -> None:
        """Closes the connection at once to make room for another one."""
        if self._connection is not None:
            self._connection.connection_lost()
            self._touch()
        if self._transport is not None:
            self._transport.abort()

    @property
    def silent(self) -> bool:
        """Whether no bytes have arrived on this connection yet."""
        return self._connection is None or self._connection.silent

    @property
    def user(self) -> str:
        """The name of the authenticated client, see ServerConnection.user."""
        return "" if self._connection is None else self._connection.user

    def spare(self, seconds: float) -> bool:
        """See ServerConnection.spare."""
        return self._connection is None or self._connection.spare(self._monotonic(), seconds)

    # ------------------------------------------------------------------------------------------------- inside

    def _look(self) -> None:
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
            connection.go_on()  # first the output that was held back
        if connection.finished:
            transport.close()
            self._timer.arm(connection.next_deadline())
            return
        if connection.reading != self._reading:
            self._read(connection.reading)
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
