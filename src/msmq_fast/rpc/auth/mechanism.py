"""The interface that NTLM, Kerberos and SPNEGO share, and the security context that uses one of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, Protocol

from msmq_fast.rpc.auth.context import (
    AuthError,
    AuthFailure,
    AuthLevel,
    AuthType,
    Buffer,
    Caller,
    Protection,
)
from msmq_fast.security.token import Token

__all__ = ["AuthCounters", "Context", "Identity", "Mechanism"]

_MAX_LEGS: Final = 10  # tokens from the peer; SPNEGO around Kerberos needs 4 at most
_MAX_TOKEN: Final = 65535  # the largest value of auth_length


@dataclass(frozen=True, slots=True)
class Identity:
    """The account that logged on; `name` is empty for an anonymous caller."""

    name: str
    token: Token


class Mechanism(Protection, Protocol):
    """One side of a GSS mechanism: first it authenticates the peer, then it protects messages.

    It authenticates in legs; each leg is one `step`, which processes one token of the peer.

    All methods raise AuthError for an error of the peer.
    """

    @property
    def complete(self) -> bool:
        """Whether all legs of the authentication are done."""

    @property
    def blocking(self) -> bool:
        """Whether the next step may wait for files or the network."""

    @property
    def identity(self) -> Identity:
        """The identity of the initiator. Only an acceptor knows it, once all legs are done."""

    def step(self, token: bytes) -> bytes:
        """Process the peer's token, and return the next token for the peer; empty if none follows."""

    def signature_size(self, *, privacy: bool) -> int:
        """Return the size in bytes of the token of a signed or, with `privacy`, a sealed message."""

    def make_mic(self, data: bytes) -> bytes:
        """Return the signature of `data`, for the mechListMIC of SPNEGO."""

    def check_mic(self, data: bytes, mic: bytes) -> None:
        """Verify the peer's signature of `data`."""


@dataclass(slots=True)
class AuthCounters:
    """The numbers of completed security contexts by type, and of failed ones by reason."""

    completed: Counter[AuthType] = field(default_factory=Counter)
    failed: Counter[AuthFailure] = field(default_factory=Counter)


class Context:
    """A SecurityContext that counts successes and failures for the metrics. It must not be used after the
    first failure.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        auth_type: AuthType,
        level: AuthLevel,
        counters: AuthCounters,
        address: str = "",
    ) -> None:
        self._mechanism = mechanism
        self._type = auth_type
        self._level = level
        self._counters = counters
        self._address = address
        self._legs = 0
        self._failed = False

    @property
    def complete(self) -> bool:
        """Whether all legs of the authentication are done, and no failure has occurred since."""
        return self._mechanism.complete and not self._failed

    @property
    def blocking(self) -> bool:
        """See SecurityContext."""
        return self._mechanism.blocking

    @property
    def caller(self) -> Caller:
        """The identity of the client. Only on the server's side, and only when complete."""
        identity = self._mechanism.identity
        token = replace(identity.token, address=self._address)
        return Caller(identity.name, token, self._type, self._level, self._address)

    def step(self, token: bytes) -> bytes:
        """See SecurityContext."""
        self._legs += 1
        if self._failed or self._mechanism.complete or self._legs > _MAX_LEGS or len(token) > _MAX_TOKEN:
            self._fail(AuthError(AuthFailure.TOKEN, "an unexpected token, or one that is too large"))
        try:
            answer = self._mechanism.step(token)
        except AuthError as error:
            self._fail(error)
        if self._mechanism.complete:
            self._counters.completed[self._type] += 1
        return answer

    def overhead(self) -> int:
        """See SecurityContext."""
        return self._mechanism.signature_size(privacy=self._level == AuthLevel.PRIVACY)

    def protect(
        self, header: Buffer, stub: Buffer, trailer: Buffer, *, privacy: bool, sign_header: bool
    ) -> tuple[bytes, bytes]:
        """See Protection."""
        return self._mechanism.protect(header, stub, trailer, privacy=privacy, sign_header=sign_header)

    def protect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        self._mechanism.protect_pdus(buffer, header_size, privacy=privacy, sign_header=sign_header)

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
        self._live()
        try:
            return self._mechanism.unprotect(
                header, stub, trailer, token, privacy=privacy, sign_header=sign_header
            )
        except AuthError as error:
            self._fail(error)

    def unprotect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        self._live()
        try:
            self._mechanism.unprotect_pdus(buffer, header_size, privacy=privacy, sign_header=sign_header)
        except AuthError as error:
            self._fail(error)

    def _live(self) -> None:
        if not self.complete:
            self._fail(
                AuthError(AuthFailure.SIGNATURE, "a protected PDU without a complete security context")
            )

    def _fail(self, error: AuthError) -> NoReturn:
        self._failed = True
        self._counters.failed[error.failure] += 1
        raise error
