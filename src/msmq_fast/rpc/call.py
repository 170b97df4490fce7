"""A call of an operation, and the methods with which a service answers it (MS-RPCE 3.3.3.1.5)."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from msmq_fast.logfields import logged
from msmq_fast.rpc.association import Association
from msmq_fast.rpc.auth.context import Caller
from msmq_fast.rpc.contexts import ContextHandles
from msmq_fast.rpc.faults import UNSPECIFIED
from msmq_fast.rpc.limits import RpcCounters
from msmq_fast.rpc.operations import OperationCodec
from msmq_fast.rpc.outbox import Buffer

if TYPE_CHECKING:
    from msmq_fast.rpc.reply_budget import ReplyBudget
    from msmq_fast.rpc.securing import Security

__all__ = ["Call", "CallPort", "Caller", "Pending"]

_log = logging.getLogger("msmq_fast.rpc")


class CallPort(Protocol):
    """The interface of a connection that a call uses."""

    @property
    def counters(self) -> RpcCounters:
        """The counters of the endpoint."""

    @property
    def reply_budget(self) -> ReplyBudget | None:
        """The budget that limits the messages received for calls. None (no limit) while few calls wait for
        messages.
        """

    def respond(self, call: Call, stub: Buffer, written: Callable[[bool], None] | None) -> None:
        """Queues the response to a call."""

    def fail(self, call: Call, status: int) -> None:
        """Queues the fault that answers a call."""


class Pending(ABC):
    """An operation for which a call waits. It is cancelled when the caller no longer waits."""

    __slots__ = ()

    @abstractmethod
    def abandon(self) -> None:
        """Cancels the operation, because the caller no longer waits for the reply. The reply may already be
        in transit.
        """


class Call:
    """A remote call in progress: it calls an operation of `interface`. The service must invoke `reply` or
    `fault` exactly once, which ends it.

    After the call was abandoned, `alive` is False, and a reply is discarded.
    """

    __slots__ = (
        "alive",
        "association",
        "call_id",
        "caller",
        "context_id",
        "interface",
        "ndr64",
        "object_uuid",
        "operation",
        "port",
        "security",
    )

    def __init__(
        self,
        port: CallPort,
        association: Association,
        interface: str,
        operation: OperationCodec,
        call_id: int,
        caller: Caller,
    ) -> None:
        self.port = port
        self.association = association
        self.interface = interface
        self.operation = operation
        self.call_id = call_id
        self.caller = caller
        self.ndr64 = False
        self.object_uuid: UUID | None = None
        self.context_id = 0
        self.security: Security | None = None
        self.alive = True

    @property
    def opnum(self) -> int:
        """The number of the operation."""
        return self.operation.opnum

    @property
    def handles(self) -> ContextHandles:
        """The context handles of the caller's association."""
        return self.association.handles

    @property
    def reply_budget(self) -> ReplyBudget | None:
        """The budget that limits the messages received for calls. None (no limit) while few calls wait for
        messages.
        """
        return self.port.reply_budget

    def reply(self, results: Any, written: Callable[[bool], None] | None = None) -> None:
        """Ends the call with its results.

        `written` is called exactly once: with True when the transport has accepted the whole reply, with
        False if the connection was lost or the call was abandoned before that. If the results cannot be
        encoded, the service has a bug: the error is logged, and the client gets a fault.
        """
        if not self.alive:
            if written is not None:
                written(False)
            return
        try:
            stub = self.operation.encode_response(results, ndr64=self.ndr64)
        except Exception:
            _log.exception(
                "the results of %s.%s cannot be encoded",
                self.interface,
                self.operation.name,
                extra=logged(peer=self.caller.address),
            )
            if written is not None:
                written(False)
            self.fault(UNSPECIFIED)
            return
        self.reply_stub(stub, written)

    def reply_stub(self, stub: Buffer, written: Callable[[bool], None] | None = None) -> None:
        """End the call as `reply` does, with results that are already encoded."""
        if self.alive:
            self.alive = False
            self.port.respond(self, stub, written)
        elif written is not None:
            written(False)

    def fault(self, status: int) -> None:
        """End the call with a fault PDU of this status."""
        if self.alive:
            self.alive = False
            self.port.fail(self, status)

    def abandon(self, pending: Pending | None) -> None:
        """Abandon the call, because the caller no longer waits for the reply. `pending` is the value that the
        method of the service returned.

        An exception from a service is logged and does not affect other calls.
        """
        if self.alive:
            self.alive = False
            if pending is None:
                return
            try:
                pending.abandon()
            except Exception:
                self.port.counters.failures += 1
                _log.exception(
                    "abandoning %s.%s failed",
                    self.interface,
                    self.operation.name,
                    extra=logged(peer=self.caller.address),
                )
