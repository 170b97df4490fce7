"""XML signatures of SRMP (MC-MQSRM 2.2.7, 3.1.7.2.4): the text that is signed, and the signature value.

The signature covers the SignedInfo element: one reference for the body and one for the extension, each with
the digest of its bytes. The octets of the element as sent are hashed by SHA-1, without canonicalisation, and
signed with the key of the sender's certificate (A-64), although the algorithm is always given as "#dsa". The
value is an RSA signature with PKCS #1 v1.5, or the two numbers of a DSA signature one after the other.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Collection, Iterable
from typing import Final
from uuid import UUID

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.dsa import DSAPrivateKey, DSAPublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import (
    NoDigestInfo,
    Prehashed,
    decode_dss_signature,
    encode_dss_signature,
)

from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.security.certificates import is_cheap, key_of
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.hashing import digest, digest_info

__all__ = [
    "NAMESPACE",
    "XML_SIGNATURE",
    "PublicKey",
    "certificate_key",
    "is_valid",
    "sign_value",
    "signed_info",
]

NAMESPACE: Final = "http://www.w3.org/2000/02/xmldsig#"

XML_SIGNATURE: Final = 9
"""AuthenticationLevel of a message with such a signature (MQMSG_AUTHENTICATED_SIGNATURE_XMLDSIG)."""

PublicKey = RSAPublicKey | DSAPublicKey

_PADDING: Final = padding.PKCS1v15()
_RAW: Final = NoDigestInfo()
_MAX_DSA_BITS: Final = 4096
_DSA_HASHES: Final = {
    HashAlgorithm.SHA1: hashes.SHA1(),  # noqa: S303
    HashAlgorithm.SHA256: hashes.SHA256(),
    HashAlgorithm.SHA512: hashes.SHA512(),
}


def signed_info(manager: UUID, body: bytes, extension: bytes) -> bytes:
    """Return the SignedInfo element of a message from the queue manager `manager`, in the literal strings of
    3.1.7.2.4. It has one Reference for each of `body` and `extension` that is not empty (SR-097), with SHA-1
    digests (SR-107).
    """
    references = "".join(
        f'<Reference URI="cid:{kind}@{manager}"><DigestMethod Algorithm="{NAMESPACE}sha1"></DigestMethod>'
        f"<DigestValue>{b64encode(digest(HashAlgorithm.SHA1, (content,))).decode()}</DigestValue></Reference>"
        for kind, content in (("body", body), ("extension", extension))
        if content
    )
    method = f'<SignatureMethod Algorithm="{NAMESPACE}dsa"></SignatureMethod>'
    return f"<SignedInfo>{method}{references}</SignedInfo>".encode()


def sign_value(key: RSAPrivateKey | DSAPrivateKey, octets: bytes) -> bytes:
    """Return the SignatureValue for the octets of a SignedInfo element. Raises ValueError if the key is too
    short.
    """
    value = digest(HashAlgorithm.SHA1, (octets,))
    if isinstance(key, RSAPrivateKey):
        return key.sign(digest_info(HashAlgorithm.SHA1, value), _PADDING, _RAW)
    r, s = decode_dss_signature(key.sign(value, Prehashed(_DSA_HASHES[HashAlgorithm.SHA1])))
    size = _half(key.public_key())
    return r.to_bytes(size) + s.to_bytes(size)


def is_valid(
    key: PublicKey,
    spellings: Iterable[bytes],
    value: bytes,
    accepted: Collection[HashAlgorithm] = (HashAlgorithm.SHA1,),
) -> bool:
    """Whether `value` is a signature that the private half of `key` has made over one of `spellings`.

    `spellings` are the possible forms of the signed octets, `accepted` the hash algorithms that are accepted.
    An RSA signature may also be byte-reversed, as in CryptoAPI.

    RSA takes at most two operations, however many spellings there are. The spellings after the first are
    computed only if `value` is a signature by `key`, but not over the first one.
    """
    if isinstance(key, DSAPublicKey):
        return any(_is_valid_dsa(key, octets, value, accepted) for octets in spellings)
    signed = _recovered(key, value)
    return signed is not None and any(
        hmac.compare_digest(signed, digest_info(algorithm, digest(algorithm, (octets,))))
        for octets in spellings
        for algorithm in accepted
    )


def _recovered(key: RSAPublicKey, value: bytes) -> bytes | None:
    """Recovers the signed data from an RSA signature; None if `value` is not a signature by this key."""
    if len(value) * 8 != (key.key_size + 7) & ~7:
        return None
    for order in (value, value[::-1]):
        try:
            return key.recover_data_from_signature(order, _PADDING, None)
        except (InvalidSignature, ValueError):
            continue
    return None


def _is_valid_dsa(
    key: DSAPublicKey, octets: bytes, value: bytes, accepted: Collection[HashAlgorithm]
) -> bool:
    size = _half(key)
    if len(value) != 2 * size:
        return False
    signature = encode_dss_signature(int.from_bytes(value[:size]), int.from_bytes(value[size:]))
    for algorithm in accepted:
        known = _DSA_HASHES.get(algorithm)
        if known is None:
            continue
        try:
            key.verify(signature, digest(algorithm, (octets,)), Prehashed(known))
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def _half(key: DSAPublicKey) -> int:
    """Return the size in bytes of each of the two numbers of a DSA signature."""
    return (key.parameters().parameter_numbers().q.bit_length() + 7) // 8


def certificate_key(certificate: bytes, *, registered: bool = True) -> PublicKey:
    """Return the RSA or DSA key of a certificate in DER. Only a `registered` certificate may have a key that
    is expensive to use. Raises SecurityDataError.
    """
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise SecurityDataError("not a readable X.509 certificate") from None
    if not isinstance(key, DSAPublicKey):
        found = key_of(certificate)
        if not registered and not is_cheap(found):
            raise SecurityDataError("the certificate is not registered and its key is too large")
        return found
    if key.key_size > _MAX_DSA_BITS:
        raise SecurityDataError(f"the DSA key of the certificate has more than {_MAX_DSA_BITS} bits")
    return key
