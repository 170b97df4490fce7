"""SPNEGO (RFC 4178, MS-SPNG) around NTLM and Kerberos.

The two sides negotiate a mechanism. The mechListMIC protects the list from which the mechanism was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from msmq_fast.rpc.auth.context import AuthError, AuthFailure, Buffer
from msmq_fast.rpc.auth.mechanism import Identity, Mechanism
from msmq_fast.rpc.auth.spnegotokens import (
    KERBEROS,
    KERBEROS_MICROSOFT,
    NTLM,
    NegState,
    NegTokenInit,
    NegTokenResp,
)

__all__ = ["SpnegoAcceptor", "SpnegoInitiator"]

_RAW_NTLM: Final = b"NTLMSSP\0"


def _known(mechanism: bytes) -> bytes:
    """Returns the standard object identifier of a mechanism: converts the second identifier of Kerberos,
    which Microsoft has defined.
    """
    return KERBEROS if mechanism == KERBEROS_MICROSOFT else mechanism


def _unexpected(what: str) -> NoReturn:
    raise AuthError(AuthFailure.TOKEN, f"SPNEGO: {what}")


class _Negotiation:
    """The base of acceptor and initiator: passes messages to the chosen mechanism, and signs the mechanism
    list.
    """

    _chosen: Mechanism | None = None
    _mech_list = b""
    _mic_due = False  # both sides must prove the list
    _mic_sent = False
    _mic_seen = False
    _done = False

    @property
    def complete(self) -> bool:
        """Whether all legs of the authentication are done."""
        return self._done

    @property
    def _inner(self) -> Mechanism:
        if self._chosen is None:
            _unexpected("no mechanism is chosen yet")
        return self._chosen

    @property
    def identity(self) -> Identity:
        """See Mechanism."""
        return self._inner.identity

    def _check_mic(self, mic: bytes) -> None:
        """Verify the peer's mechListMIC, if it sent one. This side must then send its own mechListMIC."""
        if mic:
            if not self._inner.complete or self._mic_seen:
                _unexpected("an unexpected mechListMIC")
            self._inner.check_mic(self._mech_list, mic)
            self._mic_seen = self._mic_due = True

    def _make_mic(self) -> bytes:
        """Return this side's mechListMIC if it must be sent now, otherwise b""; it is sent only once."""
        if not self._mic_due or self._mic_sent or not self._inner.complete:
            return b""
        self._mic_sent = True
        return self._inner.make_mic(self._mech_list)

    def signature_size(self, *, privacy: bool) -> int:
        """See Mechanism."""
        return self._inner.signature_size(privacy=privacy)

    def make_mic(self, data: bytes) -> bytes:
        """See Mechanism."""
        return self._inner.make_mic(data)

    def check_mic(self, data: bytes, mic: bytes) -> None:
        """See Mechanism."""
        self._inner.check_mic(data, mic)

    def protect(
        self, header: Buffer, stub: Buffer, trailer: Buffer, *, privacy: bool, sign_header: bool
    ) -> tuple[bytes, bytes]:
        """See Protection."""
        return self._inner.protect(header, stub, trailer, privacy=privacy, sign_header=sign_header)

    def unprotect(
        self,
        header: Buffer,
        stub: Buffer,
        trailer: Buffer,
        token: Buffer,
        *,
        privacy: bool,
        sign_header: bool,
    ) -> bytes:
        """See Protection."""
        return self._inner.unprotect(header, stub, trailer, token, privacy=privacy, sign_header=sign_header)

    def protect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        self._inner.protect_pdus(buffer, header_size, privacy=privacy, sign_header=sign_header)

    def unprotect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        self._inner.unprotect_pdus(buffer, header_size, privacy=privacy, sign_header=sign_header)


class SpnegoAcceptor(_Negotiation):
    """The server's side. `mechanisms` makes a mechanism for an object identifier. Of the supported
    mechanisms, the first one in the client's list is used.

    Windows sends NTLM messages without SPNEGO around them if it has only one mechanism to offer; the acceptor
    accepts these, too.
    """

    blocking = False

    def __init__(self, mechanisms: Mapping[bytes, Callable[[], Mechanism]]) -> None:
        self._mechanisms = mechanisms
        self._raw = False

    def step(self, token: bytes) -> bytes:
        """See Mechanism."""
        if self._chosen is None:
            if token.startswith(_RAW_NTLM) and NTLM in self._mechanisms:
                self._raw = True
                self._chosen = self._mechanisms[NTLM]()
            else:
                return self._begin(NegTokenInit.parse(token))
        if self._raw:
            answer = self._inner.step(token)
            self._done = self._inner.complete
            return answer
        response = NegTokenResp.parse(token)
        if response.state == NegState.REJECT:
            _unexpected("the client rejected the negotiation")
        inner = b""
        if not self._inner.complete:
            inner = self._inner.step(response.token)
        elif response.token:
            _unexpected("an unexpected token")
        return self._reply(inner, response.mic)

    def _begin(self, offer: NegTokenInit) -> bytes:
        self._mech_list = offer.mech_list
        mechanism = next((known for known in offer.mechanisms if _known(known) in self._mechanisms), b"")
        if not mechanism:
            raise AuthError(AuthFailure.TYPE, "SPNEGO: the client offers no accepted mechanism")
        self._chosen = self._mechanisms[_known(mechanism)]()
        preferred = mechanism == offer.mechanisms[0]
        self._mic_due = not preferred  # an attacker may have inserted the mechanism before this one
        inner = b""
        if preferred and offer.mech_token:
            inner = self._chosen.step(offer.mech_token)
        return self._reply(inner, b"", mechanism)

    def _reply(self, inner: bytes, mic: bytes, mechanism: bytes = b"") -> bytes:
        self._check_mic(mic)
        state = NegState.REQUEST_MIC if mechanism and self._mic_due else NegState.ACCEPT_INCOMPLETE
        own = self._make_mic()
        if self._inner.complete and (self._mic_seen or not self._mic_due):
            self._done = True
            state = NegState.ACCEPT_COMPLETED
        return NegTokenResp(state, mechanism, inner, own).pack()


class SpnegoInitiator(_Negotiation):
    """The client's side. `offers` are the mechanisms that can be tried, the preferred one first."""

    def __init__(self, offers: Mapping[bytes, Mechanism]) -> None:
        self._offers = dict(offers)
        self._answered = False

    @property
    def blocking(self) -> bool:
        """See Mechanism."""
        return any(mechanism.blocking for mechanism in self._offers.values())

    def step(self, token: bytes) -> bytes:
        """See Mechanism."""
        if self._chosen is None:
            return self._begin()
        response = NegTokenResp.parse(token)
        if response.state == NegState.REJECT:
            raise AuthError(AuthFailure.LOGON, "SPNEGO: the server refused")
        inner = response.token
        if not self._answered:
            self._answered = True
            self._choose(response)
        elif response.mechanism and self._offers.get(_known(response.mechanism)) is not self._chosen:
            _unexpected("the server selected a mechanism twice")
        answer = b""
        if not self._inner.complete:
            answer = self._inner.step(inner)
            # NTLM proves its negotiation by a MIC. In this case Windows expects a MIC of the list, too.
            self._mic_due |= self._inner.complete and self._inner is self._offers.get(NTLM)
        elif inner:
            _unexpected("an unexpected token")
        self._check_mic(response.mic)
        own = self._make_mic()
        if answer or own:
            return NegTokenResp(None, b"", answer, own).pack()
        if response.state != NegState.ACCEPT_COMPLETED or not self._inner.complete:
            _unexpected("the server expects a token that does not exist")
        if self._mic_due and not self._mic_seen:
            _unexpected("the server does not prove the negotiated mechanism list")
        self._done = True
        return b""

    def _begin(self) -> bytes:
        while self._chosen is None:
            preferred = next(iter(self._offers))
            try:
                token = self._offers[preferred].step(b"")
            except AuthError:
                # For example Kerberos without a ticket, which is then not offered.
                del self._offers[preferred]
                if not self._offers:
                    raise
            else:
                self._chosen = self._offers[preferred]
        offer = NegTokenInit.offer(tuple(self._offers), token)
        self._mech_list = offer.mech_list
        return offer.pack()

    def _choose(self, response: NegTokenResp) -> None:
        chosen = self._offers.get(_known(response.mechanism)) if response.mechanism else self._chosen
        if chosen is None:
            _unexpected("the server selected a mechanism that was not offered")
        if chosen is not self._chosen or response.state == NegState.REQUEST_MIC:
            self._mic_due = True
        self._chosen = chosen
