"""A binding: the connections of one association with one endpoint, for one interface (MS-RPCE 3.3.2.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msmq_fast.rpc.client.connection import ClientCall, ClientConnection, Credentials
from msmq_fast.rpc.client.errors import CallLost
from msmq_fast.rpc.client.timers import Timers
from msmq_fast.rpc.ndr.operations import InterfaceTable
from msmq_fast.rpc.server import Offload
from msmq_fast.rpc.syntaxes import SyntaxId
from msmq_fast.store.completion import Completion

__all__ = ["Binding", "Dialer", "Surroundings"]

MOST_CONNECTIONS: Final = 16
"""Of one binding, to a server that carries out one call at a time on each."""


class Dialer(Protocol):
    """Opens transports."""

    def dial(self, host: str, port: int, connection: ClientConnection) -> None:
        """Connect to a host name or address, and serve the connection: it is told `connected`, or `lost`."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What bindings are given."""

    dialer: Dialer
    offload: Offload
    timers: Timers


class Binding:
    """Carries out calls. The first connection is dialled at once; more of them, in the same association,
    where the server does not take several calls on one (PFC_CONC_MPX). A binding that loses a connection has
    ended: what the server kept for it is run down.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        table: InterfaceTable,
        host: str,
        port: int,
        credentials: Credentials | None,
    ) -> None:
        self.host = host
        self.on_lost: Callable[[str], None] | None = None
        self._around = surroundings
        self._table = table
        self._interface = SyntaxId(table.uuid, *table.version)
        self._port = port
        self._credentials = credentials
        self._connections: list[ClientConnection] = []
        self._waiting: deque[ClientCall] = deque()
        self._ended: Exception | None = None
        self._closing = False
        self._dial(0)

    @property
    def lost(self) -> bool:
        """Whether no call can be made any more."""
        return self._ended is not None

    def call(self, name: str, *, timeout: float | None = None, **parameters: Any) -> Completion[Any]:
        """Call an operation; the results, or RpcFault, CallLost or LogonRefused.

        `timeout` in seconds: then the call is cancelled, and its answer of no interest (MS-MQQP 3.2.4.1).
        """
        op = self._table.op(name)
        call = ClientCall(op, op.Args(**parameters))
        if self._ended is not None:
            call.completion.fail(CallLost(str(self._ended), sent=False))
            return call.completion
        if timeout is not None:
            timer = self._around.timers.after(timeout, lambda: self._overdue(call, timeout))
            call.completion.add_done_callback(lambda _: timer.cancel())
        call.completion.add_done_callback(lambda _: self._relieved())
        self._waiting.append(call)
        self._advance()
        return call.completion

    def close(self, patience: float = 0.0) -> None:
        """Close the connections when the calls under way are answered, after `patience` seconds at last."""
        if self._ended is not None or self._closing:
            return
        self._closing = True
        self.on_lost = None
        if not self._busy or not patience:
            self._end(CallLost("closed", sent=False))
            return
        self._around.timers.after(patience, lambda: self._end(CallLost("closed", sent=False)))

    # ---- inside

    @property
    def _busy(self) -> bool:
        return bool(self._waiting) or any(connection.calls for connection in self._connections)

    def _dial(self, association: int) -> None:
        connection = ClientConnection(
            self.host,
            self._interface,
            self._credentials,
            self._around.offload,
            association=association,
        )
        connection.on_open = self._advance
        connection.on_end = self._end
        self._connections.append(connection)
        self._around.dialer.dial(self.host, self._port, connection)

    def _advance(self) -> None:
        """Send the calls that wait, as far as there are connections for them."""
        while self._waiting and self._ended is None:
            connection = self._free()
            if connection is None:
                return
            connection.send(self._waiting.popleft())

    def _free(self) -> ClientConnection | None:
        opened = [connection for connection in self._connections if connection.open]
        for connection in opened:
            if not connection.spent and (connection.multiplexed or not connection.calls):
                return connection
        if opened and len(opened) == len(self._connections) < MOST_CONNECTIONS:
            self._dial(opened[0].association)
        return None

    def _relieved(self) -> None:
        if self._closing and not self._busy and self._ended is None:
            self._end(CallLost("closed", sent=False))
        else:
            self._advance()

    def _overdue(self, call: ClientCall, timeout: float) -> None:
        reason = f"no answer within {timeout:g} s"
        for connection in self._connections:
            if call.call_id in connection.calls and connection.calls[call.call_id] is call:
                connection.abandon(call, reason)
                return
        if call in self._waiting:
            self._waiting.remove(call)
        call.completion.fail(CallLost(reason, sent=False))

    def _end(self, error: Exception) -> None:
        if self._ended is not None:
            return
        self._ended = error
        waiting, self._waiting = self._waiting, deque()
        for connection in self._connections:
            connection.close()
        for call in waiting:
            lost = CallLost(str(error), sent=False) if isinstance(error, CallLost) else error
            call.completion.fail(lost)
        if self.on_lost is not None:
            self.on_lost(str(error))
