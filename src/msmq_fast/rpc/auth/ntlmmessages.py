"""Builds and parses the three messages of NTLM and their AV pairs (MS-NLMP 2.2).

Every offset and length is checked. Strings are Unicode; a peer that requests an OEM character set is
rejected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

from msmq_fast.packet.text import decode_name, is_name
from msmq_fast.rpc.auth.context import AuthError, AuthFailure

__all__ = [
    "MIC_SIZE",
    "Authenticate",
    "AvFlags",
    "AvId",
    "Challenge",
    "Flags",
    "NtlmV2Response",
    "pack_av_pairs",
    "pack_negotiate",
    "parse_av_pairs",
    "parse_negotiate",
]

MIC_SIZE: Final = 16
_SIGNATURE: Final = b"NTLMSSP\0"
_NEGOTIATE, _CHALLENGE, _AUTHENTICATE = 1, 2, 3
_VERSION: Final = bytes((10, 0, 0, 0, 0, 0, 0, 15))  # NTLMSSP_REVISION_W2K3; no build
_FIELD: Final = struct.Struct("<HHI")  # length, maximum, offset
_AV_PAIR: Final = struct.Struct("<HH")
_MIC_AT: Final = 72
_CLIENT_CHALLENGE: Final = struct.Struct("<BB6xQ8s4x")  # before the AV pairs


class Flags(IntFlag):
    """The NEGOTIATE flags (MS-NLMP 2.2.2.5), with the alternate names of the specification."""

    UNICODE = 0x00000001
    OEM = 0x00000002
    REQUEST_TARGET = 0x00000004
    SIGN = 0x00000010
    SEAL = 0x00000020
    NTLM = 0x00000200
    ANONYMOUS = 0x00000800
    OEM_DOMAIN_SUPPLIED = 0x00001000
    OEM_WORKSTATION_SUPPLIED = 0x00002000
    ALWAYS_SIGN = 0x00008000
    TARGET_TYPE_SERVER = 0x00020000
    EXTENDED_SESSIONSECURITY = 0x00080000
    TARGET_INFO = 0x00800000
    VERSION = 0x02000000
    KEY_128 = 0x20000000
    KEY_EXCH = 0x40000000
    KEY_56 = 0x80000000


class AvId(IntEnum):
    """The identifiers of AV pairs that are used here (MS-NLMP 2.2.2.1)."""

    EOL = 0
    NB_COMPUTER_NAME = 1
    NB_DOMAIN_NAME = 2
    DNS_COMPUTER_NAME = 3
    DNS_DOMAIN_NAME = 4
    FLAGS = 6
    TIMESTAMP = 7
    TARGET_NAME = 9
    CHANNEL_BINDINGS = 10


class AvFlags(IntFlag):
    """The bits of the AV pair MsvAvFlags."""

    MIC = 2
    UNTRUSTED_TARGET = 4


def _version(flags: Flags) -> bytes:
    return _VERSION if Flags.VERSION in flags else bytes(len(_VERSION))


def _malformed(what: str) -> AuthError:
    return AuthError(AuthFailure.TOKEN, f"NTLM: {what}")


def _check(token: bytes, kind: int, size: int) -> None:
    if len(token) < size or token[:8] != _SIGNATURE or token[8:12] != kind.to_bytes(4, "little"):
        raise _malformed("unexpected message type")


def _payload(token: bytes, at: int, start: int) -> bytes:
    """Returns the data to which the field at offset `at` of a message refers. The payload of the message
    begins at `start`.
    """
    length, _, offset = _FIELD.unpack_from(token, at)
    if not length:
        return b""
    if offset < start or offset + length > len(token):
        raise _malformed("a field refers to data outside of the message")
    return token[offset : offset + length]


def _text(data: bytes) -> str:
    """Returns the name of a user, domain or computer, which may be empty. Raises AuthError."""
    text = decode_name(data)
    if len(data) % 2 or (text and not is_name(text)):
        raise _malformed("a name is too long, or has characters that cannot be shown")
    return text


def _layout(start: int, payload: Iterable[bytes]) -> tuple[list[bytes], bytes]:
    """Returns (one field for each item of `payload`, the joined payload) for a message whose payload begins
    at offset `start`.
    """
    fields, parts = [], []
    for data in payload:
        fields.append(_FIELD.pack(len(data), len(data), start))
        parts.append(data)
        start += len(data)
    return fields, b"".join(parts)


def parse_av_pairs(data: bytes) -> dict[int, bytes]:
    """Return the AV pairs up to MsvAvEOL as a mapping from ids to values. If an id is repeated, its first
    value counts. Raises AuthError.
    """
    pairs: dict[int, bytes] = {}
    at = 0
    while at + _AV_PAIR.size <= len(data):
        kind, length = _AV_PAIR.unpack_from(data, at)
        at += _AV_PAIR.size
        if kind == AvId.EOL:
            if length:
                break
            return pairs
        if at + length > len(data):
            break
        pairs.setdefault(kind, data[at : at + length])
        at += length
    raise _malformed("the AV pairs do not end with MsvAvEOL")


def pack_av_pairs(pairs: Mapping[int, bytes]) -> bytes:
    """Returns AV pairs in the order of the mapping, followed by MsvAvEOL."""
    parts = [_AV_PAIR.pack(kind, len(value)) + value for kind, value in pairs.items()]
    return b"".join((*parts, _AV_PAIR.pack(AvId.EOL, 0)))


def pack_negotiate(flags: Flags) -> bytes:
    """Returns a NEGOTIATE_MESSAGE without names (2.2.1.1)."""
    empty = _FIELD.pack(0, 0, 40)
    return _SIGNATURE + struct.pack("<II", _NEGOTIATE, flags) + empty + empty + _VERSION


def parse_negotiate(token: bytes) -> Flags:
    """Return the flags of a NEGOTIATE_MESSAGE (2.2.1.1). The fields of its names are checked, but the names
    are not returned. Raises AuthError.
    """
    _check(token, _NEGOTIATE, 16)
    flags = Flags(int.from_bytes(token[12:16], "little"))
    for flag, at in ((Flags.OEM_DOMAIN_SUPPLIED, 16), (Flags.OEM_WORKSTATION_SUPPLIED, 24)):
        if flag in flags:
            if len(token) < 32:
                raise _malformed("the message is too short for its fields")
            _payload(token, at, 32)
    return flags


@dataclass(frozen=True, slots=True)
class Challenge:
    """CHALLENGE_MESSAGE (2.2.1.2). `target_info` holds the AV pairs as on the wire."""

    flags: Flags
    server_challenge: bytes
    target_name: str
    target_info: bytes

    def pack(self) -> bytes:
        """Returns the message as sent."""
        (name, info), payload = _layout(56, (self.target_name.encode("utf-16-le"), self.target_info))
        head = struct.pack("<I8s8x", self.flags, self.server_challenge)
        return b"".join(
            (_SIGNATURE, struct.pack("<I", _CHALLENGE), name, head, info, _version(self.flags), payload)
        )

    @classmethod
    def parse(cls, token: bytes) -> Challenge:
        """Parses a message. Raises AuthError, also for strings that are not Unicode."""
        _check(token, _CHALLENGE, 48)
        flags = Flags(int.from_bytes(token[20:24], "little"))
        if Flags.UNICODE not in flags:
            raise _malformed("the server does not support Unicode")
        info = _payload(token, 40, 48) if Flags.TARGET_INFO in flags else b""
        return cls(flags, token[24:32], _text(_payload(token, 12, 48)), info)


@dataclass(frozen=True, slots=True)
class Authenticate:
    """AUTHENTICATE_MESSAGE (2.2.1.3), without its MIC. The MIC covers the bytes of the whole message: see
    `split_mic` and `with_mic`.
    """

    flags: Flags
    lm_response: bytes
    nt_response: bytes
    domain: str
    user: str
    workstation: str
    session_key: bytes  # EncryptedRandomSessionKey

    def pack(self) -> bytes:
        """Returns the message as sent, with zeros for the MIC."""
        start = _MIC_AT + MIC_SIZE
        names = (text.encode("utf-16-le") for text in (self.domain, self.user, self.workstation))
        fields, payload = _layout(start, (*names, self.lm_response, self.nt_response, self.session_key))
        domain, user, workstation, lm, nt, key = fields
        return b"".join(
            (
                _SIGNATURE,
                struct.pack("<I", _AUTHENTICATE),
                *(lm, nt, domain, user, workstation, key),
                struct.pack("<I", self.flags & 0xFFFFFFFF),
                _version(self.flags),
                bytes(MIC_SIZE),
                payload,
            )
        )

    @classmethod
    def parse(cls, token: bytes) -> Authenticate:
        """Parses a message. Raises AuthError, also for strings that are not Unicode."""
        _check(token, _AUTHENTICATE, 64)
        flags = Flags(int.from_bytes(token[60:64], "little"))
        lm, nt, domain, user, workstation, key = (_payload(token, at, 64) for at in range(12, 60, 8))
        if Flags.UNICODE not in flags:
            raise _malformed("the client does not support Unicode")
        return cls(flags, lm, nt, _text(domain), _text(user), _text(workstation), key)

    @staticmethod
    def split_mic(token: bytes) -> tuple[bytes, bytes]:
        """Return (MIC, message with zeros in the place of the MIC) of a message that has a MIC. Raises
        AuthError.
        """
        end = _MIC_AT + MIC_SIZE
        offsets = [offset for length, _, offset in _FIELD.iter_unpack(token[12:60]) if length]
        if min([len(token), *offsets]) < end:
            raise _malformed("the message is too short for the MIC that it announces")
        return token[_MIC_AT:end], Authenticate.with_mic(token, bytes(MIC_SIZE))

    @staticmethod
    def with_mic(token: bytes, mic: bytes) -> bytes:
        """Return the message with `mic` in the place of its MIC."""
        return token[:_MIC_AT] + mic + token[_MIC_AT + MIC_SIZE :]


@dataclass(frozen=True, slots=True)
class NtlmV2Response:
    """NTLMv2_RESPONSE (2.2.2.8). `blob` is the NTLMv2_CLIENT_CHALLENGE as it was received."""

    proof: bytes  # over the blob
    blob: bytes
    timestamp: int  # FILETIME
    pairs: dict[int, bytes]

    @classmethod
    def parse(cls, response: bytes) -> NtlmV2Response:
        """Parses a response. Raises AuthError."""
        proof, blob = response[:16], response[16:]
        if len(blob) < _CLIENT_CHALLENGE.size:
            raise _malformed("the response is too short")
        version, highest, timestamp, _ = _CLIENT_CHALLENGE.unpack_from(blob)
        if version != 1 or highest != 1:
            raise _malformed("the response is not NTLMv2")
        pairs = parse_av_pairs(blob[_CLIENT_CHALLENGE.size :])
        if len(pairs.get(AvId.FLAGS, bytes(4))) != 4:
            raise _malformed("MsvAvFlags does not have 4 bytes")
        return cls(proof, blob, timestamp, pairs)

    @property
    def flags(self) -> AvFlags:
        """The value of the AV pair MsvAvFlags, 0 if there is none."""
        return AvFlags(int.from_bytes(self.pairs.get(AvId.FLAGS, b""), "little"))

    @staticmethod
    def make_blob(timestamp: int, client_challenge: bytes, pairs: Mapping[int, bytes]) -> bytes:
        """Returns the NTLMv2_CLIENT_CHALLENGE, called `temp` in MS-NLMP 3.3.2."""
        return _CLIENT_CHALLENGE.pack(1, 1, timestamp, client_challenge) + pack_av_pairs(pairs) + bytes(4)
