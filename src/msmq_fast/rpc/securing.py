"""The security contexts of one connection: establishes them, finds them by auth_context_id, and protects PDUs
with them (MS-RPCE 3.3.1.5.2, 3.3.1.5.4).

A security context is established in legs; each leg processes one token of the client.
"""

from __future__ import annotations

import logging

from msmq_fast._native.rpcframing import Pdu
from msmq_fast.rpc.auth.context import (
    AcceptorFactory,
    AuthError,
    AuthFailure,
    AuthLevel,
    AuthType,
    Caller,
    SecurityContext,
)
from msmq_fast.rpc.faults import ACCESS_DENIED, SECURITY_ERROR, UNKNOWN_AUTH_SERVICE
from msmq_fast.rpc.pdu import NakReason, SecTrailer
from msmq_fast.rpc.refusals import BindRefused, PduRefused
from msmq_fast.security.token import ANONYMOUS_TOKEN

__all__ = ["Security", "SecurityTable", "alter_refused", "bind_refused"]

_log = logging.getLogger("msmq_fast.rpc")


class Security:
    """One security context, identified by its auth_context_id."""

    __slots__ = ("caller", "context", "failed", "id", "level", "overhead", "protects", "trailer", "type")

    def __init__(self, trailer: Pdu, context: SecurityContext) -> None:
        self.id = trailer.auth_context_id
        self.type = trailer.auth_type
        self.level = trailer.auth_level
        self.context = context
        self.protects = self.level >= AuthLevel.CALL  # CALL is treated as PKT (MS-RPCE 2.2.1.1.8)
        self.failed = False
        self.overhead = 0
        self.caller: Caller | None = None
        self.trailer = SecTrailer(self.type, self.level, self.id).encode()

    @property
    def privacy(self) -> bool:
        """Whether the stubs of requests and replies are encrypted."""
        return self.level == AuthLevel.PRIVACY

    def step(self, token: bytes) -> bytes:
        """Processes one leg; may run on a thread. Any exception of the security provider is raised as
        AuthError.
        """
        try:
            return self.context.step(token)
        except AuthError:
            raise
        except Exception as error:
            _log.exception("a security context of type %d failed", self.type)
            raise AuthError(AuthFailure.TOKEN, "the security provider failed; the log says why") from error

    def finish(self) -> None:
        """Takes the caller from the context, because the last leg is complete."""
        self.caller = self.context.caller
        if self.protects:
            self.overhead = self.context.overhead()

    def fail(self) -> None:
        """Marks the security context as failed, because it could not be established. After auth3, the client
        learns this from its first request.
        """
        self.failed = True

    def unprotect(self, pdu: Pdu, *, sign_header: bool) -> bytes:
        """Verifies and decrypts the stub of a request, and returns it without padding. Raises AuthError if
        the PDU was changed in transit.
        """
        if not self.protects:
            return pdu.stub
        stub = self.context.unprotect(
            pdu.header,
            pdu.padded_stub,
            pdu.trailer,
            pdu.token,
            privacy=self.privacy,
            sign_header=sign_header,
        )
        return stub[: len(stub) - pdu.auth_pad] if pdu.auth_pad else stub

    def protect(self, pdus: bytearray, header_size: int, *, sign_header: bool) -> None:
        """Protects whole responses in place."""
        self.context.protect_pdus(pdus, header_size, privacy=self.privacy, sign_header=sign_header)


class SecurityTable:
    """The security contexts of a connection. At most one of them is `unfinished`: its legs are not complete.
    Meanwhile no requests are allowed.
    """

    def __init__(self, acceptors: AcceptorFactory, address: str, limit: int) -> None:
        self._acceptors = acceptors
        self._limit = limit
        self.contexts: dict[int, Security] = {}
        """All security contexts by auth_context_id."""
        self._address = address
        self.unfinished: Security | None = None
        self.anonymous = Caller("", ANONYMOUS_TOKEN, AuthType.NONE, AuthLevel.NONE, address)
        """The caller without authentication."""

    def begin(self, pdu: Pdu) -> Security:
        """Returns the context that the sec_trailer of a bind or alter_context opens. Call `step` next.

        Raises AuthError: TYPE for an unsupported authentication type, LEVEL for an invalid level.
        """
        context = self._acceptors.accept(pdu.auth_type, pdu.auth_level, self._address)
        security = Security(pdu, context)
        self.contexts[security.id] = self.unfinished = security
        return security

    def next_leg(self, pdu: Pdu) -> Security:
        """Returns the context that an alter_context with a sec_trailer continues or opens.

        Raises PduRefused, and AuthError as `begin` does.
        """
        security = self.unfinished
        if security is None:
            if pdu.auth_context_id in self.contexts:
                raise PduRefused("security context twice", ACCESS_DENIED, executed=False)
            if len(self.contexts) >= self._limit:
                raise PduRefused("too many security contexts", executed=False)
            return self.begin(pdu)
        if pdu.auth_context_id != security.id:
            raise PduRefused("security context under way", executed=False)
        if pdu.auth_level != security.level:
            raise PduRefused("authentication level changed", ACCESS_DENIED, executed=False)
        if pdu.auth_type != security.type:
            raise PduRefused("authentication type changed", SECURITY_ERROR, executed=False)
        return security

    def stepped(self, security: Security) -> None:
        """Process a leg that has succeeded; after the last leg, the security context is complete."""
        if security.context.complete:
            security.finish()
            self.unfinished = None

    def abandon(self, security: Security) -> None:
        """Mark the security context as failed, because a leg has failed."""
        security.fail()
        self.unfinished = None

    def of_request(self, pdu: Pdu) -> Security | None:
        """Returns the security context of a request, given its first PDU; None if the request is not
        authenticated.

        A request without a sec_trailer belongs to the only context of the connection if the level of that
        context is CONNECT (3.3.1.5.4). Raises PduRefused.
        """
        if not pdu.auth_length:
            if len(self.contexts) != 1:
                return None
            (only,) = self.contexts.values()
            if only.level != AuthLevel.CONNECT:
                return None
            security: Security | None = only
        else:
            security = self.contexts.get(pdu.auth_context_id)
        if (
            security is None
            or security.failed
            or (pdu.auth_length and (security.type, security.level) != (pdu.auth_type, pdu.auth_level))
        ):
            raise PduRefused("authentication", ACCESS_DENIED, context_id=pdu.context_id)
        return security


def bind_refused(error: AuthError) -> BindRefused:
    """Returns the exception with which a bind is rejected whose security context failed with `error`."""
    if error.failure is AuthFailure.LEVEL:
        nak = NakReason.NOT_SPECIFIED
    elif error.failure is AuthFailure.TYPE:
        nak = NakReason.AUTH_TYPE_NOT_RECOGNIZED
    else:
        nak = NakReason.INVALID_CHECKSUM
    return BindRefused(f"authentication {error.failure}", nak, str(error))


def alter_refused(error: AuthError) -> PduRefused:
    """Returns the exception with which an alter_context is rejected whose security context failed with
    `error`.
    """
    if error.failure in (AuthFailure.LEVEL, AuthFailure.LOGON):
        status = ACCESS_DENIED
    elif error.failure is AuthFailure.TYPE:
        status = UNKNOWN_AUTH_SERVICE
    else:
        status = SECURITY_ERROR
    return PduRefused(f"authentication {error.failure}", status, executed=False, detail=str(error))
