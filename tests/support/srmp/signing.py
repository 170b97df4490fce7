"""Signed SRMP messages: a key, its certificate, and a second implementation."""

from __future__ import annotations

import datetime
import hashlib
from base64 import b64encode
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from cryptography.x509.oid import NameOID

from msmq_fast.security.rsakeys import generate

NS = "http://www.w3.org/2000/02/xmldsig#"


@cache
def key(kind: str) -> rsa.RSAPrivateKey | dsa.DSAPrivateKey:
    name, bits, *_ = kind.split("-")
    return generate(int(bits)) if name == "rsa" else dsa.generate_private_key(int(bits))


@cache
def certificate(kind: str) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, kind)])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key(kind).public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=3650))
        .sign(key(kind), hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


def expensive(bits: int, exponent: int) -> bytes:
    """A certificate with a public key of that kind, signed by nobody in particular."""
    modulus = (1 << bits - 1) | 0xF00D << 64 | 1
    name = x509.Name([])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(rsa.RSAPublicNumbers(exponent, modulus).public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))
        .sign(key("rsa-1024"), hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


def reference(name: str, content: bytes, method: str = "sha1") -> str:
    value = b64encode(hashlib.new(method, content).digest()).decode()
    return (
        f'<Reference URI="cid:{name}"><DigestMethod Algorithm="{NS}{method}"></DigestMethod>'
        f"<DigestValue>{value}</DigestValue></Reference>"
    )
