"""X.509 certificates of users: internal ones, made here and signed by themselves, and external ones."""

from __future__ import annotations

import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.x509.oid import NameOID

from msmq_fast.security.blobs import MAX_EXPONENT_BITS, MAX_RSA_BITS
from msmq_fast.security.errors import SecurityDataError

__all__ = [
    "MAX_CERTIFICATE",
    "CertificateKeys",
    "described",
    "from_file",
    "is_cheap",
    "key_of",
    "self_signed",
]

_UNREADABLE: Final = (ValueError, UnsupportedAlgorithm, x509.InvalidVersion)  # what parsing raises

MAX_CERTIFICATE: Final = 0xFFFF
"""Bytes that SecurityHeader.SenderCertSize may say."""

_STRANGERS_BITS: Final = 4096
_COMMON_EXPONENT: Final = 65537
_YEARS: Final = 8
_REMEMBERED: Final = 256


def self_signed(name: str, locality: str, key: RSAPrivateKey, now_s: int, serial: int) -> bytes:
    """The DER of an internal certificate: for `name` at a computer, valid for eight years."""
    start = datetime.datetime.fromtimestamp(now_s, datetime.UTC)
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "MSMQ"),
            x509.NameAttribute(NameOID.LOCALITY_NAME, locality[:128] or "-"),
            x509.NameAttribute(NameOID.COMMON_NAME, name[:64] or "-"),
        ]
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(start - datetime.timedelta(days=1))
        .not_valid_after(start + datetime.timedelta(days=365 * _YEARS))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.DER)


def from_file(data: bytes) -> bytes:
    """The DER of a certificate in PEM or DER. Raises SecurityDataError."""
    try:
        if data.lstrip().startswith(b"-----"):
            found = x509.load_pem_x509_certificate(data)
        else:
            found = x509.load_der_x509_certificate(data)
    except _UNREADABLE:
        raise SecurityDataError("not an X.509 certificate in PEM or DER") from None
    certificate = found.public_bytes(serialization.Encoding.DER)
    if len(certificate) > MAX_CERTIFICATE:
        raise SecurityDataError(f"a certificate of more than {MAX_CERTIFICATE} bytes")
    key_of(certificate)
    return certificate


def key_of(certificate: bytes) -> RSAPublicKey:
    """The key of a certificate in DER. Raises SecurityDataError: it is none, or has another kind of key.

    Its dates and issuer are ignored: the sender is the user for which the directory has this certificate.
    """
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except _UNREADABLE:
        raise SecurityDataError("not a certificate that can be read") from None
    if not isinstance(key, RSAPublicKey):
        raise SecurityDataError("a certificate with a key that is not RSA")
    if key.key_size > MAX_RSA_BITS:
        raise SecurityDataError(f"a certificate with a key of more than {MAX_RSA_BITS} bits")
    if key.public_numbers().e.bit_length() > MAX_EXPONENT_BITS:
        raise SecurityDataError(f"a certificate with an exponent of more than {MAX_EXPONENT_BITS} bits")
    return key


def is_cheap(key: RSAPublicKey) -> bool:
    """Whether a key costs no more than those in use: 4096 bits, the exponent 65537. A key that is registered
    may have more (`key_of`), one that a stranger brings may not.
    """
    return key.key_size <= _STRANGERS_BITS and key.public_numbers().e == _COMMON_EXPONENT


def described(certificate: bytes) -> dict[str, Any]:
    """Describes a certificate in DER for people; empty if it cannot be read."""
    try:
        found = x509.load_der_x509_certificate(certificate)
        return {
            "subject": found.subject.rfc4514_string(),
            "issuer": found.issuer.rfc4514_string(),
            "not_before": found.not_valid_before_utc.isoformat(),
            "not_after": found.not_valid_after_utc.isoformat(),
        }
    except _UNREADABLE:
        return {}


class CertificateKeys:
    """The keys of certificates that came lately: senders use the same one again and again."""

    def __init__(self) -> None:
        self._known: dict[bytes, RSAPublicKey] = {}

    def __call__(self, certificate: bytes) -> RSAPublicKey:
        """Raises SecurityDataError."""
        key = self._known.get(certificate)
        if key is None:
            key = key_of(certificate)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[certificate] = key
        return key
