"""Requests of one connection: fragments checked and put together (C706 12.6.4.9, MS-RPCE 3.3.3.5).

The order of the checks, and what each failure is answered with, is that of Windows, as far as it can be seen
from outside: `docs/explanation/architecture.md`, "The RPC runtime".
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from msmq_fast._native.rpcframing import Pdu
from msmq_fast.rpc.auth.context import AuthError
from msmq_fast.rpc.faults import (
    ACCESS_DENIED,
    NO_CALL_ACTIVE,
    SECURITY_ERROR,
    SERVER_TOO_BUSY,
    UNKNOWN_IF,
)
from msmq_fast.rpc.interface import PresentationContext
from msmq_fast.rpc.limits import Limits
from msmq_fast.rpc.pdu import Flag, PduFault
from msmq_fast.rpc.refusals import PduRefused
from msmq_fast.rpc.securing import Security, SecurityTable

__all__ = ["IncompleteBytes", "Request", "RequestIntake"]

_FIRST, _LAST, _CANCEL = int(Flag.FIRST), int(Flag.LAST), int(Flag.PENDING_CANCEL)

_LARGEST_CALL_ID = 0x7FFFFFFF  # of Windows (MS-RPCE 3.3.3.5.2, note 123)
_OLD_CALLS = 150  # so far behind may late fragments be (3.3.3.5.6)


class IncompleteBytes:
    """The bytes of requests that have not arrived in full, over all connections of an endpoint."""

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0


class Request(NamedTuple):
    """A whole request. `pdu` is its first fragment."""

    pdu: Pdu
    context: PresentationContext
    security: Security | None
    stub: bytes | bytearray


_new = tuple.__new__  # without the function that a named tuple has of its own: one is made for every call


class _Assembly:
    """A request that has not arrived in full, or of which the rest is to be ignored (`refused`)."""

    __slots__ = ("context", "pdu", "refused", "security", "stub")

    def __init__(self, pdu: Pdu, context: PresentationContext | None, security: Security | None) -> None:
        self.pdu = pdu
        self.context = context
        self.security = security
        self.stub = bytearray()
        self.refused = context is None


class RequestIntake:
    """PDUs go in by `take`, requests come out. `multiplexed` and `header_signing` are what was negotiated."""

    def __init__(
        self,
        limits: Limits,
        incomplete: IncompleteBytes,
        contexts: Mapping[int, PresentationContext],
        security: SecurityTable,
        active: Container[int],
    ) -> None:
        """`active` holds the identifiers of the calls that are under way."""
        self._limits = limits
        self._incomplete = incomplete
        self._contexts = contexts
        self._security = security
        self._active = active
        self._assembly: _Assembly | None = None
        self._highest = -1
        self.multiplexed = False
        self.header_signing = False

    @property
    def receiving(self) -> bool:
        """Whether a request has arrived in part."""
        return self._assembly is not None

    def take(self, pdu: Pdu, *, busy: bool) -> Request | None:
        """A request PDU; the request whose last one it was. `busy`: calls are under way.

        Raises PduRefused.
        """
        if pdu.fault:
            raise PduRefused(f"request: {PduFault(pdu.fault).name.lower()}")
        if self._security.unfinished is not None:
            raise PduRefused("request before the security context is complete", executed=False)
        assembly = self._assembly
        if assembly is not None:
            if not self.multiplexed or pdu.call_id == assembly.pdu.call_id:
                return self._go_on(assembly, pdu)
            raise PduRefused("request within another")
        if busy and not self.multiplexed:
            raise PduRefused("request during another")
        first = pdu.flags & _FIRST
        if not first:
            if 0 < self._highest - pdu.call_id < _OLD_CALLS:
                return None
            if not self.multiplexed:
                raise PduRefused("request without its first fragment")
        elif pdu.flags & _CANCEL:
            raise PduRefused("request that is cancelled already", NO_CALL_ACTIVE, executed=False)
        if pdu.call_id > _LARGEST_CALL_ID or pdu.call_id < self._highest or pdu.call_id in self._active:
            raise PduRefused("call_id")
        context = self._contexts.get(pdu.context_id)
        if context is None:
            self._ignore(pdu)
            raise PduRefused("presentation context", UNKNOWN_IF, kept=True, executed=False)
        security = None
        if pdu.auth_length or self._security.contexts:
            security = self._security.of_request(pdu)
        stub = pdu.stub if security is None else self._unprotect(pdu, security, pdu.context_id)
        if not first:
            raise PduRefused("request without its first fragment", context_id=pdu.context_id)
        self._highest = pdu.call_id
        if pdu.flags & _LAST:
            return _new(Request, (pdu, context, security, stub))
        if pdu.alloc_hint > self._limits.stub:
            raise PduRefused("request too large", ACCESS_DENIED, context_id=pdu.context_id)
        assembly = self._assembly = _Assembly(pdu, context, security)
        self._append(assembly, stub)
        return None

    def release(self) -> None:
        """The connection has ended."""
        self._drop()

    # ------------------------------------------------------------------------------------------- inside

    def _go_on(self, assembly: _Assembly, pdu: Pdu) -> Request | None:
        first = assembly.pdu
        # What this PDU says of context, operation and authentication does not count: the first one's does.
        if pdu.call_id != first.call_id:
            raise PduRefused("request within another", call_id=first.call_id, context_id=first.context_id)
        if assembly.security is not None and assembly.security.protects and not pdu.auth_length:
            raise PduRefused("fragment without authentication", context_id=first.context_id)
        stub = self._unprotect(pdu, assembly.security, first.context_id)
        if pdu.flags & _FIRST:
            raise PduRefused("first fragment twice", context_id=first.context_id)
        if not assembly.refused:
            self._append(assembly, stub)
        if not pdu.flags & _LAST:
            return None
        self._drop()
        if assembly.context is None:
            return None
        return Request(first, assembly.context, assembly.security, assembly.stub)

    def _unprotect(self, pdu: Pdu, security: Security | None, context_id: int) -> bytes:
        if security is None:
            return pdu.stub
        try:
            return security.unprotect(pdu, sign_header=self.header_signing)
        except AuthError as error:
            raise PduRefused(
                f"authentication {error.failure}", SECURITY_ERROR, context_id=context_id, detail=str(error)
            ) from None

    def _append(self, assembly: _Assembly, stub: bytes) -> None:
        context_id = assembly.pdu.context_id
        if len(assembly.stub) + len(stub) > self._limits.stub:
            raise PduRefused("request too large", ACCESS_DENIED, context_id=context_id)
        if self._incomplete.held + len(stub) > self._incomplete.limit:
            raise PduRefused("too many incomplete requests", SERVER_TOO_BUSY, context_id=context_id)
        self._incomplete.held += len(stub)
        assembly.stub += stub

    def _drop(self) -> None:
        if self._assembly is not None:
            self._incomplete.held -= len(self._assembly.stub)
            self._assembly = None

    def _ignore(self, pdu: Pdu) -> None:
        """The call is refused and the connection lives: the other fragments of the call will come, and PDUs
        that are protected count on the other side."""
        try:
            security = self._security.of_request(pdu)
        except PduRefused:
            return
        self._unprotect(pdu, security, 0)
        if not pdu.flags & _LAST:
            self._assembly = _Assembly(pdu, None, security)
