"""The contract between the runtime and the security providers, which authenticate the peer and protect PDUs.

A security context is established in legs: each `step` takes a token of the peer and returns the next one
(MS-RPCE 3.3.1.5.2.1). Then it protects PDUs (3.3.1.5.2.2). A step does IO only if `blocking` is True. Protect
PDUs in the order in which they are sent, and unprotect them in the order in which they arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol, TypeAlias

from msmq_fast.security.token import Token

__all__ = [
    "AcceptorFactory",
    "AuthError",
    "AuthFailure",
    "AuthLevel",
    "AuthType",
    "Buffer",
    "Caller",
    "Protection",
    "SecurityContext",
]

Buffer: TypeAlias = bytes | bytearray | memoryview


class AuthType(IntEnum):
    """The supported security providers (MS-RPCE 2.2.1.1.7)."""

    NONE = 0
    SPNEGO = 9
    NTLM = 10
    KERBEROS = 16


class AuthLevel(IntEnum):
    """Authentication levels (MS-RPCE 2.2.1.1.8)."""

    DEFAULT = 0
    NONE = 1
    CONNECT = 2
    CALL = 3
    PKT = 4
    INTEGRITY = 5
    PRIVACY = 6


class AuthFailure(StrEnum):
    """Why authentication failed. It selects the counter and the answer to the peer, which reveals less."""

    TYPE = "type"  # the type is not supported, or not allowed here: bind_nak reason 8
    LEVEL = "level"  # not a level for a security context: bind_nak reason 0
    TOKEN = "token"  # noqa: S105 - malformed, or not what is due now: bind_nak reason 9
    LOGON = "logon"  # unknown, disabled, wrong secret, wrong time, replayed or locked
    WEAK = "weak"  # the peer offers less than the required protection
    SIGNATURE = "signature"  # a PDU was changed, repeated, or is out of sequence


class AuthError(Exception):
    """Raised if a security context fails; it must not be used any more. The text is for logs and contains no
    secret.
    """

    def __init__(self, failure: AuthFailure, text: str) -> None:
        super().__init__(text)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated client of a call. `name` is empty for an anonymous client; `address` is for people
    and the audit log.
    """

    name: str
    token: Token
    auth_type: AuthType
    auth_level: AuthLevel
    address: str


class Protection(Protocol):
    """The methods that protect PDUs once all legs are complete."""

    def protect(
        self, header: Buffer, stub: Buffer, trailer: Buffer, *, privacy: bool, sign_header: bool
    ) -> tuple[bytes, bytes]:
        """Return (stub as it must be sent, token for the PDU). The token has `overhead()` bytes.

        `header` is the PDU up to its stub, `stub` includes the authentication padding, and `trailer` is the
        sec_trailer of 8 bytes. The header must already have the frag_length and auth_length of the PDU that
        is sent. With `privacy` the stub is encrypted; with `sign_header` the token also covers header and
        trailer.
        """

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
        """Verify the token and return the decrypted stub. Raises AuthError."""

    def protect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """Protect complete PDUs in place. `buffer` has them one after the other, for example all fragments of
        a reply.

        Each PDU must have its frag_length, its auth_length (`overhead()`), its sec_trailer, and room for the
        token. Its stub begins after `header_size` bytes: 24 for a response and for a request without an
        object UUID. Raises ValueError if the lengths contradict each other.
        """

    def unprotect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """Verify and decrypt complete PDUs in place. Raises AuthError if a token is wrong or the lengths
        contradict each other.
        """


class SecurityContext(Protection, Protocol):
    """One security context of a connection, for either side. An AuthError ends the context."""

    @property
    def complete(self) -> bool:
        """Whether all legs are complete, so that PDUs can be protected."""

    @property
    def blocking(self) -> bool:
        """Whether the next `step` may wait for files or the network, so that it must run on a thread."""

    @property
    def caller(self) -> Caller:
        """The identity of the client. Only on the server's side, and only when complete."""

    def step(self, token: bytes) -> bytes:
        """Process the peer's token, and return the next token for the peer; empty if none follows.

        The first token for an initiator is empty. Raises AuthError.
        """

    def overhead(self) -> int:
        """Return the size in bytes of the token of a protected PDU at the level of the context (RP-22). Call
        only when `complete`.
        """


class AcceptorFactory(Protocol):
    """Makes the server's side of security contexts."""

    def accept(self, auth_type: int, level: int, address: str) -> SecurityContext:
        """Return a context for the type and level of a bind. Raises AuthError if they are not supported or
        not allowed.
        """
