"""One connection of a client, without IO: PDUs in, PDUs out, and when it is to be looked at again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msmq_fast._native.rpcframing import Pdu, PduScanner
from msmq_fast.rpc.association import Association
from msmq_fast.rpc.auth.context import AuthError
from msmq_fast.rpc.binding import NegotiationError, negotiate
from msmq_fast.rpc.call import Call
from msmq_fast.rpc.deadlines import Deadlines
from msmq_fast.rpc.dispatch import dispatch
from msmq_fast.rpc.faults import ACCESS_DENIED, CANCELLED, NO_MEMORY, SERVER_TOO_BUSY, wire_status
from msmq_fast.rpc.interface import PresentationContext
from msmq_fast.rpc.outbox import Buffer, Outbox
from msmq_fast.rpc.pdu import (
    WHOLE,
    Bind,
    BindAck,
    ContextResult,
    Flag,
    NakReason,
    PduError,
    PduFault,
    PduType,
    SecTrailer,
    build_alter_response,
    build_bind_ack,
    build_bind_nak,
    build_fault,
    parse_bind,
)
from msmq_fast.rpc.refusals import BindRefused, Refused
from msmq_fast.rpc.requests import RequestIntake
from msmq_fast.rpc.securing import Security, SecurityTable, alter_refused, bind_refused
from msmq_fast.rpc.syntaxes import BindTimeFeatures

if TYPE_CHECKING:
    from msmq_fast.rpc.server import RpcServer

__all__ = ["ServerConnection"]

_log = logging.getLogger("msmq_fast.rpc")

_CHUNK = 1 << 18  # bytes of replies that are made at a time
_SMALLEST_FRAGMENT = 2048  # what Windows takes at least for the size of a fragment


class ServerConnection:
    """The server's side of one connection.

    Bytes go in by `buffer` and `received` (or `receive`) and come out of `data_to_send`; `on_wake` is called
    when there are some although nothing went in. `finished`: close the transport. Times are monotonic
    seconds.
    """

    def __init__(self, server: RpcServer, address: str, now: float) -> None:
        limits = server.limits
        self.server = server
        self.address = address
        self.association: Association | None = None
        self.features = BindTimeFeatures.NONE
        self.on_wake: Callable[[], None] | None = None
        self.closing = False
        self._lost = False
        self._busy = False  # inside received(): the adapter takes the output when it returns
        self._parked = False  # a leg of a security context is on a thread
        self._scanner = PduScanner(limits.fragment)
        self._outbox = Outbox()
        self._contexts: dict[int, PresentationContext] = {}
        self._calls: dict[int, Call] = {}
        self._security = SecurityTable(server.acceptors, address, limits.security_contexts)
        self._requests = RequestIntake(limits, server.incomplete, self._contexts, self._security, self._calls)
        self._deadlines = Deadlines(limits, now)
        self.anonymous = self._security.anonymous

    # ---------------------------------------------------------------------------------------- for the adapter

    def buffer(self, sizehint: int) -> memoryview:
        """Where to receive into."""
        return self._scanner.buffer(sizehint)

    def received(self, count: int, now: float) -> None:
        """`count` bytes were received into `buffer()`."""
        self._scanner.commit(count)
        self._deadlines.heard(now)
        self._advance()

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> None:
        """The same for bytes that stand elsewhere."""
        while len(data) and not self.closing:
            taken = self._scanner.feed(data)
            self._deadlines.heard(now)
            self._advance()
            data = data[taken:]

    @property
    def reading(self) -> bool:
        """False while the client must wait: it does not take its replies, or is being authenticated."""
        return not (self.closing or self._parked or self._outbox.bytes >= self.server.limits.output)

    @property
    def finished(self) -> bool:
        """Whether the transport is to be closed: all has been said."""
        return self.closing and not self._outbox

    def data_to_send(self) -> list[Buffer]:
        """The next PDUs, some hundred kilobytes; ask again until there are none, or until the transport wants
        no more."""
        before = self._outbox.pdus
        data = self._outbox.take(_CHUNK)
        self.server.counters.pdus_out += self._outbox.pdus - before
        return data

    def pause_sending(self, now: float) -> None:
        """The transport holds more than it likes."""
        self._deadlines.blocked(now)

    def resume_sending(self) -> None:
        """The transport takes more: `data_to_send` is next."""
        self._deadlines.unblocked()

    def go_on(self) -> bool:
        """Replies were taken: PDUs that waited for that are next. Whether there were any."""
        return bool(self._scanner.held) and self._advance()

    @property
    def next_deadline(self) -> float | None:
        """When `expire` is due."""
        if self.closing:
            return None if self._lost else self._deadlines.leave()
        return self._deadlines.next(
            bound=self.association is not None and self._security.unfinished is None,
            idle=not self._calls
            and not self._outbox
            and not (self.association is not None and len(self.association.handles)),
        )

    def expire(self, now: float) -> None:
        """If a deadline has passed, the connection is `finished`: the transport is to be aborted."""
        deadline = self.next_deadline
        if deadline is not None and deadline <= now:
            self._end(self._deadlines.due)
            self._outbox.drop()

    def connection_lost(self) -> None:
        """The transport is gone. Calls are abandoned; with the last connection of the association its context
        handles are run down (MS-RPCE 3.3.3.7.1)."""
        if self._lost:
            return
        self._lost = self.closing = True
        self._abandon_calls()
        self._outbox.drop()
        self._requests.release()
        if self.association is not None:
            self.server.associations.leave(self.association)
        self.server.forget(self)
        self.on_wake = None

    def close(self) -> None:
        """End the connection from our side, behind what is already to be said."""
        self.closing = True
        self._wake()

    # --------------------------------------------------------------------------------- for calls and dispatch

    @property
    def joined(self) -> Association:
        """The association; there is one as soon as there are presentation contexts."""
        assert self.association is not None  # noqa: S101
        return self.association

    @property
    def header_signing(self) -> bool:
        """Whether PFC_SUPPORT_HEADER_SIGN was offered, and so agreed (MS-RPCE 3.3.1.5.2.2)."""
        return self._requests.header_signing

    def respond(self, call: Call, stub: Buffer, written: Callable[[bool], None] | None) -> None:
        """Queue the response of a call. `call.reply` is what services use."""
        self._calls.pop(call.call_id, None)
        if self.closing:
            if written is not None:
                written(False)
            return
        self._outbox.respond(stub, call.call_id, call.context_id, call.security, written)
        self._wake()

    def fail(self, call: Call, status: int) -> None:
        """Queue the fault of a call. `call.fault` is what services use."""
        self._calls.pop(call.call_id, None)
        if not self.closing:
            self._fault(call.call_id, call.context_id, status, WHOLE)
            self._wake()

    # ------------------------------------------------------------------------------------------------- inside

    def _wake(self) -> None:
        if not self._busy and self.on_wake is not None:
            self.on_wake()

    def _advance(self) -> bool:
        """Take up the PDUs that are there, as long as the client may go on. Whether there were any."""
        if self._busy:
            return False
        self._busy = True
        before = self.server.counters.pdus_in
        try:
            while self.reading:
                pdu = self._scanner.take()
                if pdu is None:
                    break
                self.server.counters.pdus_in += 1
                self._take(pdu)
        finally:
            self._busy = False
        # Who is not listened to cannot go on.
        self._deadlines.partial(self.reading and (bool(self._scanner.held) or self._requests.receiving))
        return self.server.counters.pdus_in > before

    def _take(self, pdu: Pdu) -> None:
        try:
            if pdu.type == PduType.REQUEST:
                self._request(pdu)
            elif pdu.type == PduType.BIND:
                self._bind(pdu)
            elif pdu.type == PduType.ALTER:
                self._alter(pdu)
            elif pdu.type == PduType.AUTH3:
                self._auth3(pdu)
            elif pdu.type == PduType.CANCEL and not pdu.fault:
                self._cancel(pdu)
            elif pdu.type == PduType.ORPHANED and not pdu.fault:
                self._orphaned(pdu)
            else:
                reason = "malformed PDU" if pdu.fault else "PDU type"
                self.server.counters.refused[reason] += 1
                self._end(reason, f"type {pdu.type}")
        except Refused as refused:
            self._refuse(pdu, refused)
        except BindRefused as refused:
            self._refuse_bind(pdu, refused)
        except Exception:
            _log.exception("a PDU of type %d from %s failed", pdu.type, self.address)
            self.server.counters.failures += 1
            self._end("internal error")

    # --- requests

    def _request(self, pdu: Pdu) -> None:
        if self.association is None:
            raise Refused("request before bind", executed=False)
        request = self._requests.take(pdu, busy=bool(self._calls))
        if request is None:
            return
        if len(self._calls) >= self.server.limits.calls:
            self._fault(pdu.call_id, pdu.context_id, SERVER_TOO_BUSY, WHOLE | Flag.DID_NOT_EXECUTE)
            return
        self.server.counters.calls_in += 1
        call = dispatch(self, request)
        if call is not None:
            self._calls[call.call_id] = call

    def _cancel(self, pdu: Pdu) -> None:
        """co_cancel: of a request that has not arrived in full it is ignored, as by Windows."""
        call = self._calls.pop(pdu.call_id, None)
        if call is not None:
            self.server.counters.abandoned += 1
            call.abandon()
            self._fault(call.call_id, call.context_id, CANCELLED, WHOLE)

    def _orphaned(self, pdu: Pdu) -> None:
        """The client wants no reply. The connection stays, whether the client asked for that or not: one that
        did not closes it (MS-RPCE 3.3.1.5.10)."""
        call = self._calls.pop(pdu.call_id, None)
        if call is not None:
            self.server.counters.abandoned += 1
            call.abandon()

    # --- bind and alter_context

    def _parse(self, pdu: Pdu) -> Bind:
        if pdu.fault:
            raise PduError(PduFault(pdu.fault).name.lower())
        return parse_bind(pdu)

    def _bind(self, pdu: Pdu) -> None:
        try:
            bind = self._parse(pdu)
        except PduError as error:
            reason = f"bind: {error}"
            raise BindRefused(reason, NakReason.PROTOCOL_VERSION_NOT_SUPPORTED) from None
        if self.association is not None:
            raise BindRefused("bind twice")
        try:
            results, contexts, features = negotiate(
                bind.contexts, self._contexts, self.server.interface, features=True
            )
        except NegotiationError as error:
            raise BindRefused(f"bind: {error}") from None
        self._check_room(len(contexts))
        association = self.server.associations.join(bind.group, self.address)
        if association is None:
            raise BindRefused("association group")
        self.association = association
        self._contexts.update(contexts)
        self.features = features or BindTimeFeatures.NONE
        self._requests.multiplexed = bool(pdu.flags & Flag.CONC_MPX)
        self._agree_on_signing(pdu)
        size = min(bind.max_xmit, bind.max_recv, self.server.limits.fragment)
        self._outbox.max_fragment = max(_SMALLEST_FRAGMENT, size & ~7)

        def accept(auth: SecTrailer | None) -> None:
            self.server.counters.binds += 1
            flags = WHOLE | (pdu.flags & (Flag.SUPPORT_HEADER_SIGN | Flag.CONC_MPX))
            ack = self._ack(results, self.server.endpoint)
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

    def _alter(self, pdu: Pdu) -> None:
        try:
            bind = self._parse(pdu)
        except PduError as error:
            raise Refused(f"alter_context: {error}", executed=False) from None
        if self.association is None:
            raise Refused("alter_context before bind", executed=False)
        if pdu.auth_length and not pdu.auth_type:
            raise Refused("authentication type", ACCESS_DENIED, executed=False)
        try:
            results, contexts, _ = negotiate(
                bind.contexts, self._contexts, self.server.interface, features=False
            )
        except NegotiationError as error:
            raise Refused(f"alter_context: {error}", executed=False) from None
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

    def _auth3(self, pdu: Pdu) -> None:
        """The last leg, which nothing answers: that it failed shows in the first request (3.3.1.5.2.1)."""
        if pdu.fault == PduFault.AUTH_PAD:
            raise Refused("auth3: padding", NO_MEMORY, executed=False)
        security = self._security.unfinished
        if pdu.fault or security is None or not pdu.auth_length:
            raise Refused("auth3", executed=False)
        security = self._security.next_leg(pdu)

        def accept(auth: SecTrailer | None) -> None:
            if not security.context.complete or (auth is not None and auth.token):
                self._security.abandon(security)  # there is more to be said, and no PDU to say it in

        def refuse(error: AuthError) -> None:
            self.server.counters.refused[f"authentication {error.failure}"] += 1
            self.server.refuse("rpc authentication", str(error.failure), f"{self.address}: {error}")

        self._step(pdu, security, accept, refuse)

    def _check_room(self, more: int) -> None:
        limit = self.server.limits.presentation_contexts * self.server.interface_count
        if len(self._contexts) + more > limit:
            raise BindRefused("too many presentation contexts", NakReason.LOCAL_LIMIT_EXCEEDED)

    def _agree_on_signing(self, pdu: Pdu) -> None:
        if pdu.flags & Flag.SUPPORT_HEADER_SIGN:
            self._requests.header_signing = self._outbox.header_signing = True

    def _ack(self, results: tuple[ContextResult, ...], secondary: str) -> BindAck:
        size = self._outbox.max_fragment
        return BindAck(size, size, self.joined.id, secondary, results)

    # --- security contexts

    def _step(
        self,
        pdu: Pdu,
        security: Security,
        accept: Callable[[SecTrailer | None], None],
        refuse: Callable[[AuthError], None],
    ) -> None:
        """One leg of a security context, on a thread if it may block; nothing else is received meanwhile."""
        token = pdu.token
        self._deadlines.handshake()

        def done(reply: bytes | None, error: AuthError | None) -> None:
            if error is not None:
                self._security.abandon(security)
                refuse(error)
                return
            self._security.stepped(security)
            accept(SecTrailer(security.type, security.level, security.id, reply or b""))

        offload = self.server.offload
        if offload is None or not security.context.blocking:
            try:
                reply = security.step(token)
            except AuthError as error:
                done(None, error)
            else:
                done(reply, None)
            return

        def back(reply: bytes | None, error: AuthError | None) -> None:
            self._parked = False
            if self.closing:
                return
            try:
                done(reply, error)
            except Refused as refused:
                self._refuse(pdu, refused)
            except BindRefused as refused:
                self._refuse_bind(pdu, refused)
            self._advance()
            self._wake()

        self._parked = True
        offload(lambda: security.step(token), back)

    # --- refusals

    def _fault(self, call_id: int, context_id: int, status: int, flags: int) -> None:
        status = wire_status(status)
        self.server.counters.faults[status] += 1
        self._outbox.put(build_fault(call_id, context_id, status, flags))

    def _refuse(self, pdu: Pdu, refused: Refused) -> None:
        self.server.counters.refused[refused.reason] += 1
        flags = WHOLE if refused.executed else WHOLE | Flag.DID_NOT_EXECUTE
        call_id = pdu.call_id if refused.call_id is None else refused.call_id
        self._fault(call_id, refused.context_id, refused.status, flags)
        if not refused.kept:
            self._end(refused.reason, refused.detail)

    def _refuse_bind(self, pdu: Pdu, refused: BindRefused) -> None:
        self._outbox.put(build_bind_nak(pdu.call_id, refused.nak))
        self.server.counters.refused[refused.reason] += 1
        self._end(refused.reason, refused.detail)

    def _end(self, reason: str, detail: str = "") -> None:
        """Close behind what is already to be said; the client broke the protocol or a limit."""
        if self.closing:
            return
        self.closing = True
        self.server.refuse("rpc connection", reason, f"{self.address}: {detail}" if detail else self.address)
        self._requests.release()
        self._abandon_calls()
        self._wake()

    def _abandon_calls(self) -> None:
        calls, self._calls = self._calls, {}
        self.server.counters.abandoned += len(calls)
        for call in calls.values():
            call.abandon()
