"""The state that all connections of one endpoint share: interfaces, limits, associations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msmq_fast.logfields import Refuse
from msmq_fast.rpc.association import AssociationTable
from msmq_fast.rpc.auth.context import AcceptorFactory, AuthError
from msmq_fast.rpc.interface import Interface, Service
from msmq_fast.rpc.limits import Limits, RpcCounters
from msmq_fast.rpc.requests import IncompleteBytes
from msmq_fast.rpc.syntaxes import SyntaxId

__all__ = ["Endpoint", "Offload"]

Offload: TypeAlias = Callable[
    [Callable[[], bytes], Callable[[bytes | None, AuthError | None], None]],
    None,
]
"""Runs the first callable on a thread, then the second on the thread of the connection, with the result or
the error.
"""


class Endpoint:
    """The interfaces and associations of an endpoint (MS-RPCE 3.3.3). Each TCP port is an endpoint of its
    own.
    """

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
        """`endpoint` is the secondary address in bind_ack: the port number as text.

        `random(n)` returns n random bytes. `refuse` counts and logs a connection that
        is closed because the client violated a rule. `offload` runs legs of security contexts that may block
        on a thread; without it they run at once. `incomplete` counts the bytes of incomplete requests;
        several endpoints may share it.
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

    # ------------------------------------------------------------------------------------------- interfaces

    def register(self, service: Service) -> Interface:
        """Registers an interface. Raises ValueError if it is already registered."""
        interface = Interface(service)
        key = (interface.syntax.uuid, interface.syntax.major)
        if key in self._interfaces:
            raise ValueError(f"the interface {interface.name} is already registered")
        self._interfaces[key] = interface
        return interface

    def interface(self, syntax: SyntaxId) -> Interface | None:
        """Returns the registered interface with this UUID, the same major version, and the same or a higher
        minor version; None if there is none.
        """
        interface = self._interfaces.get((syntax.uuid, syntax.major))
        return interface if interface is not None and syntax.minor <= interface.syntax.minor else None

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """All interfaces, in the order in which they were registered."""
        return tuple(self._interfaces.values())

    @property
    def interface_count(self) -> int:
        """NumberOfRegisteredInterfaces (MS-RPCE 3.3.3.1.2)."""
        return len(self._interfaces)
