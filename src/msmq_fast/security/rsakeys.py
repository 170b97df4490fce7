"""RSA key pairs of every size that a provider uses, and their stored form."""

from __future__ import annotations

import math
import secrets
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from msmq_fast.security.blobs import MAX_RSA_BITS, RsaPublicKey
from msmq_fast.security.errors import SecurityDataError

__all__ = ["from_der", "from_pem", "generate", "public_part", "to_der"]

_EXPONENT: Final = 65537
_LIBRARY_MINIMUM: Final = 1024  # OpenSSL makes no shorter keys, but uses them
_SHORTEST: Final = 512
_ROUNDS: Final = 40  # of Miller and Rabin, for a chance below 2**-80
_SMALL: Final = math.prod(n for n in range(3, 1000, 2) if all(n % d for d in range(3, math.isqrt(n) + 1, 2)))


def generate(bits: int) -> RSAPrivateKey:
    """Return a new key pair. A key of 512 bits, the size of the base provider, gives no protection today.
    Raises ValueError if the size is not supported.
    """
    if bits >= _LIBRARY_MINIMUM:
        return rsa.generate_private_key(_EXPONENT, bits)
    if bits != _SHORTEST:
        raise ValueError(f"RSA keys of {bits} bits are not supported")
    p = _prime(bits // 2)
    q = _prime(bits // 2)
    while q == p:
        q = _prime(bits // 2)
    d = pow(_EXPONENT, -1, math.lcm(p - 1, q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p,
        q,
        d,
        rsa.rsa_crt_dmp1(d, p),
        rsa.rsa_crt_dmq1(d, q),
        rsa.rsa_crt_iqmp(p, q),
        rsa.RSAPublicNumbers(_EXPONENT, p * q),
    )
    return numbers.private_key()


def _prime(bits: int) -> int:
    """Return a prime whose two highest bits are set, so that a product of two primes has the full length."""
    while True:
        number = secrets.randbits(bits) | 3 << (bits - 2) | 1
        if math.gcd(number, _SMALL) == 1 and (number - 1) % _EXPONENT and _probably_prime(number):
            return number


def _probably_prime(number: int) -> bool:
    odd, twos = number - 1, 0
    while not odd & 1:
        odd, twos = odd >> 1, twos + 1
    for _ in range(_ROUNDS):
        x = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if x in (1, number - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % number
            if x == number - 1:
                break
        else:
            return False
    return True


def public_part(key: RSAPrivateKey) -> RsaPublicKey:
    """Return the public half in the form that blobs use."""
    numbers = key.public_key().public_numbers()
    return RsaPublicKey(numbers.n, numbers.e)


def to_der(key: RSAPrivateKey) -> bytes:
    """Return the key in PKCS #8, not encrypted: store it in a vault only."""
    return key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def from_der(data: bytes) -> RSAPrivateKey:
    """Reads the output of `to_der`. Raises SecurityDataError."""
    try:
        return _rsa(serialization.load_der_private_key(data, None))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SecurityDataError("not an RSA private key") from None


def from_pem(data: bytes) -> RSAPrivateKey:
    """Reads a private key from PEM or DER. Raises SecurityDataError."""
    try:
        return _rsa(serialization.load_pem_private_key(data, None))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SecurityDataError(
            "not a private key in PEM or DER, or the key is protected by a password"
        ) from None


def _rsa(key: object) -> RSAPrivateKey:
    if not isinstance(key, RSAPrivateKey):
        raise SecurityDataError("not an RSA private key")
    if key.key_size > MAX_RSA_BITS:
        raise SecurityDataError(f"the private key has more than {MAX_RSA_BITS} bits")
    return key
