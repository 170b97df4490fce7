"""One endpoint and its connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from msmq_fast.logfields import Refuse
from msmq_fast.rpc.auth.context import AcceptorFactory
from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.endpoint import Endpoint, Offload
from msmq_fast.rpc.limits import Limits
from msmq_fast.rpc.requests import IncompleteBytes
from msmq_fast.security.addresses import address_group, within_share

__all__ = ["RpcServer"]


class RpcServer(Endpoint):
    """An endpoint that accepts connections up to its limits."""

    def __init__(
        self,
        endpoint: str,
        *,
        acceptors: AcceptorFactory,
        random: Callable[[int], bytes],
        limits: Limits | None = None,
        refuse: Refuse = lambda what, reason, detail="", *, peer="": None,
        offload: Offload | None = None,
        incomplete: IncompleteBytes | None = None,
    ) -> None:
        """See Endpoint."""
        super().__init__(
            endpoint,
            acceptors=acceptors,
            random=random,
            limits=limits,
            refuse=refuse,
            offload=offload,
            incomplete=incomplete,
        )
        self._connections: set[ServerConnection] = set()
        self._per_address: Counter[str] = Counter()

    def open_connection(
        self, address: str, now: float, wake: Callable[[], None] | None = None
    ) -> ServerConnection | None:
        """Returns the ServerConnection of a new connection from this address, or None if there are too many
        connections.

        `wake` is called when the connection has output although nothing was received.
        """
        if len(self._connections) >= self.limits.connections:
            self.refuse("rpc connection", "too many connections", address, peer=address)
            return None
        group = address_group(address)
        held, most = self._per_address[group], self.limits.connections_per_address
        if not within_share(held, most, len(self._connections), self.limits.connections):
            self.refuse("rpc connection", "too many connections from one address", address, peer=address)
            return None
        connection = ServerConnection(self, address, now, wake, self._forget)
        self._connections.add(connection)
        self._per_address[group] += 1
        self.counters.connections += 1
        return connection

    def _forget(self, connection: ServerConnection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            group = address_group(connection.address)
            self._per_address[group] -= 1
            if not self._per_address[group]:
                del self._per_address[group]

    @property
    def connections(self) -> Iterator[ServerConnection]:
        """Yield the open connections."""
        return iter(tuple(self._connections))
