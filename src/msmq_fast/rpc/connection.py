"""The server's side of one connection, without IO: accepts PDUs, returns PDUs, and has a next deadline."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msmq_fast._native.rpcframing import Pdu, PduScanner
from msmq_fast.logfields import logged
from msmq_fast.rpc.association import Association
from msmq_fast.rpc.call import Call
from msmq_fast.rpc.deadlines import Deadlines
from msmq_fast.rpc.dispatch import UnderWay, dispatch
from msmq_fast.rpc.endpoint import Endpoint
from msmq_fast.rpc.faults import CANCELLED, SERVER_TOO_BUSY, wire_status
from msmq_fast.rpc.interface import PresentationContext
from msmq_fast.rpc.negotiation import Negotiation
from msmq_fast.rpc.outbox import Buffer, Outbox
from msmq_fast.rpc.pdu import (
    WHOLE,
    Flag,
    NakReason,
    PduFault,
    PduType,
    build_bind_nak,
    build_fault,
)
from msmq_fast.rpc.refusals import BindRefused, PduRefused
from msmq_fast.rpc.reply_budget import MOST, ReplyBudget
from msmq_fast.rpc.requests import Request, RequestIntake
from msmq_fast.rpc.securing import SecurityTable
from msmq_fast.rpc.syntaxes import BindTimeFeatures

__all__ = ["ServerConnection"]

_log = logging.getLogger("msmq_fast.rpc")

_REQUEST = int(PduType.REQUEST)
_CHUNK = 1 << 18  # bytes of replies that are encoded at a time
_PAGE = 4096  # bytes of its receive buffer that each connection may keep
_BUFFER = 1 << 14  # bytes of its receive buffer that a bound connection may keep
_FEW = 8  # number of waiting calls for which a connection needs no reply budget


class ServerConnection:
    """The server's side of one connection.

    The adapter passes received bytes to `buffer` and `received` (or `receive`), and writes the output of
    `data_to_send`. `wake` is called when there is output although nothing was received. If `finished` is
    True, the adapter closes the transport. Times are monotonic seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        address: str,
        now: float,
        wake: Callable[[], None] | None,
        ended: Callable[[ServerConnection], None],
    ) -> None:
        """`ended` is called when the transport is lost."""
        limits = endpoint.limits
        self.endpoint = endpoint
        self.address = address
        self._on_wake = wake
        self._ended = ended
        self.closing = False
        self.drained = False
        """Whether the last result of `data_to_send` included all output, so that no PDUs were held back."""
        self._lost = False
        self._busy = False  # inside received(): the adapter writes the output when it returns
        self._scanner = PduScanner(limits.fragment)
        self._own_buffer = _PAGE
        self._kept = 0  # the part of the buffer beyond that, in bytes
        self._outbox = Outbox()
        self._reply_budget = ReplyBudget(self._outbox, limits.output, self._wake)
        self._contexts: dict[int, PresentationContext] = {}
        self._calls: dict[int, UnderWay] = {}
        self._security = SecurityTable(endpoint.acceptors, address, limits.security_contexts)
        self._requests = RequestIntake(
            limits, endpoint.incomplete, self._contexts, self._security, self._calls
        )
        self._deadlines = Deadlines(limits, now)
        self._negotiation = Negotiation(
            endpoint,
            address,
            self._contexts,
            self._security,
            self._requests,
            self._outbox,
            self._deadlines,
            self._resume,
        )
        self.anonymous = self._security.anonymous
        self.counters = endpoint.counters

    @property
    def user(self) -> str:
        """The name of the client, from the first security context that is established; empty without one."""
        contexts = self._security.contexts.values()
        return next((each.caller.name for each in contexts if each.caller is not None), "")

    # ---------------------------------------------------------------------------------------- for the adapter

    def buffer(self, sizehint: int) -> memoryview:
        """Returns the buffer for the next received bytes."""
        return self._scanner.buffer(sizehint)

    def received(self, count: int, now: float) -> None:
        """Process `count` bytes that were received into `buffer()`."""
        self._scanner.commit(count)
        self._deadlines.heard_at, self._deadlines.silent = now, False
        self._advance()

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> None:
        """Process received bytes that are in a buffer of the caller."""
        while len(data) and not self.closing:
            taken = self._scanner.feed(data)
            self._deadlines.heard_at, self._deadlines.silent = now, False
            self._advance()
            data = data[taken:]

    @property
    def reading(self) -> bool:
        """False while the client must wait.

        The client must wait while it does not read its replies, while a thread authenticates it, and while
        many messages are being read for its calls.
        """
        return not (
            self.closing
            or self._negotiation.parked
            or self._reply_budget.under_way >= MOST
            or self._outbox.bytes >= self.endpoint.limits.output
        )

    @property
    def finished(self) -> bool:
        """Whether the transport must be closed now: the connection is closing, and all output is written."""
        return self.closing and not self._outbox

    def data_to_send(self) -> list[Buffer]:
        """Returns the next PDUs to send, at most some hundred kilobytes. Call it again until it returns an
        empty list or the transport is full.
        """
        if not self._outbox.queue:
            return []
        before = self._outbox.pdus
        try:
            data = self._outbox.take(_CHUNK)
        except Exception:
            # For example, the security context has expired. A reply that cannot be protected is not sent.
            _log.exception("sending a reply to %s failed", self.address, extra=logged(peer=self.address))
            self.counters.failures += 1
            self._end("internal error")
            self._outbox.drop()
            return []
        self.counters.pdus_out += self._outbox.pdus - before
        self._reply_budget.resume()
        self.drained = not (self._outbox.queue or self._scanner.held)
        return data

    def pause_sending(self, now: float) -> None:
        """Stop producing output: the buffer of the transport is full."""
        self._deadlines.blocked(now)

    def resume_sending(self) -> None:
        """Resume output: the transport accepts data again. Call `data_to_send` next."""
        self._deadlines.unblocked()

    def go_on(self) -> bool:
        """Processes received PDUs that had to wait until the transport accepted replies. Returns whether
        there were any such PDUs.
        """
        return self._scanner.held > 0 and self._advance()

    @property
    def silent(self) -> bool:
        """Whether no bytes have arrived on this connection yet."""
        return self._deadlines.silent

    def spare(self, now: float, seconds: float) -> bool:
        """Returns whether the connection may be closed to make room for another one.

        That is the case if it has no bind, or if it has no call in progress and has been silent for
        `seconds`.
        """
        return not self._bound or (self._idle and self._deadlines.silence(now) >= seconds)

    @property
    def _bound(self) -> bool:
        return self.association is not None and self._security.unfinished is None

    @property
    def _idle(self) -> bool:
        open_handles = self.association is not None and len(self.association.handles)
        return not (self._calls or self._outbox or open_handles)

    def next_deadline(self) -> float | None:
        """Return the time at which to call `expire`."""
        if self.closing:
            return None if self._lost else self._deadlines.leave()
        return self._deadlines.next(bound=self._bound, idle=self._idle)

    def looked_at_by(self, moment: float) -> bool:
        """Returns whether a timer that fires at `moment` is early enough for every deadline, so that no other
        timer is needed.

        This is cheaper than computing the next deadline.
        """
        return (
            moment <= self._deadlines.heard_at + self._deadlines.least
            and self._negotiation.association is not None
            and self._security.unfinished is None
            and not self.closing
        )

    def expire(self, now: float) -> None:
        """Makes `finished` True if a deadline has passed. The caller must then abort the transport."""
        deadline = self.next_deadline()
        if deadline is not None and deadline <= now:
            self._end(self._deadlines.due)
            self._outbox.drop()

    def connection_lost(self) -> None:
        """Abandons the calls of the connection, because its transport is lost.

        The last connection of an association also runs down the association's context handles (MS-RPCE
        3.3.3.7.1).
        """
        if self._lost:
            return
        self._lost = self.closing = True
        self._keep(0)
        self._abandon_calls()
        self._outbox.drop()
        self._requests.release()
        if self.association is not None:
            self.endpoint.associations.leave(self.association)
        self._ended(self)
        # The garbage collector runs rarely. Breaking the cycles here frees large buffers at once.
        self._on_wake = None
        self._negotiation.release()
        self._reply_budget.release()
        self._scanner = PduScanner(self._scanner.max_fragment)
        self._contexts.clear()

    def close(self) -> None:
        """Closes the connection from the server's side once pending output is written."""
        self.closing = True
        self._wake()

    # --------------------------------------------------------------------------------- for calls and dispatch

    @property
    def association(self) -> Association | None:
        """The association that a bind has created or joined; None before that."""
        return self._negotiation.association

    @property
    def features(self) -> BindTimeFeatures:
        """The bind-time features that a bind has negotiated."""
        return self._negotiation.features

    @property
    def header_signing(self) -> bool:
        """Whether headers are signed: the client offered PFC_SUPPORT_HEADER_SIGN, and the server always
        agrees (MS-RPCE 3.3.1.5.2.2).
        """
        return self._requests.header_signing

    @property
    def reply_budget(self) -> ReplyBudget | None:
        """The budget that limits the messages received for calls. None (no limit) while few calls wait for
        messages.
        """
        return self._reply_budget if len(self._calls) >= _FEW else None

    def respond(self, call: Call, stub: Buffer, written: Callable[[bool], None] | None) -> None:
        """Queues the response to a call. Services use `call.reply` instead."""
        self._calls.pop(call.call_id, None)
        if self.closing:
            if written is not None:
                written(False)
            return
        self._outbox.respond(stub, call.call_id, call.context_id, call.security, written)
        if not self._busy:
            self._wake()

    def fail(self, call: Call, status: int) -> None:
        """Queues the fault that answers a call. Services use `call.fault` instead."""
        self._calls.pop(call.call_id, None)
        if not self.closing:
            self._fault(call.call_id, call.context_id, status, WHOLE)
            self._wake()

    # ------------------------------------------------------------------------------------------------- inside

    def _wake(self) -> None:
        if not self._busy and self._on_wake is not None:
            self._on_wake()

    def _advance(self) -> bool:
        """Processes received PDUs until the client must wait. Returns whether any PDU was processed."""
        if self._busy:
            return False
        self._busy = True
        before = self.counters.pdus_in
        try:
            while self._scanner.held and self.reading:
                pdu = self._scanner.take()
                if pdu is None:
                    break
                self.counters.pdus_in += 1
                self._take(pdu)
        finally:
            self._busy = False
        if self._kept or self._scanner.capacity > self._own_buffer:
            self._measure()
        # While reading is paused, the peer cannot finish its PDU.
        if (self._scanner.held or self._requests.receiving) and self.reading:
            self._deadlines.partial()
        else:
            self._deadlines.partial_at = None
        return self.counters.pdus_in > before

    def _measure(self) -> None:
        """Updates the count of bytes of incomplete PDUs, for which all connections together have one
        limit.
        """
        if not self._scanner.held:
            self._scanner.buffer(0)  # releases a large buffer
        if self.association is not None and self._security.unfinished is None:
            self._own_buffer = max(_BUFFER, self._scanner.max_fragment)
        self._keep(max(0, self._scanner.capacity - self._own_buffer))
        if self._kept and self.endpoint.handshakes.held > self.endpoint.handshakes.limit:
            self._end("too many unfinished binds")

    def _keep(self, size: int) -> None:
        self.endpoint.handshakes.held += size - self._kept
        self._kept = size

    def _resume(self, pdu: Pdu, refusal: PduRefused | BindRefused | None) -> None:
        """Continues after a thread has processed a leg of a security context."""
        if isinstance(refusal, PduRefused):
            self._refuse(pdu, refusal)
        elif refusal is not None:
            self._refuse_bind(pdu, refusal)
        self._advance()
        self._wake()

    def _take(self, pdu: Pdu) -> None:
        try:
            association = self._negotiation.association
            if pdu.type == _REQUEST and association is not None:
                request = self._requests.take(pdu, busy=bool(self._calls))
                if request is not None:
                    self._call(pdu, association, request)
            elif pdu.fault == PduFault.VERSION and association is None:
                # Windows also answers data of other protocols with this, and port scanners recognise Windows
                # by it.
                raise BindRefused("protocol version", NakReason.PROTOCOL_VERSION_NOT_SUPPORTED)
            elif pdu.type == PduType.REQUEST:
                raise PduRefused("request before bind", executed=False)
            elif pdu.type == PduType.BIND:
                self._negotiation.bind(pdu)
            elif pdu.type == PduType.ALTER:
                self._negotiation.alter(pdu)
            elif pdu.type == PduType.AUTH3:
                self._negotiation.auth3(pdu)
            elif pdu.type == PduType.CANCEL and not pdu.fault:
                self._cancel(pdu)
            elif pdu.type == PduType.ORPHANED and not pdu.fault:
                self._orphaned(pdu)
            else:
                reason = "malformed PDU" if pdu.fault else "PDU type"
                self.counters.refused[reason] += 1
                self._end(reason, f"type {pdu.type}")
        except PduRefused as refused:
            self._refuse(pdu, refused)
        except BindRefused as refused:
            self._refuse_bind(pdu, refused)
        except Exception:
            _log.exception(
                "a PDU of type %d from %s failed", pdu.type, self.address, extra=logged(peer=self.address)
            )
            self.counters.failures += 1
            self._end("internal error")

    # --- requests

    def _call(self, pdu: Pdu, association: Association, request: Request) -> None:
        """Dispatches a complete request. `pdu` is its last PDU."""
        self._deadlines.partial_at = None  # an incomplete PDU after this one has begun only now
        if len(self._calls) >= self.endpoint.limits.calls:
            self._fault(pdu.call_id, pdu.context_id, SERVER_TOO_BUSY, WHOLE | Flag.DID_NOT_EXECUTE)
            return
        self.counters.calls_in += 1
        under_way = dispatch(self, association, request)
        if under_way is not None:
            self._calls[pdu.call_id] = under_way

    def _cancel(self, pdu: Pdu) -> None:
        """Processes a co_cancel. Like Windows, ignores it if the request is not complete yet."""
        under_way = self._calls.pop(pdu.call_id, None)
        if under_way is not None:
            self.counters.abandoned += 1
            under_way.abandon()
            call = under_way.call
            self._fault(call.call_id, call.context_id, CANCELLED, WHOLE)

    def _orphaned(self, pdu: Pdu) -> None:
        """Processes an orphaned PDU: the client no longer wants the reply to a call.

        The connection stays open; the client closes it if it no longer needs it (MS-RPCE 3.3.3.5.10).
        """
        under_way = self._calls.pop(pdu.call_id, None)
        if under_way is not None:
            self.counters.abandoned += 1
            under_way.abandon()

    # --- refusals

    def _fault(self, call_id: int, context_id: int, status: int, flags: int) -> None:
        status = wire_status(status)
        self.counters.faults[status] += 1
        self._outbox.put(build_fault(call_id, context_id, status, flags))

    def _refuse(self, pdu: Pdu, refused: PduRefused) -> None:
        self.counters.refused[refused.reason] += 1
        flags = WHOLE if refused.executed else WHOLE | Flag.DID_NOT_EXECUTE
        call_id = pdu.call_id if refused.call_id is None else refused.call_id
        self._fault(call_id, refused.context_id, refused.status, flags)
        if not refused.kept:
            self._end(refused.reason, refused.detail)

    def _refuse_bind(self, pdu: Pdu, refused: BindRefused) -> None:
        self._outbox.put(build_bind_nak(pdu.call_id, refused.nak))
        self.counters.refused[refused.reason] += 1
        self._end(refused.reason, refused.detail)

    def _end(self, reason: str, detail: str = "") -> None:
        """Closes the connection once pending output is written, because the client violated the protocol or a
        limit.
        """
        if self.closing:
            return
        self.closing = True
        self._keep(0)
        told = f"{self.address}: {detail}" if detail else self.address
        self.endpoint.refuse("rpc connection", reason, told, peer=self.address)
        self._requests.release()
        self._abandon_calls()
        self._wake()

    def _abandon_calls(self) -> None:
        calls, self._calls = self._calls, {}
        self.counters.abandoned += len(calls)
        for under_way in calls.values():
            under_way.abandon()
