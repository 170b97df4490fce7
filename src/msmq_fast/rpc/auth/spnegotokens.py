"""The tokens of SPNEGO (RFC 4178): NegTokenInit and NegTokenResp, in DER."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NoReturn

from msmq_fast.rpc.auth.context import AuthError, AuthFailure

__all__ = ["KERBEROS", "KERBEROS_MICROSOFT", "NTLM", "NegState", "NegTokenInit", "NegTokenResp", "unframed"]

# Object identifiers, as the contents of their DER elements.
_SPNEGO: Final = bytes.fromhex("2b0601050502")
NTLM: Final = bytes.fromhex("2b06010401823702020a")
KERBEROS: Final = bytes.fromhex("2a864886f712010202")
KERBEROS_MICROSOFT: Final = bytes.fromhex("2a864882f712010202")  # with a bit missing, for Windows 2000

_OID, _OCTETS, _ENUMERATED, _SEQUENCE, _APPLICATION = 0x06, 0x04, 0x0A, 0x30, 0x60
_CONTEXT: Final = 0xA0
_MAX_MECHANISMS: Final = 32


class NegState(IntEnum):
    """The state of a negotiation: negState (RFC 4178 4.2.2)."""

    ACCEPT_COMPLETED = 0
    ACCEPT_INCOMPLETE = 1
    REJECT = 2
    REQUEST_MIC = 3


def _malformed() -> NoReturn:
    raise AuthError(AuthFailure.TOKEN, "SPNEGO: malformed token")


def _take(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return (content of the DER element with which `data` begins, bytes after the element). Raises AuthError
    unless the element has this tag.
    """
    if len(data) < 2 or data[0] != tag:
        _malformed()
    size, at = data[1], 2
    if size & 0x80:
        at += size & 0x7F
        if not 3 <= at <= 6 or len(data) < at:  # lengths of 1 to 4 bytes
            _malformed()
        size = int.from_bytes(data[2:at], "big")
    if at + size > len(data):
        _malformed()
    return data[at : at + size], data[at + size :]


def _whole(data: bytes, tag: int) -> bytes:
    contents, rest = _take(data, tag)
    if rest:
        _malformed()
    return contents


def _fields(data: bytes) -> dict[int, bytes]:
    """Return the fields of a SEQUENCE by their context tags, which must be in ascending order."""
    fields: dict[int, bytes] = {}
    rest = _whole(data, _SEQUENCE)
    while rest:
        number = rest[0] - _CONTEXT
        if number not in range(5) or (fields and number <= max(fields)):
            _malformed()
        fields[number], rest = _take(rest, rest[0])
    return fields


def _element(tag: int, contents: bytes) -> bytes:
    size = len(contents)
    if size < 0x80:
        return bytes((tag, size)) + contents
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + contents


def _octets(number: int, contents: bytes) -> bytes:
    return _element(_CONTEXT + number, _element(_OCTETS, contents)) if contents else b""


def unframed(token: bytes, mechanism: bytes, kind: bytes) -> bytes:
    """Removes the GSS-API framing (RFC 2743 3.1) from a token of `mechanism`, and returns its content.

    Returns a token without this framing unchanged. Raises AuthError if the framing is malformed.
    """
    if not token or token[0] != _APPLICATION:
        return token
    oid, rest = _take(_whole(token, _APPLICATION), _OID)
    return rest[len(kind) :] if oid == mechanism and rest.startswith(kind) else token


@dataclass(frozen=True, slots=True)
class NegTokenInit:
    """The first token of an initiator. `mech_list` is the DER of MechTypeList, which mechListMIC covers."""

    mechanisms: tuple[bytes, ...]
    mech_list: bytes
    mech_token: bytes = b""

    @classmethod
    def offer(cls, mechanisms: tuple[bytes, ...], mech_token: bytes) -> NegTokenInit:
        """Returns the token that offers `mechanisms`, and that contains `mech_token`, the first token of the
        first mechanism.
        """
        listed = _element(_SEQUENCE, b"".join(_element(_OID, mechanism) for mechanism in mechanisms))
        return cls(mechanisms, listed, mech_token)

    def pack(self) -> bytes:
        """Returns the token, in the framing of GSS-API (RFC 2743 3.1)."""
        contents = _element(_CONTEXT, self.mech_list) + _octets(2, self.mech_token)
        inner = _element(_CONTEXT, _element(_SEQUENCE, contents))
        return _element(_APPLICATION, _element(_OID, _SPNEGO) + inner)

    @classmethod
    def parse(cls, token: bytes) -> NegTokenInit:
        """Parses a token. Raises AuthError."""
        oid, rest = _take(_whole(token, _APPLICATION), _OID)
        if oid != _SPNEGO:
            _malformed()
        fields = _fields(_whole(rest, _CONTEXT))
        mech_list = fields.get(0, b"")
        mechanisms = []
        rest = _whole(mech_list, _SEQUENCE)
        while rest:
            mechanism, rest = _take(rest, _OID)
            mechanisms.append(mechanism)
            if len(mechanisms) > _MAX_MECHANISMS:
                _malformed()
        return cls(tuple(mechanisms), mech_list, _whole(fields[2], _OCTETS) if 2 in fields else b"")


@dataclass(frozen=True, slots=True)
class NegTokenResp:
    """The form of every token after the first one, in both directions."""

    state: NegState | None = None
    mechanism: bytes = b""
    token: bytes = b""
    mic: bytes = b""

    def pack(self) -> bytes:
        """Returns the token as sent."""
        state = b""
        if self.state is not None:
            state = _element(_CONTEXT, _element(_ENUMERATED, bytes((self.state,))))
        mechanism = _element(_CONTEXT + 1, _element(_OID, self.mechanism)) if self.mechanism else b""
        contents = state + mechanism + _octets(2, self.token) + _octets(3, self.mic)
        return _element(_CONTEXT + 1, _element(_SEQUENCE, contents))

    @classmethod
    def parse(cls, token: bytes) -> NegTokenResp:
        """Parses a token. Raises AuthError."""
        fields = _fields(_whole(token, _CONTEXT + 1))
        state = None
        if 0 in fields:
            number = _whole(fields[0], _ENUMERATED)
            if len(number) != 1 or number[0] > NegState.REQUEST_MIC:
                _malformed()
            state = NegState(number[0])
        return cls(
            state,
            _whole(fields[1], _OID) if 1 in fields else b"",
            _whole(fields[2], _OCTETS) if 2 in fields else b"",
            _whole(fields[3], _OCTETS) if 3 in fields else b"",
        )
