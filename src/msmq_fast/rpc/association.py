"""Associations: the connections of one client process to one endpoint (MS-RPCE 3.3.1.1.1, 3.3.1.5.7)."""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast.rpc.contexts import ContextHandles
from msmq_fast.rpc.handlebudget import HandleBudget

__all__ = ["Association", "AssociationTable"]


class Association:
    """One association. `id` is the assoc_group_id of bind and bind_ack. The association ends when its last
    connection ends.
    """

    __slots__ = ("address", "connections", "handles", "id")

    def __init__(self, number: int, address: str, handles: ContextHandles) -> None:
        self.id = number
        self.address = address
        self.handles = handles
        self.connections = 0


class AssociationTable:
    """The associations of one endpoint."""

    def __init__(self, random: Callable[[int], bytes], handle_limit: int) -> None:
        """`handle_limit` is the largest number of context handles that all clients at one address together
        may have open.
        """
        self._random = random
        self._handles = HandleBudget(handle_limit)
        self._table: dict[int, Association] = {}

    def __len__(self) -> int:
        return len(self._table)

    def join(self, number: int, address: str) -> Association | None:
        """Adds a connection to the association that a bind from `address` names, and returns the association.

        `number` is the assoc_group_id; 0 creates an association. Returns None if no association has this
        number and address.
        """
        if number:
            association = self._table.get(number)
            if association is None or association.address != address:
                return None
        else:
            while not number or number in self._table:
                number = int.from_bytes(self._random(4), "little")
            handles = ContextHandles(self._random, self._handles.share(address))
            association = self._table[number] = Association(number, address, handles)
        association.connections += 1
        return association

    def leave(self, association: Association) -> None:
        """Remove a connection from its association. After the last one, the association ends and its context
        handles are run down."""
        association.connections -= 1
        if not association.connections:
            del self._table[association.id]
            association.handles.run_down()
