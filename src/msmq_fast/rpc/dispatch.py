"""Calls the service's method for a request, and answers with its result or its exception."""

from __future__ import annotations

import logging
from typing import NamedTuple, Protocol
from uuid import UUID

from msmq_fast.logfields import logged
from msmq_fast.protocol.errors import AccessDenied, MSMQError
from msmq_fast.rpc.association import Association
from msmq_fast.rpc.auth.context import Caller
from msmq_fast.rpc.call import Call, CallPort, Pending
from msmq_fast.rpc.faults import ACCESS_DENIED, UNSPECIFIED, RpcFault
from msmq_fast.rpc.refusals import PduRefused
from msmq_fast.rpc.requests import Request
from msmq_fast.rpc.verification import SIGNATURE, TAIL, strip_trailer

__all__ = ["RequestPort", "UnderWay", "dispatch"]

_log = logging.getLogger("msmq_fast.rpc")


class RequestPort(CallPort, Protocol):
    """The part of a connection that `dispatch` needs."""

    @property
    def anonymous(self) -> Caller:
        """The caller of requests without a security context."""

    @property
    def header_signing(self) -> bool:
        """Whether header signing was agreed on for the connection."""


class UnderWay(NamedTuple):
    """A call that has not been answered yet, and the operation for which it waits, if that can be
    cancelled.
    """

    call: Call
    pending: Pending | None

    def abandon(self) -> None:
        """Abandons the call, because the caller no longer waits for the reply."""
        self.call.abandon(self.pending)


def dispatch(connection: RequestPort, association: Association, request: Request) -> UnderWay | None:
    """Calls the service's method for a request. Returns the call if it is still in progress, None if it has
    been answered.

    Raises PduRefused if the operation does not exist.
    """
    pdu, context, security, stub = request
    interface = context.interface
    try:
        operation = interface.operations.get(pdu.opnum) or interface.operation(pdu.opnum)
    except RpcFault as fault:
        raise PduRefused(
            "opnum", fault.status, context_id=pdu.context_id, kept=True, executed=False
        ) from None
    caller = connection.anonymous if security is None or security.caller is None else security.caller
    call = Call(connection, association, interface.name, operation.codec, pdu.call_id, caller)
    call.ndr64 = context.ndr64
    call.context_id = pdu.context_id
    call.security = security
    if (raw := pdu.object_uuid) is not None:
        call.object_uuid = UUID(bytes=raw) if pdu.big_endian else UUID(bytes_le=raw)
    interface.calls += 1
    pending: Pending | None = None
    policy = interface.policy
    try:
        if stub.rfind(SIGNATURE, -TAIL) >= 0:
            stub = strip_trailer(
                stub,
                interface=interface.syntax,
                transfer=context.transfer,
                request=pdu.data,
                header_signing=connection.header_signing,
            )
        allowed = policy.allows(pdu.opnum, level=caller.auth_level, anonymous=not caller.name)
        if not allowed and policy.refuse_by_fault:
            raise RpcFault(ACCESS_DENIED)
        args = operation.codec.decode_request(stub, ndr64=context.ndr64, big_endian=pdu.big_endian)
        try:
            if not allowed:
                raise AccessDenied("the policy of the interface")
            results = operation.method(call, args)
        except MSMQError as error:
            results = interface.service.failed(call, args, error.code)
    except RpcFault as fault:
        call.fault(fault.status)
    except Exception:
        connection.counters.failures += 1
        _log.exception("%s.%s failed", interface.name, operation.name, extra=logged(peer=caller.address))
        call.fault(UNSPECIFIED)
    else:
        if not call.alive:
            return None
        if isinstance(results, Pending):
            pending = results
        elif results is not None:
            call.reply(results)
            return None
    return UnderWay(call, pending) if call.alive else None
