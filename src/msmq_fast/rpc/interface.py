"""Interfaces: what a service looks like to the runtime, and the operations of one by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from msmq_fast.rpc.call import Call
from msmq_fast.rpc.faults import OP_RANGE, RpcFault
from msmq_fast.rpc.operations import InterfaceTable, OperationCodec
from msmq_fast.rpc.syntaxes import NDR, NDR64, SyntaxId

__all__ = [
    "Interface",
    "InterfacePolicy",
    "Operation",
    "PresentationContext",
    "Service",
]


@dataclass(frozen=True, slots=True)
class InterfacePolicy:
    """Which callers an interface accepts (QP-010, QP-011). Levels are those of MS-RPCE 2.2.1.1.8."""

    minimum_level: int = 1
    """The least authentication level: 1 none, 2 connect, 4 packet, 5 integrity, 6 privacy."""
    named_level: int = 1
    """The least authentication level of callers with a name, where it is higher than `minimum_level`."""
    anonymous: bool = True
    """Whether callers without a name may call: those without authentication, and NTLM's anonymous user."""
    exempt: frozenset[int] = frozenset()
    """Opnums that anyone may call at any level."""
    refuse_by_fault: bool = False
    """How a caller is refused: False by the result MQ_ERROR_ACCESS_DENIED (`Service.failed`), True by a fault
    with the status ERROR_ACCESS_DENIED."""
    obsolete_status: int = OP_RANGE
    """The status of the fault that answers a call of an obsolete operation."""

    def allows(self, opnum: int, *, level: int, anonymous: bool) -> bool:
        """Whether a caller at this level may call."""
        if opnum in self.exempt:
            return True
        if anonymous:
            return level >= self.minimum_level and self.anonymous
        return level >= max(self.minimum_level, self.named_level)


class Service(Protocol):
    """One interface. For each operation there is a method of its name, `method(call, args)`, that returns the
    results; or None when it will call `call.reply` or `call.fault` later, or what it waits for, a `Pending`.

    A method that raises MSMQError has failed with that HRESULT, see `failed`; RpcFault becomes a fault; any
    other exception is logged and becomes the fault nca_s_fault_unspec.
    """

    policy: InterfacePolicy

    @property
    def table(self) -> InterfaceTable:
        """Its operations."""

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """The results of an operation that failed: [out] parameters zero, `result` the HRESULT. May raise
        RpcFault instead, as it must where an operation returns no result."""
        return call.operation.results(args, result=hresult)


class Operation:
    """One operation of a registered interface."""

    __slots__ = ("codec", "method", "name", "opnum")

    def __init__(self, codec: OperationCodec, method: Callable[[Call, Any], Any]) -> None:
        self.codec = codec
        self.method = method
        self.name = codec.name
        self.opnum = codec.opnum


class PresentationContext:
    """An interface in a transfer syntax, which a client names by its context identifier."""

    __slots__ = ("interface", "ndr64", "transfer")

    def __init__(self, interface: Interface, transfer: SyntaxId) -> None:
        self.interface = interface
        self.transfer = transfer
        self.ndr64 = transfer == NDR64


class Interface:
    """A service under its name. `calls` counts the calls that were made of it."""

    __slots__ = ("_obsolete", "calls", "name", "operations", "policy", "presented", "service", "syntax")

    def __init__(self, service: Service) -> None:
        """Raises AttributeError if the service lacks the method of an operation."""
        table = service.table
        self.service = service
        self.policy = service.policy
        self.name = table.name
        self.syntax = SyntaxId(table.uuid, *table.version)
        self.calls = 0
        self.presented = {transfer: PresentationContext(self, transfer) for transfer in (NDR, NDR64)}
        self.operations: dict[int, Operation] = {}
        """Those that can be called, by number."""
        self._obsolete = {codec.opnum for codec in table.ops if codec.obsolete}
        for codec in table.ops:
            if not codec.obsolete:
                self.operations[codec.opnum] = Operation(codec, getattr(service, codec.name))

    def operation(self, opnum: int) -> Operation:
        """Raises RpcFault: OP_RANGE for numbers that the interface does not have, what the policy says for
        obsolete ones."""
        operation = self.operations.get(opnum)
        if operation is None:
            raise RpcFault(self.policy.obsolete_status if opnum in self._obsolete else OP_RANGE)
        return operation
