"""Checks and assembles the fragments of one connection's requests (C706 12.6.4.9, MS-RPCE 3.3.3.5).

The order of the checks and the answers to failures are those of Windows, as far as they can be observed from
outside: `docs/explanation/architecture.md`, "The RPC runtime".
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

_LARGEST_CALL_ID = 0x7FFFFFFF  # the limit of Windows (MS-RPCE 3.3.3.5.2, note 123)
_OLD_CALLS = 150  # how many calls a late fragment may be behind the latest call (3.3.3.5.6)


class IncompleteBytes:
    """Counts the bytes of incomplete requests over all connections of an endpoint."""

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0


class Request(NamedTuple):
    """A complete request. `pdu` is its first fragment, `stub` the joined stub of all fragments."""

    pdu: Pdu
    context: PresentationContext
    security: Security | None
    stub: bytes | bytearray


_new = tuple.__new__  # avoids the slower constructor of the named tuple: one object is created for every call


class _Assembly:
    """An incomplete request, or a rejected one (`refused`) whose other fragments are ignored."""

    __slots__ = ("context", "pdu", "refused", "security", "stub")

    def __init__(self, pdu: Pdu, context: PresentationContext | None, security: Security | None) -> None:
        self.pdu = pdu
        self.context = context
        self.security = security
        self.stub = bytearray()
        self.refused = context is None


class RequestIntake:
    """Assembles requests: `take` accepts request PDUs and returns complete requests. `multiplexed` and
    `header_signing` are the negotiated features.
    """

    def __init__(
        self,
        limits: Limits,
        incomplete: IncompleteBytes,
        contexts: Mapping[int, PresentationContext],
        security: SecurityTable,
        active: Container[int],
    ) -> None:
        """`active` holds the identifiers of the calls in progress."""
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
        """Whether only some of the PDUs of a request have arrived."""
        return self._assembly is not None

    def take(self, pdu: Pdu, *, busy: bool) -> Request | None:
        """Processes a request PDU. Returns the request if this was its last PDU.

        `busy` is whether calls are in progress on the connection. Raises PduRefused.
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
        """Releases references after the connection has ended."""
        self._drop()

    # ------------------------------------------------------------------------------------------- inside

    def _go_on(self, assembly: _Assembly, pdu: Pdu) -> Request | None:
        first = assembly.pdu
        # Only the context, operation and authentication of the first fragment count.
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
        """Ignores the other fragments of a rejected call if the connection stays open.

        The fragments will still arrive, and protected PDUs advance the sequence numbers of the security
        context.
        """
        try:
            security = self._security.of_request(pdu)
        except PduRefused:
            return
        self._unprotect(pdu, security, 0)
        if not pdu.flags & _LAST:
            self._assembly = _Assembly(pdu, None, security)
