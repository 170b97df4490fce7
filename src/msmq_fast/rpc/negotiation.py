"""Negotiates the state that requests need: an association, presentation contexts, security contexts, and
common features (bind, alter_context and auth3; MS-RPCE 3.3.1.5.2.1, 3.3.1.5.6, 3.3.1.5.7).
"""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast._native.rpcframing import Pdu
from msmq_fast.rpc.association import Association
from msmq_fast.rpc.auth.context import AuthError
from msmq_fast.rpc.binding import NegotiationError, negotiate
from msmq_fast.rpc.deadlines import Deadlines
from msmq_fast.rpc.endpoint import Endpoint
from msmq_fast.rpc.faults import ACCESS_DENIED, NO_MEMORY
from msmq_fast.rpc.interface import PresentationContext
from msmq_fast.rpc.outbox import Outbox
from msmq_fast.rpc.pdu import (
    WHOLE,
    Bind,
    BindAck,
    ContextResult,
    Flag,
    NakReason,
    PduError,
    PduFault,
    SecTrailer,
    build_alter_response,
    build_bind_ack,
    parse_bind,
)
from msmq_fast.rpc.refusals import BindRefused, PduRefused
from msmq_fast.rpc.requests import RequestIntake
from msmq_fast.rpc.securing import Security, SecurityTable, alter_refused, bind_refused
from msmq_fast.rpc.syntaxes import BindTimeFeatures

__all__ = ["Negotiation"]

_SMALLEST_FRAGMENT = 2048  # Windows uses at least this fragment size


def _ignore(pdu: Pdu, refusal: PduRefused | BindRefused | None) -> None:
    """Ignores the result of a leg of a security context that ends after the connection has ended."""


class Negotiation:
    """The negotiation of one connection.

    It stores its results in `requests`, and puts its answers into `outbox`. A leg of a security context (the
    processing of one token of the client) may run on a thread; meanwhile `parked` is True, and the connection
    must not process PDUs. `resume(pdu, refusal)` is called when the thread has finished the leg.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        address: str,
        contexts: dict[int, PresentationContext],
        security: SecurityTable,
        requests: RequestIntake,
        outbox: Outbox,
        deadlines: Deadlines,
        resume: Callable[[Pdu, PduRefused | BindRefused | None], None],
    ) -> None:
        self.association: Association | None = None
        self.features = BindTimeFeatures.NONE
        self.parked = False
        self._endpoint = endpoint
        self._address = address
        self._contexts = contexts
        self._security = security
        self._requests = requests
        self._outbox = outbox
        self._deadlines = deadlines
        self._resume = resume

    def release(self) -> None:
        """Releases references after the connection has ended."""
        self._resume = _ignore

    def bind(self, pdu: Pdu) -> None:
        """Processes a bind. Raises BindRefused."""
        try:
            bind = self._parse(pdu)
        except PduError as error:
            reason = f"bind: {error}"
            raise BindRefused(reason, NakReason.PROTOCOL_VERSION_NOT_SUPPORTED) from None
        if self.association is not None:
            raise BindRefused("bind twice")
        try:
            results, contexts, features = negotiate(
                bind.contexts, self._contexts, self._endpoint.interface, features=True
            )
        except NegotiationError as error:
            raise BindRefused(f"bind: {error}") from None
        self._check_room(len(contexts))
        association = self._endpoint.associations.join(bind.group, self._address)
        if association is None:
            raise BindRefused("association group")
        self.association = association
        self._contexts.update(contexts)
        self.features = features or BindTimeFeatures.NONE
        self._requests.multiplexed = bool(pdu.flags & Flag.CONC_MPX)
        self._agree_on_signing(pdu)
        size = min(bind.max_xmit, bind.max_recv, self._endpoint.limits.fragment)
        self._outbox.max_fragment = max(_SMALLEST_FRAGMENT, size & ~7)

        def accept(auth: SecTrailer | None) -> None:
            self._endpoint.counters.binds += 1
            flags = WHOLE | (pdu.flags & (Flag.SUPPORT_HEADER_SIGN | Flag.CONC_MPX))
            ack = self._ack(results, self._endpoint.endpoint)
            self._outbox.put(build_bind_ack(pdu.call_id, ack, flags, auth))

        if not pdu.auth_length:
            accept(None)
            return
        try:
            security = self._security.begin(pdu)
        except AuthError as error:
            raise bind_refused(error) from None

        def refuse(error: AuthError) -> None:
            raise bind_refused(error)

        self._step(pdu, security, accept, refuse)

    def alter(self, pdu: Pdu) -> None:
        """Processes an alter_context. Raises PduRefused, or BindRefused (MS-RPCE 3.3.3.5.5)."""
        try:
            bind = self._parse(pdu)
        except PduError as error:
            raise PduRefused(f"alter_context: {error}", executed=False) from None
        if self.association is None:
            raise PduRefused("alter_context before bind", executed=False)
        if pdu.auth_length and not pdu.auth_type:
            raise PduRefused("authentication type", ACCESS_DENIED, executed=False)
        try:
            results, contexts, _ = negotiate(
                bind.contexts, self._contexts, self._endpoint.interface, features=False
            )
        except NegotiationError as error:
            raise PduRefused(f"alter_context: {error}", executed=False) from None
        self._check_room(sum(identifier not in self._contexts for identifier in contexts))
        self._contexts.update(contexts)
        self._agree_on_signing(pdu)

        def accept(auth: SecTrailer | None) -> None:
            flags = WHOLE | (pdu.flags & Flag.SUPPORT_HEADER_SIGN)
            self._outbox.put(build_alter_response(pdu.call_id, self._ack(results, ""), flags, auth))

        if not pdu.auth_length:
            accept(None)
            return
        try:
            security = self._security.next_leg(pdu)
        except AuthError as error:
            raise alter_refused(error) from None

        def refuse(error: AuthError) -> None:
            raise alter_refused(error)

        self._step(pdu, security, accept, refuse)

    def auth3(self, pdu: Pdu) -> None:
        """Processes an auth3, the last leg, which gets no answer.

        The client learns of a failure from its first request. Raises PduRefused.
        """
        if pdu.fault == PduFault.AUTH_PAD:
            raise PduRefused("auth3: padding", NO_MEMORY, executed=False)
        security = self._security.unfinished
        if pdu.fault or security is None or not pdu.auth_length:
            raise PduRefused("auth3", executed=False)
        security = self._security.next_leg(pdu)

        def accept(auth: SecTrailer | None) -> None:
            if not security.context.complete or (auth is not None and auth.token):
                self._security.abandon(security)  # another leg is needed, but no PDU can carry it

        def refuse(error: AuthError) -> None:
            self._endpoint.counters.refused[f"authentication {error.failure}"] += 1
            told = f"{self._address}: {error}"
            self._endpoint.refuse("rpc authentication", str(error.failure), told, peer=self._address)

        self._step(pdu, security, accept, refuse)

    def _parse(self, pdu: Pdu) -> Bind:
        if pdu.fault:
            raise PduError(PduFault(pdu.fault).name.lower())
        return parse_bind(pdu)

    def _check_room(self, more: int) -> None:
        limit = self._endpoint.limits.presentation_contexts * self._endpoint.interface_count
        if len(self._contexts) + more > limit:
            raise BindRefused("too many presentation contexts", NakReason.LOCAL_LIMIT_EXCEEDED)

    def _agree_on_signing(self, pdu: Pdu) -> None:
        if pdu.flags & Flag.SUPPORT_HEADER_SIGN:
            self._requests.header_signing = self._outbox.header_signing = True

    def _ack(self, results: tuple[ContextResult, ...], secondary: str) -> BindAck:
        size = self._outbox.max_fragment
        return BindAck(size, size, 0 if self.association is None else self.association.id, secondary, results)

    def _step(
        self,
        pdu: Pdu,
        security: Security,
        accept: Callable[[SecTrailer | None], None],
        refuse: Callable[[AuthError], None],
    ) -> None:
        """Runs one leg of a security context, on a thread if it may block. While it runs, no other PDU is
        processed.
        """
        token = pdu.token
        self._deadlines.handshake()

        def done(reply: bytes | None, error: AuthError | None) -> None:
            if error is None:
                try:
                    self._security.stepped(security)
                except AuthError as late:
                    error = late
            if error is not None:
                self._security.abandon(security)
                refuse(error)
                return
            accept(SecTrailer(security.type, security.level, security.id, reply or b""))

        offload = self._endpoint.offload
        if offload is None or not security.context.blocking:
            try:
                reply = security.step(token)
            except AuthError as error:
                done(None, error)
            else:
                done(reply, None)
            return

        def back(reply: bytes | None, error: AuthError | None) -> None:
            self.parked = False
            refusal: PduRefused | BindRefused | None = None
            try:
                done(reply, error)
            except (PduRefused, BindRefused) as refused:
                refusal = refused
            self._resume(pdu, refusal)

        self.parked = True
        offload(lambda: security.step(token), back)
