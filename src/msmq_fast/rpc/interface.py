"""Interfaces: the runtime's view of a service, with its operations by number."""

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
    """Which callers an interface accepts (QP-010, QP-011). Levels are the authentication levels of MS-RPCE
    2.2.1.1.8.
    """

    minimum_level: int = 1
    """The lowest accepted authentication level: 1 none, 2 connect, 4 packet, 5 integrity, 6 privacy."""
    named_level: int = 1
    """The lowest accepted level for callers with a name, if it is higher than `minimum_level`."""
    anonymous: bool = True
    """Whether callers without a name are accepted: callers without authentication, and NTLM's
    anonymous user.
    """
    exempt: frozenset[int] = frozenset()
    """Numbers of operations that every caller may call at any level."""
    refuse_by_fault: bool = False
    """How a caller is rejected.

    False: by the result MQ_ERROR_ACCESS_DENIED (`Service.failed`). True: by a fault with the status
    ERROR_ACCESS_DENIED.
    """
    obsolete_status: int = OP_RANGE
    """The status of the fault that answers a call of an obsolete operation."""

    def allows(self, opnum: int, *, level: int, anonymous: bool) -> bool:
        """Whether a caller with this authentication level may call the operation `opnum`."""
        if opnum in self.exempt:
            return True
        if anonymous:
            return level >= self.minimum_level and self.anonymous
        return level >= max(self.minimum_level, self.named_level)


class Service(Protocol):
    """One interface, with a method for each operation.

    `method(call, args)` returns the results. If the service will call `call.reply` or `call.fault` later, the
    method returns None, or the `Pending` operation for which it waits. If it raises MSMQError, the operation
    has failed with the HRESULT of the error, see `failed`. RpcFault becomes a fault. Any other exception is
    logged and becomes the fault nca_s_fault_unspec.
    """

    policy: InterfacePolicy

    @property
    def table(self) -> InterfaceTable:
        """The table of the interface, with its operations."""

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Returns the results of an operation that failed: the [out] parameters are zero, and `result` is the
        HRESULT.

        May raise RpcFault instead; must do so for an operation that has no return value.
        """
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
    """An interface in one transfer syntax. Clients refer to it by its context identifier."""

    __slots__ = ("interface", "ndr64", "transfer")

    def __init__(self, interface: Interface, transfer: SyntaxId) -> None:
        self.interface = interface
        self.transfer = transfer
        self.ndr64 = transfer == NDR64


class Interface:
    """A registered service. `calls` counts the calls of its operations."""

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
        """The operations that can be called, by number."""
        self._obsolete = {codec.opnum for codec in table.ops if codec.obsolete}
        for codec in table.ops:
            if not codec.obsolete:
                self.operations[codec.opnum] = Operation(codec, getattr(service, codec.name))

    def operation(self, opnum: int) -> Operation:
        """Returns the operation with the number `opnum`.

        Raises RpcFault: with OP_RANGE if the interface has no operation with this number, with the policy's
        `obsolete_status` if the operation is obsolete.
        """
        operation = self.operations.get(opnum)
        if operation is None:
            raise RpcFault(self.policy.obsolete_status if opnum in self._obsolete else OP_RANGE)
        return operation
