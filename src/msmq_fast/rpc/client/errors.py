"""Converts failed calls to the errors that programs get."""

from __future__ import annotations

from msmq_fast.protocol.errors import (
    AccessDenied,
    MSMQError,
    RemoteMachineNotAvailable,
    StaleHandle,
    error,
)
from msmq_fast.protocol.hresults import HRESULTS
from msmq_fast.rpc import faults
from msmq_fast.rpc.faults import RpcFault

__all__ = ["CallLost", "EndpointNotRegistered", "LogonRefused", "refusal"]

_FAILURE = 0x8000_0000
_EXPLAINED = {
    faults.OP_RANGE: "its version does not have this operation",
    faults.UNKNOWN_IF: "it does not serve this interface",
    faults.RPC_X_BAD_STUB_DATA: "it does not understand the request",
    faults.SERVER_TOO_BUSY: "it is too busy",
    faults.PROTOCOL_ERROR: "it reports a protocol error",
}


class CallLost(Exception):
    """Raised if the connection ended, or the call timed out, before the answer.

    `sent` is whether the server may have executed the call.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class LogonRefused(Exception):
    """Raised if the server or this side's security provider rejects the credentials."""


class EndpointNotRegistered(Exception):
    """EPT_S_NOT_REGISTERED: the other computer does not serve an interface."""


def refusal(failure: Exception, host: str) -> MSMQError:
    """Returns the error that a program gets for a failed call. `host` is the other computer."""
    if isinstance(failure, MSMQError):
        return failure
    if isinstance(failure, LogonRefused):
        return AccessDenied(f"{host} rejects the log-on of this queue manager: {failure}")
    if not isinstance(failure, RpcFault):
        return RemoteMachineNotAvailable(f"{host}: {failure}")
    status = failure.status
    if status == faults.ACCESS_DENIED:
        return AccessDenied(f"{host} denies access")
    if status == faults.CONTEXT_MISMATCH:
        return StaleHandle(f"the handle of the open queue is no longer valid at {host}")
    if status in HRESULTS and status & _FAILURE:
        return error(status, f"reported by {host}")
    explained = _EXPLAINED.get(status, f"fault 0x{status:08X}")
    return MSMQError(f"{host}: {explained}")
