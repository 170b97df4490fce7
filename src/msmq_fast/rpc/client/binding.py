"""A binding: the connections of one association with one endpoint, for one interface (MS-RPCE 3.3.2.1)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msmq_fast.rpc.client.connection import ClientCall, ClientConnection, Credentials
from msmq_fast.rpc.client.errors import CallLost
from msmq_fast.rpc.client.timers import Timer, Timers
from msmq_fast.rpc.endpoint import Offload
from msmq_fast.rpc.ndr.operations import InterfaceTable
from msmq_fast.rpc.syntaxes import SyntaxId
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["Binding", "BindingEnvironment", "Dialer"]

MOST_CONNECTIONS: Final = 16
"""The largest number of connections of one binding to a server that executes one call at a time on each.

Waiting reads may use all but one of them, so that the end of a read need not wait.
"""


class Dialer(Protocol):
    """Opens connections to other computers."""

    def dial(self, host: str, port: int, connection: ClientConnection) -> None:
        """Connects to a host name or address, and serves `connection`: calls its `connected` method, or its
        `lost` method if that fails.
        """


@dataclass(frozen=True, slots=True)
class BindingEnvironment:
    """What all bindings of the process share. `offload` runs work that may wait for files or the network."""

    dialer: Dialer
    offload: Offload
    timers: Timers


class Binding:
    """Sends calls over one or several connections.

    It opens the first connection at once. If the server does not support several calls on one connection
    (PFC_CONC_MPX), the binding opens more connections in the same association. It ends when it loses a
    connection, because the server then discards the state of the association.
    """

    def __init__(
        self,
        environment: BindingEnvironment,
        table: InterfaceTable,
        host: str,
        port: int,
        credentials: Credentials | None,
    ) -> None:
        self.host = host
        self.on_lost: Signal[[str]] = Signal()  # not emitted after close()
        self._environment = environment
        self._table = table
        self._interface = SyntaxId(table.uuid, *table.version)
        self._port = port
        self._credentials = credentials
        self._connections: list[ClientConnection] = []
        self._waiting: deque[ClientCall] = deque()
        self._watches: dict[ClientCall, Timer] = {}  # the timers of calls with a time-out
        self._reads: deque[ClientCall] = deque()  # reads that wait for a connection, after all other calls
        self._ended: Exception | None = None
        self._closing = False
        self._dial(0)

    @property
    def lost(self) -> bool:
        """Whether the binding has ended, so that it can make no more calls."""
        return self._ended is not None

    def call(
        self,
        name: str,
        *,
        timeout: float | None = None,
        hang_up: bool = False,
        read: int = 0,
        **parameters: Any,
    ) -> Completion[Any]:
        """Calls an operation. The completion returns the results, or fails with RpcFault, CallLost or
        LogonRefused.

        After `timeout` seconds the call is cancelled and its answer ignored (MS-MQQP 3.2.4.1). Each received
        part of an answer restarts this time. With `hang_up`, the time-out ends the whole binding instead:
        only then does the server put back the message of a call whose outcome is unknown. `read` is the
        request identifier if the call is a read, otherwise 0.
        """
        op = self._table.op(name)
        call = ClientCall(op, op.Args(**parameters), read)
        if self._ended is not None:
            call.completion.fail(CallLost(str(self._ended), sent=False))
            return call.completion
        if timeout is not None:
            self._watch(call, timeout, hang_up=hang_up)
        call.completion.add_done_callback(lambda _: self._answered(call))
        (self._reads if read else self._waiting).append(call)
        self._advance()
        return call.completion

    def withdraw(self, read: int) -> bool:
        """Ends the read with the request identifier `read` if it was not sent yet. Returns False if the
        server may already have received it.
        """
        for call in self._reads:
            if call.read == read:
                self._reads.remove(call)
                call.completion.fail(CallLost("cancelled", sent=False))
                return True
        return False

    def close(self, patience: float = 0.0) -> None:
        """Closes the connections once the calls in progress are answered, at the latest after `patience`
        seconds.
        """
        if self._ended is not None or self._closing:
            return
        self._closing = True
        if not self._busy or not patience:
            self._end(CallLost("closed", sent=False))
            return
        self._environment.timers.after(patience, lambda: self._end(CallLost("closed", sent=False)))

    # ---- inside

    @property
    def _busy(self) -> bool:
        return bool(self._waiting or self._reads) or any(connection.calls for connection in self._connections)

    def _dial(self, association: int) -> None:
        connection = ClientConnection(
            self.host,
            self._interface,
            self._credentials,
            self._environment.offload,
            opened=self._advance,
            ended=self._end,
            association=association,
        )
        self._connections.append(connection)
        self._environment.dialer.dial(self.host, self._port, connection)

    def _advance(self) -> None:
        """Sends waiting calls while connections are available."""
        while self._ended is None:
            calls = self._waiting or self._reads
            if not calls or (calls is self._reads and not self._spares):
                return
            connection = self._free()
            if connection is None:
                return
            connection.send(calls.popleft())

    @property
    def _spares(self) -> bool:
        """Whether a connection remains for other calls if one more read is sent."""
        reading = 0
        for connection in self._connections:
            if connection.multiplexed:
                return True
            reading += any(call.read for call in connection.calls.values())
        return reading < MOST_CONNECTIONS - 1

    def _free(self) -> ClientConnection | None:
        opened = [connection for connection in self._connections if connection.open]
        for connection in opened:
            if not connection.spent and (connection.multiplexed or not connection.calls):
                return connection
        if opened and len(opened) == len(self._connections) < MOST_CONNECTIONS:
            self._dial(opened[0].association)
        return None

    def _answered(self, call: ClientCall) -> None:
        timer = self._watches.pop(call, None)
        if timer is not None:
            timer.cancel()
        if self._closing and not self._busy and self._ended is None:
            self._end(CallLost("closed", sent=False))
        else:
            self._advance()

    def _watch(self, call: ClientCall, timeout: float, *, hang_up: bool) -> None:
        pieces = self._pieces

        def overdue() -> None:
            reason = f"no answer within {timeout:g} s"
            if self._pieces != pieces:
                self._watch(call, timeout, hang_up=hang_up)
            elif hang_up and call not in self._reads:
                self._end(CallLost(reason, sent=True))
            else:
                self._overdue(call, reason)

        self._watches[call] = self._environment.timers.after(timeout, overdue)

    @property
    def _pieces(self) -> int:
        return sum(connection.pieces for connection in self._connections)

    def _overdue(self, call: ClientCall, reason: str) -> None:
        for connection in self._connections:
            if call.call_id in connection.calls and connection.calls[call.call_id] is call:
                connection.abandon(call, reason)
                return
        for calls in (self._waiting, self._reads):
            if call in calls:
                calls.remove(call)
        call.completion.fail(CallLost(reason, sent=False))

    def _end(self, error: Exception) -> None:
        if self._ended is not None:
            return
        self._ended = error
        waiting = [*self._waiting, *self._reads]
        self._waiting.clear()
        self._reads.clear()
        for connection in self._connections:
            connection.close(str(error))
        for call in waiting:
            lost = CallLost(str(error), sent=False) if isinstance(error, CallLost) else error
            call.completion.fail(lost)
        if not self._closing:
            self.on_lost(str(error))
