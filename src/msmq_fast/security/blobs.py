"""Key and certificate structures: PUBLICKEYBLOB, SIMPLEBLOB (MS-MQQB 2.4), MQDSPUBLICKEYS, MQUSERSIGNCERTS
(MS-MQMQ 2.2.1, 2.2.2, 2.2.21, 2.2.22). Every size is checked; the text of a SecurityDataError says which size
or value is wrong.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from msmq_fast.packet.text import decode_text, encode_text
from msmq_fast.security.errors import SecurityDataError

__all__ = [
    "MAX_EXPONENT_BITS",
    "MAX_RSA_BITS",
    "PublicKeyEntry",
    "RsaPublicKey",
    "UserCertificate",
    "read_key_list",
    "read_simple_blob",
    "read_user_certificates",
    "simple_blob",
    "write_key_list",
    "write_user_certificates",
]

MAX_RSA_BITS: Final = 8192
"""The largest RSA key that an unauthenticated peer may use: the time of an operation grows with the cube of
its size.
"""

MAX_EXPONENT_BITS: Final = 32
"""The size of the field in PUBLICKEYBLOB. An exponent as long as the modulus would take 200 times as long."""

_MIN_RSA_BITS: Final = 384
_KEY_EXCHANGE: Final = 0x0000A400  # CALG_RSA_KEYX
_SIGNATURE: Final = 0x00002400  # CALG_RSA_SIGN
_PUBLIC: Final = struct.Struct("<BBHI4sII")
_SIMPLE: Final = struct.Struct("<BBHII")
_ENTRY: Final = struct.Struct("<III")
_CERTIFICATE: Final = struct.Struct("<16s16sI")
_MAX_KEYS: Final = 64
_MAX_CERTIFICATES: Final = 1024


@dataclass(frozen=True, slots=True)
class RsaPublicKey:
    """An RSA key as PUBLICKEYBLOB holds it (QB-071, QB-072)."""

    modulus: int
    exponent: int

    @property
    def bits(self) -> int:
        """Length of the modulus in bits."""
        return self.modulus.bit_length()

    def blob(self, *, signing: bool = False) -> bytes:
        """Return the PUBLICKEYBLOB of the key."""
        bits = (self.bits + 7) & ~7
        head = _PUBLIC.pack(6, 2, 0, _SIGNATURE if signing else _KEY_EXCHANGE, b"RSA1", bits, self.exponent)
        return head + self.modulus.to_bytes(bits // 8, "little")

    @classmethod
    def from_blob(cls, data: bytes) -> RsaPublicKey:
        """Return the key of a PUBLICKEYBLOB that fills `data`. Raises SecurityDataError."""
        if len(data) < _PUBLIC.size:
            raise SecurityDataError("a public key blob is truncated")
        kind, version, _, algorithm, magic, bits, exponent = _PUBLIC.unpack_from(data)
        if (kind, version, magic) != (6, 2, b"RSA1") or algorithm not in (_KEY_EXCHANGE, _SIGNATURE):
            raise SecurityDataError("the data is not the public key blob of an RSA key")
        if not _MIN_RSA_BITS <= bits <= MAX_RSA_BITS or bits % 8 or len(data) != _PUBLIC.size + bits // 8:
            raise SecurityDataError(f"a public key blob of {len(data)} bytes declares {bits} bits")
        key = cls(int.from_bytes(data[_PUBLIC.size :], "little"), exponent)
        if key.bits != bits:
            raise SecurityDataError(f"a public key of {key.bits} bits declares {bits} bits")
        if exponent < 3 or not exponent & 1 or not key.modulus & 1:
            raise SecurityDataError("the modulus or exponent is not valid for an RSA key")
        return key


# ---- session keys


def simple_blob(algorithm: int, encrypted: bytes) -> bytes:
    """Return a SIMPLEBLOB. `encrypted` is the output of RSAES-PKCS1-v1_5, which the blob holds byte-reversed
    (QB-073).
    """
    return _SIMPLE.pack(1, 2, 0, algorithm, _KEY_EXCHANGE) + encrypted[::-1]


def read_simple_blob(data: bytes) -> tuple[int, bytes]:
    """Return (algorithm, output of RSAES-PKCS1-v1_5); the output is as long as the modulus of the receiver's
    key (QB-075).
    """
    if len(data) < _SIMPLE.size + _MIN_RSA_BITS // 8 or len(data) > _SIMPLE.size + MAX_RSA_BITS // 8:
        raise SecurityDataError(f"a session key blob cannot have {len(data)} bytes")
    kind, version, _, algorithm, exchange = _SIMPLE.unpack_from(data)
    if (kind, version, exchange) != (1, 2, _KEY_EXCHANGE):
        raise SecurityDataError("the data is not a session key blob")
    return algorithm, data[_SIMPLE.size :][::-1]


# ---- published keys


@dataclass(frozen=True, slots=True)
class PublicKeyEntry:
    """One entry of MQDSPUBLICKEYS: an MQDSPUBLICKEY."""

    provider: str
    provider_type: int
    key: RsaPublicKey


def write_key_list(entries: Iterable[PublicKeyEntry], *, signing: bool = False) -> bytes:
    """Return the MQDSPUBLICKEYS of the entries."""
    parts = []
    for entry in entries:
        name = encode_text(entry.provider + "\0")
        blob = entry.key.blob(signing=signing)
        parts.append(_ENTRY.pack(len(blob), len(name), entry.provider_type) + name + blob)
    content = b"".join(parts)
    return struct.pack("<II", 8 + len(content), len(parts)) + content


def read_key_list(data: bytes) -> tuple[PublicKeyEntry, ...]:
    """Return the entries of MQDSPUBLICKEYS; an empty `data` is an empty list. Raises SecurityDataError."""
    if not data:
        return ()
    if len(data) < 8:
        raise SecurityDataError("a list of public keys is truncated")
    size, count = struct.unpack_from("<II", data)
    if size != len(data) or count > _MAX_KEYS:
        raise SecurityDataError(f"a list of {count} public keys in {len(data)} bytes declares {size} bytes")
    entries, at = [], 8
    for _ in range(count):
        if len(data) - at < _ENTRY.size:
            raise SecurityDataError("a list of public keys is truncated")
        blob, name, kind = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        if name % 2 or name + blob > len(data) - at:
            raise SecurityDataError("an entry of a list of public keys is truncated")
        text = decode_text(data[at : at + name])
        key = RsaPublicKey.from_blob(data[at + name : at + name + blob])
        entries.append(PublicKeyEntry(text, kind, key))
        at += name + blob
    if at != len(data):
        raise SecurityDataError("extra data follows the list of public keys")
    return tuple(entries)


# ---- certificates of users


@dataclass(frozen=True, slots=True)
class UserCertificate:
    """One MQUSERSIGNCERT: an X.509 certificate in DER. Certificates are looked up by their MD5 digest."""

    certificate: bytes
    identifier: UUID

    @property
    def digest(self) -> bytes:
        """The MD5 digest of the certificate."""
        return hashlib.md5(self.certificate, usedforsecurity=False).digest()


def write_user_certificates(certificates: Iterable[UserCertificate]) -> bytes:
    """Return the MQUSERSIGNCERTS of the certificates."""
    parts = [
        _CERTIFICATE.pack(item.digest, item.identifier.bytes_le, len(item.certificate)) + item.certificate
        for item in certificates
    ]
    return struct.pack("<I", len(parts)) + b"".join(parts)


def read_user_certificates(data: bytes) -> tuple[UserCertificate, ...]:
    """Return the certificates of MQUSERSIGNCERTS; an empty `data` is an empty list. The digests in it are
    ignored. Raises SecurityDataError.
    """
    if not data:
        return ()
    if len(data) < 4:
        raise SecurityDataError("a list of certificates is truncated")
    (count,) = struct.unpack_from("<I", data)
    if count > _MAX_CERTIFICATES:
        raise SecurityDataError(f"a list of certificates declares too many: {count}")
    found, at = [], 4
    for _ in range(count):
        if len(data) - at < _CERTIFICATE.size:
            raise SecurityDataError("a list of certificates is truncated")
        _, identifier, size = _CERTIFICATE.unpack_from(data, at)
        at += _CERTIFICATE.size
        if size > len(data) - at:
            raise SecurityDataError("a certificate of a list is truncated")
        found.append(UserCertificate(data[at : at + size], UUID(bytes_le=identifier)))
        at += size
    if at != len(data):
        raise SecurityDataError("extra data follows the list of certificates")
    return tuple(found)
