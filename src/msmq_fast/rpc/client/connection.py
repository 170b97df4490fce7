"""The client's side of one connection, without IO (C706 chapter 9, MS-RPCE 3.3.2)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Protocol
from uuid import UUID

from msmq_fast._native.rpcframing import Pdu, PduScanner, fragments
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType, SecurityContext
from msmq_fast.rpc.client.errors import CallLost, LogonRefused
from msmq_fast.rpc.endpoint import Offload
from msmq_fast.rpc.faults import ACCESS_DENIED, RpcFault
from msmq_fast.rpc.ndr.operations import Op
from msmq_fast.rpc.ndr.record import Record
from msmq_fast.rpc.pdu import (
    Bind,
    ContextElement,
    Flag,
    NakReason,
    PduError,
    PduType,
    Result,
    SecTrailer,
    build_alter,
    build_auth3,
    build_bind,
    build_cancel,
    build_orphaned,
    parse_bind_ack,
    parse_bind_nak,
    parse_fault,
)
from msmq_fast.rpc.syntaxes import FEATURES_PREFIX, NDR, NDR64, BindTimeFeatures, SyntaxId
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["ClientCall", "ClientConnection", "Credentials"]

FRAGMENT: Final = 5840
"""The size in bytes of the largest fragment in either direction, as on Windows."""
MOST_STUB: Final = 0x0048_0000
"""The largest answer in bytes: a packet of 4 MiB and 128 KiB, and the fields around it."""

_LARGEST = 0xFFFF
_BIND_CALL = 1
_LARGEST_CALL_ID = 0x7FFF_FFFF  # MS-RPCE 3.3.3.5.2, note 123
_HEADER_SIZE = 24
_LEAST_FRAGMENT = 128
_AUTH_CONTEXT = 0
_FEATURES: Final = BindTimeFeatures.SECURITY_CONTEXT_MULTIPLEXING | BindTimeFeatures.KEEP_CONNECTION_ON_ORPHAN
_SYNTAXES: Final = (
    NDR,
    NDR64,
    SyntaxId(UUID(bytes_le=FEATURES_PREFIX + int(_FEATURES).to_bytes(8, "little")), 1),
)
"""The transfer syntaxes of the presentation contexts 0, 1 and 2.

A server accepts one of the first two, and answers the third with its bind-time features (MS-RPCE 3.3.1.5.3).
"""


class Credentials(Protocol):
    """The credentials with which a client logs on."""

    @property
    def auth_type(self) -> AuthType:
        """The security provider."""

    @property
    def level(self) -> AuthLevel:
        """The authentication level."""

    def initiate(self, host: str) -> SecurityContext:
        """Returns the client's side of a new security context with the server on `host`. Raises AuthError."""


class ClientCall:
    """One call. Its completion returns the results, or fails with RpcFault, CallLost or LogonRefused."""

    __slots__ = ("args", "call_id", "completion", "op", "pieces", "read", "sent", "size")

    def __init__(self, op: Op, args: Record, read: int = 0) -> None:
        self.op = op
        self.args = args
        self.read = read  # the request identifier of a read that may wait at the server; 0: another call
        self.completion: Completion[Any] = Completion()
        self.call_id = 0
        self.sent = False  # the transport has accepted it
        self.pieces: list[bytes] = []  # of the answer
        self.size = 0


class _ConnectionState(Enum):
    CONNECTING = 0
    BINDING = 1
    OPEN = 2
    CLOSED = 3


class ClientConnection:
    """One connection for one interface.

    The adapter calls `connected`. It writes received bytes into `buffer` and calls `received`. After `wake`
    it writes the result of `take_output`. When `closing` is set, it closes the transport. `opened` is called
    when calls can be sent. `ended` is called once, with an exception, when the connection has ended.
    """

    def __init__(
        self,
        host: str,
        interface: SyntaxId,
        credentials: Credentials | None,
        offload: Offload,
        *,
        opened: Callable[[], None],
        ended: Callable[[Exception], None],
        association: int = 0,
        fragment: int = FRAGMENT,
    ) -> None:
        """`host` is the host name in the server's SPN. `offload` runs work that may wait for files or the
        network.

        `association` is the assoc_group_id of the association to join; 0 creates a new one.
        """
        self.association = association
        self.multiplexed = False
        self.ndr64 = False
        self.closing = False
        self.wake: Signal[[]] = Signal()
        self._on_open = opened
        self._on_end = ended
        self.calls: dict[int, ClientCall] = {}
        self.pieces = 0
        """The number of fragments received of answers that were incomplete at the time."""
        self._host = host
        self._interface = interface
        self._credentials = credentials
        self._offload = offload
        self._security: SecurityContext | None = None
        self._proved = False  # the server has authenticated itself by an answer
        self._sign_header = False
        self._fragment = fragment
        self._max_transmit = fragment
        self._context_id = 0
        self._state = _ConnectionState.CONNECTING
        self._last_call = _BIND_CALL
        self._scanner = PduScanner(_LARGEST)
        self._output: list[tuple[bytes | bytearray, ClientCall | None]] = []

    # ---- for the adapter

    def connected(self) -> None:
        """Send a bind after the transport is connected."""
        if self._state is not _ConnectionState.CONNECTING:
            return
        self._state = _ConnectionState.BINDING
        if self._credentials is None:
            self._bind(b"")
            return
        try:
            self._security = self._credentials.initiate(self._host)
        except AuthError as error:
            self._fail(LogonRefused(str(error)))
            return
        self._step(b"", self._bind)

    def buffer(self, hint: int) -> memoryview:
        """Returns the buffer for the next received bytes."""
        return self._scanner.buffer(hint)

    def received(self, count: int) -> None:
        """Process `count` bytes that were received into `buffer`."""
        self._scanner.commit(count)
        while not self.closing:
            pdu = self._scanner.take()
            if pdu is None:
                return
            try:
                self._take(pdu)
            except PduError as fault:
                self._fail(CallLost(f"protocol error: {fault}", sent=True))
            except AuthError as error:
                self._fail(LogonRefused(str(error)))

    def take_output(self) -> list[bytes | bytearray]:
        """Returns the buffers to write, in order."""
        output, self._output = self._output, []
        for _, call in output:
            if call is not None:
                call.sent = True
        return [data for data, _ in output]

    def lost(self, reason: str) -> None:
        """End the connection after the transport was lost or could not be opened."""
        self._fail(CallLost(reason, sent=True))
        self.wake = Signal()  # the adapter has disconnected

    # ---- for the binding

    @property
    def open(self) -> bool:
        """Whether calls can be sent on the connection."""
        return self._state is _ConnectionState.OPEN

    @property
    def spent(self) -> bool:
        """Whether all call identifiers are used up, so that no more calls can be sent.

        Servers accept identifiers up to 0x7FFFFFFF, in ascending order.
        """
        return self._last_call >= _LARGEST_CALL_ID

    def send(self, call: ClientCall) -> None:
        """Sends a request. Raises what the encoder of its arguments raises."""
        stub = call.op.encode_request(call.args, ndr64=self.ndr64)
        self._last_call += 1
        call.call_id = self._last_call
        self.calls[call.call_id] = call
        security, trailer, overhead = self._security, None, 0
        credentials = self._credentials
        if security is not None and credentials is not None and credentials.level >= AuthLevel.CALL:
            trailer = SecTrailer(credentials.auth_type, credentials.level, _AUTH_CONTEXT).encode()
            overhead = security.overhead()
        pdus, _, _ = fragments(
            PduType.REQUEST,
            stub,
            0,
            len(stub) + 1_048_576,
            0,
            call.call_id,
            self._context_id,
            call.op.opnum,
            self._max_transmit,
            trailer,
            overhead,
        )
        if security is not None and trailer is not None and isinstance(pdus, bytearray):
            try:
                security.protect_pdus(
                    pdus, _HEADER_SIZE, privacy=self._privacy, sign_header=self._sign_header
                )
            except AuthError as error:
                self._fail(LogonRefused(str(error)))
                return
        self._put(pdus, call)

    def abandon(self, call: ClientCall, reason: str) -> None:
        """Cancels a call whose caller no longer waits. The cancel time-out is 0: the call ends at once,
        without an answer of the server.
        """
        if self.calls.pop(call.call_id, None) is None:
            return
        if not self.closing:
            self._put(build_cancel(call.call_id), None)
            self._put(build_orphaned(call.call_id), None)
        call.completion.fail(CallLost(reason, sent=call.sent))

    def close(self, reason: str = "closed") -> None:
        """Close the transport once pending output is written."""
        self._fail(CallLost(reason, sent=True))

    # ---- binding

    @property
    def _privacy(self) -> bool:
        return self._credentials is not None and self._credentials.level == AuthLevel.PRIVACY

    def _auth(self, token: bytes) -> SecTrailer | None:
        credentials = self._credentials
        if credentials is None or not token:
            return None
        return SecTrailer(credentials.auth_type, credentials.level, _AUTH_CONTEXT, token)

    @property
    def _proposal(self) -> Bind:
        contexts = [
            ContextElement(number, self._interface, (syntax,)) for number, syntax in enumerate(_SYNTAXES)
        ]
        return Bind(self._fragment, self._fragment, self.association, tuple(contexts))

    def _step(self, token: bytes, then: Callable[[bytes], None]) -> None:
        security = self._security
        assert security is not None  # noqa: S101 - where tokens are exchanged

        def done(reply: bytes | None, error: AuthError | None) -> None:
            if self.closing:
                return
            if reply is None:
                self._fail(LogonRefused(str(error)))
            else:
                then(reply)

        if security.blocking:
            self._offload(lambda: security.step(token), done)
            return
        try:
            reply = security.step(token)
        except AuthError as error:
            done(None, error)
        else:
            done(reply, None)

    def _bind(self, token: bytes) -> None:
        flags = Flag.FIRST | Flag.LAST | Flag.CONC_MPX
        auth = self._auth(token)
        if auth is not None:
            flags |= Flag.SUPPORT_HEADER_SIGN
        self._put(build_bind(_BIND_CALL, self._proposal, flags=flags, auth=auth), None)

    def _acknowledged(self, pdu: Pdu) -> None:
        if pdu.type == PduType.BIND_ACK:
            ack = parse_bind_ack(pdu)
            if len(ack.results) != len(_SYNTAXES):
                raise PduError(
                    f"the server sent {len(ack.results)} results for {len(_SYNTAXES)} presentation contexts"
                )
            accepted = [n for n in range(2) if ack.results[n].result == Result.ACCEPTANCE]
            if not accepted:
                raise PduError(f"the server does not accept the interface (reason {ack.results[0].reason})")
            if ack.max_recv < _LEAST_FRAGMENT:
                raise PduError(
                    f"the server accepts only fragments of {ack.max_recv} bytes; {_LEAST_FRAGMENT} are needed"
                )
            self.association = ack.group
            self.multiplexed = bool(pdu.flags & Flag.CONC_MPX)
            self._context_id = accepted[-1]
            self.ndr64 = _SYNTAXES[self._context_id] is NDR64
            self._sign_header = bool(pdu.flags & Flag.SUPPORT_HEADER_SIGN) and self._security is not None
            self._max_transmit = min(self._fragment, ack.max_recv)
        security = self._security
        if security is None or (security.complete and not pdu.token):
            self._opened()
        elif not pdu.token:
            self._fail(LogonRefused("the server does not answer the authentication token"))
        else:
            self._step(pdu.token, self._next_leg)

    def _next_leg(self, token: bytes) -> None:
        auth = self._auth(token)
        if auth is None:
            self._opened()
        elif auth.auth_type == AuthType.NTLM:
            self._put(build_auth3(_BIND_CALL, auth), None)
            self._opened()
        else:
            self._put(build_alter(_BIND_CALL, self._proposal, auth=auth), None)

    def _opened(self) -> None:
        if self._security is not None and not self._security.complete:
            self._fail(LogonRefused("the authentication ended too early"))
            return
        self._state = _ConnectionState.OPEN
        self._on_open()

    # ---- answers

    def _take(self, pdu: Pdu) -> None:
        if pdu.fault:
            raise PduError(f"the server sent a malformed PDU (fault {pdu.fault})")
        if self._state is _ConnectionState.BINDING:
            self._bound(pdu)
            return
        match pdu.type:
            case PduType.RESPONSE:
                self._response(pdu)
            case PduType.FAULT:
                self._fault(pdu)
            case PduType.SHUTDOWN | PduType.ALTER_RESPONSE:
                pass
            case _:
                raise PduError(f"the server sent a PDU of the unexpected type {pdu.type}")

    def _bound(self, pdu: Pdu) -> None:
        match pdu.type:
            case PduType.BIND_ACK | PduType.ALTER_RESPONSE:
                self._acknowledged(pdu)
            case PduType.BIND_NAK:
                reason = parse_bind_nak(pdu).reason
                text = f"the server rejects the bind (reason {reason})"
                refused = reason in (NakReason.AUTH_TYPE_NOT_RECOGNIZED, NakReason.INVALID_CHECKSUM)
                self._fail(LogonRefused(text) if refused else CallLost(text, sent=False))
            case PduType.FAULT:
                self._fail(LogonRefused(f"fault 0x{parse_fault(pdu).status:08X}"))
            case _:
                raise PduError(f"the server answered the bind with a PDU of the unexpected type {pdu.type}")

    def _response(self, pdu: Pdu) -> None:
        call = self.calls.get(pdu.call_id)
        stub = self._clear(pdu)
        if call is None:
            return  # the call was abandoned
        if bool(pdu.flags & Flag.FIRST) is bool(call.pieces):
            raise PduError("the fragments of an answer are out of order")
        call.pieces.append(stub)
        call.size += len(stub)
        if call.size > MOST_STUB:
            raise PduError(f"an answer has more than {MOST_STUB} bytes")
        if not pdu.flags & Flag.LAST:
            self.pieces += 1
            return
        del self.calls[pdu.call_id]
        whole = call.pieces[0] if len(call.pieces) == 1 else b"".join(call.pieces)
        call.pieces.clear()
        try:
            results = call.op.decode_response(whole, call.args, ndr64=self.ndr64, big_endian=pdu.big_endian)
        except RpcFault as fault:
            call.completion.fail(fault)
        else:
            call.completion.resolve(results)

    def _fault(self, pdu: Pdu) -> None:
        call = self.calls.pop(pdu.call_id, None)
        if call is None:
            return
        status = parse_fault(pdu).status
        if status == ACCESS_DENIED and self._credentials is not None and call.call_id == _BIND_CALL + 1:
            # A server cannot answer auth3, so the first call shows that it rejected the log-on.
            call.completion.fail(LogonRefused("access denied"))
        else:
            call.completion.fail(RpcFault(status))

    def _clear(self, pdu: Pdu) -> bytes:
        """Verify a fragment and return its decrypted stub."""
        credentials, security = self._credentials, self._security
        if credentials is None or security is None or credentials.level < AuthLevel.CALL:
            return pdu.stub
        if not pdu.auth_length:
            raise AuthError(AuthFailure.SIGNATURE, "an answer lacks the negotiated protection")
        stub = security.unprotect(
            pdu.header,
            pdu.padded_stub,
            pdu.trailer,
            pdu.token,
            privacy=self._privacy,
            sign_header=self._sign_header,
        )
        self._proved = True
        return stub[: len(stub) - pdu.auth_pad]

    # ---- inside

    def _put(self, data: bytes | bytearray, call: ClientCall | None) -> None:
        if self.closing:
            return
        if not self._output:
            self.wake()
        self._output.append((data, call))

    def _fail(self, error: Exception) -> None:
        if self._state is _ConnectionState.CLOSED:
            return
        self._state = _ConnectionState.CLOSED
        self.closing = True
        if self._proved and isinstance(error, LogonRefused):
            error = CallLost(
                str(error), sent=True
            )  # the server accepted the client, so it may have executed calls
        calls, self.calls = self.calls, {}
        for call in calls.values():
            if isinstance(error, CallLost):
                call.completion.fail(CallLost(str(error), sent=call.sent))
            else:
                call.completion.fail(error)
        self._on_end(error)
        self._on_open, self._on_end = _ignore, _ignore_error
        self.wake()


def _ignore() -> None:
    """Does nothing. Replaces the listener for the opening of a connection once the connection has ended."""


def _ignore_error(_: Exception) -> None:
    """Does nothing. Replaces the listener for the end of a connection once the connection has ended."""
