"""Queries the endpoint mapper of another computer for the port of an interface (C706 appendix O, MS-RPCE
3.3.2.3).
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from msmq_fast.rpc.client.binding import Binding, BindingEnvironment
from msmq_fast.rpc.client.errors import CallLost, EndpointNotRegistered
from msmq_fast.rpc.idl.epm import EPM, TWR
from msmq_fast.rpc.ndr.operations import InterfaceTable
from msmq_fast.rpc.services.epm import EPT_S_NOT_REGISTERED
from msmq_fast.rpc.services.towers import TcpTower, TowerError, decode_floors
from msmq_fast.rpc.syntaxes import NDR, SyntaxId
from msmq_fast.store.completion import Completion

__all__ = ["Mapper"]

_MOST_TOWERS: Final = 4
_NO_OBJECT: Final = UUID(int=0)


class Mapper:
    """A client of the endpoint mapper of one computer, used for all queries while one queue is being opened.
    It does not log on.
    """

    def __init__(self, environment: BindingEnvironment, host: str, port: int, timeout: float) -> None:
        """`timeout` is the time limit of one query in seconds."""
        self._binding = Binding(environment, EPM, host, port, None)
        self._timeout = timeout

    def find(self, table: InterfaceTable) -> Completion[int]:
        """Return the TCP port of an interface. Fails with EndpointNotRegistered, CallLost or RpcFault."""
        interface = SyntaxId(table.uuid, *table.version)
        tower = TcpTower(interface, NDR, 0).encode()
        asked: Completion[Any] = self._binding.call(
            "ept_map",
            timeout=self._timeout,
            obj=_NO_OBJECT,
            map_tower=TWR(len(tower), tower),
            entry_handle=None,
            max_towers=_MOST_TOWERS,
        )
        return asked.then(lambda results: Completion.of(_port(results, table.name)))

    def close(self) -> None:
        """Close the connection to the mapper."""
        self._binding.close()


def _port(results: Any, name: str) -> int:
    if results.status == EPT_S_NOT_REGISTERED:
        raise EndpointNotRegistered(f"{name} is not registered with the endpoint mapper")
    if results.status:
        raise CallLost(f"the endpoint mapper answered with the error 0x{results.status:08X}", sent=True)
    for twr in results.ITowers:
        try:
            tower = None if twr is None else TcpTower.of_floors(decode_floors(twr.tower_octet_string))
        except TowerError:
            continue
        if tower is not None and tower.port:
            return tower.port
    raise EndpointNotRegistered(f"the endpoint mapper has no TCP port for {name}")
