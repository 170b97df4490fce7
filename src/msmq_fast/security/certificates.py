"""X.509 certificates of users: internal ones, which are self-signed by this module, and external ones."""

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

_UNREADABLE: Final = (ValueError, UnsupportedAlgorithm, x509.InvalidVersion)  # exceptions of parsing

MAX_CERTIFICATE: Final = 0xFFFF
"""Maximum size of a certificate in bytes: the largest value of SecurityHeader.SenderCertSize."""

_STRANGERS_BITS: Final = 4096
_COMMON_EXPONENT: Final = 65537
_YEARS: Final = 8
_REMEMBERED: Final = 256


def self_signed(name: str, locality: str, key: RSAPrivateKey, now_s: int, serial: int) -> bytes:
    """Return the DER of an internal certificate for `name` at the computer `locality`, valid for eight
    years.
    """
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
    """Return the DER of a certificate in PEM or DER. Raises SecurityDataError."""
    try:
        if data.lstrip().startswith(b"-----"):
            found = x509.load_pem_x509_certificate(data)
        else:
            found = x509.load_der_x509_certificate(data)
    except _UNREADABLE:
        raise SecurityDataError("not an X.509 certificate in PEM or DER") from None
    certificate = found.public_bytes(serialization.Encoding.DER)
    if len(certificate) > MAX_CERTIFICATE:
        raise SecurityDataError(f"the certificate has more than {MAX_CERTIFICATE} bytes")
    key_of(certificate)
    return certificate


def key_of(certificate: bytes) -> RSAPublicKey:
    """Return the key of a certificate in DER. Raises SecurityDataError if it is not a certificate or its key
    is not RSA.

    The dates and the issuer are ignored: the sender is the user with which the directory has registered this
    certificate.
    """
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except _UNREADABLE:
        raise SecurityDataError("not a readable X.509 certificate") from None
    if not isinstance(key, RSAPublicKey):
        raise SecurityDataError("the key of the certificate is not an RSA key")
    if key.key_size > MAX_RSA_BITS:
        raise SecurityDataError(f"the key of the certificate has more than {MAX_RSA_BITS} bits")
    if key.public_numbers().e.bit_length() > MAX_EXPONENT_BITS:
        raise SecurityDataError(
            f"the exponent of the certificate's key has more than {MAX_EXPONENT_BITS} bits"
        )
    return key


def is_cheap(key: RSAPublicKey) -> bool:
    """Whether an operation with this key costs no more than with the largest usual key: 4096 bits, exponent
    65537. A registered key may cost more (`key_of`); the key of an unauthenticated peer must not.
    """
    return key.key_size <= _STRANGERS_BITS and key.public_numbers().e == _COMMON_EXPONENT


def described(certificate: bytes) -> dict[str, Any]:
    """Returns a description, for people, of a certificate in DER; {} if the certificate cannot be read."""
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
    """A cache of the keys of recent certificates: a sender uses the same certificate for all its messages."""

    def __init__(self) -> None:
        self._known: dict[bytes, RSAPublicKey] = {}

    def __call__(self, certificate: bytes) -> RSAPublicKey:
        """Return the key of a certificate in DER. Raises SecurityDataError, see `key_of`."""
        key = self._known.get(certificate)
        if key is None:
            key = key_of(certificate)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[certificate] = key
        return key
