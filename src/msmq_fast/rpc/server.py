"""One endpoint: which interfaces it serves, to whom, and what its connections share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msmq_fast.rpc.association import AssociationTable
from msmq_fast.rpc.auth.context import AcceptorFactory, AuthError
from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.interface import Interface, Service
from msmq_fast.rpc.limits import Limits, RpcCounters
from msmq_fast.rpc.requests import IncompleteBytes
from msmq_fast.rpc.syntaxes import SyntaxId
from msmq_fast.security.addresses import address_group, within_share

__all__ = ["Offload", "RpcServer"]

Offload: TypeAlias = Callable[
    [Callable[[], bytes], Callable[[bytes | None, AuthError | None], None]],
    None,
]
"""Runs the first on a thread, then the second where the connection lives, with the result or the error."""


class RpcServer:
    """An endpoint with its interfaces and associations (MS-RPCE 3.3.3). Each TCP port has its own."""

    def __init__(
        self,
        endpoint: str,
        *,
        acceptors: AcceptorFactory,
        random: Callable[[int], bytes],
        limits: Limits | None = None,
        refuse: Callable[[str, str, str], None] = lambda what, reason, detail: None,
        offload: Offload | None = None,
        incomplete: IncompleteBytes | None = None,
    ) -> None:
        """`endpoint` is the secondary address of bind_ack, the port in digits. `random` gives so many random
        bytes. `refuse(what, reason, detail)` counts and logs a connection that is closed because of what the
        client did. `offload` runs legs of security contexts that may block; without it they run at once.
        Endpoints may share `incomplete`.
        """
        self.endpoint = endpoint
        self.acceptors = acceptors
        self.limits = limits or Limits()
        self.refuse = refuse
        self.offload = offload
        self.counters = RpcCounters()
        self.incomplete = incomplete or IncompleteBytes(self.limits.incomplete)
        self.handshakes = IncompleteBytes(self.limits.handshakes)
        self.associations = AssociationTable(random, self.limits.handles)
        self._interfaces: dict[tuple[object, int], Interface] = {}
        self._connections: set[ServerConnection] = set()
        self._per_address: Counter[str] = Counter()

    # ------------------------------------------------------------------------------------------- interfaces

    def register(self, service: Service) -> Interface:
        """Serve an interface. Raises ValueError if it is served already."""
        interface = Interface(service)
        key = (interface.syntax.uuid, interface.syntax.major)
        if key in self._interfaces:
            raise ValueError(f"{interface.name} is registered already")
        self._interfaces[key] = interface
        return interface

    def interface(self, syntax: SyntaxId) -> Interface | None:
        """The interface that a client asks for: in its major version, and with at least its minor version."""
        interface = self._interfaces.get((syntax.uuid, syntax.major))
        return interface if interface is not None and syntax.minor <= interface.syntax.minor else None

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """All that are served, in the order in which they were registered."""
        return tuple(self._interfaces.values())

    @property
    def interface_count(self) -> int:
        """NumberOfRegisteredInterfaces (MS-RPCE 3.3.3.1.2)."""
        return len(self._interfaces)

    # ------------------------------------------------------------------------------------------ connections

    def open_connection(self, address: str, now: float) -> ServerConnection | None:
        """The engine of a connection from this address, or None: there are too many."""
        if len(self._connections) >= self.limits.connections:
            self.refuse("rpc connection", "too many connections", address)
            return None
        group = address_group(address)
        held, most = self._per_address[group], self.limits.connections_per_address
        if not within_share(held, most, len(self._connections), self.limits.connections):
            self.refuse("rpc connection", "too many connections from one address", address)
            return None
        connection = ServerConnection(self, address, now)
        self._connections.add(connection)
        self._per_address[group] += 1
        self.counters.connections += 1
        return connection

    def forget(self, connection: ServerConnection) -> None:
        """A connection has ended."""
        if connection in self._connections:
            self._connections.discard(connection)
            group = address_group(connection.address)
            self._per_address[group] -= 1
            if not self._per_address[group]:
                del self._per_address[group]

    @property
    def connections(self) -> Iterator[ServerConnection]:
        """Those that are open."""
        return iter(tuple(self._connections))

    @property
    def connection_count(self) -> int:
        """How many are open."""
        return len(self._connections)
