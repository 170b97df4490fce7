"""The hashes that are signed: digests, and the DigestInfo of PKCS #1 v1.5 that contains a digest (RFC 8017
9.2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

from msmq_fast._native.crypto import md2, md4
from msmq_fast.protocol.properties import HashAlgorithm

__all__ = ["digest", "digest_info"]


def _joined(one: Callable[[bytes], bytes]) -> Callable[[Iterable[bytes]], bytes]:
    return lambda parts: one(b"".join(parts))


def _library(name: str) -> Callable[[Iterable[bytes]], bytes]:
    def run(parts: Iterable[bytes]) -> bytes:
        state = hashlib.new(name, usedforsecurity=False)
        for part in parts:
            state.update(part)
        return state.digest()

    return run


_DIGEST: Final[dict[HashAlgorithm, Callable[[Iterable[bytes]], bytes]]] = {
    HashAlgorithm.MD2: _joined(md2),
    HashAlgorithm.MD4: _joined(md4),
    HashAlgorithm.MD5: _library("md5"),
    HashAlgorithm.SHA1: _library("sha1"),
    HashAlgorithm.SHA256: _library("sha256"),
    HashAlgorithm.SHA512: _library("sha512"),
}
# DER of DigestInfo up to the digest (RFC 8017 9.2, note 1; MD4 has the arc of MD2 and MD5).
_INFO: Final[dict[HashAlgorithm, bytes]] = {
    algorithm: bytes.fromhex(head)
    for algorithm, head in {
        HashAlgorithm.MD2: "3020300c06082a864886f70d020205000410",
        HashAlgorithm.MD4: "3020300c06082a864886f70d020405000410",
        HashAlgorithm.MD5: "3020300c06082a864886f70d020505000410",
        HashAlgorithm.SHA1: "3021300906052b0e03021a05000414",
        HashAlgorithm.SHA256: "3031300d060960864801650304020105000420",
        HashAlgorithm.SHA512: "3051300d060960864801650304020305000440",
    }.items()
}


def digest(algorithm: HashAlgorithm, parts: Iterable[bytes]) -> bytes:
    """Return the digest of the concatenation of `parts`."""
    return _DIGEST[algorithm](parts)


def digest_info(algorithm: HashAlgorithm, value: bytes) -> bytes:
    """Return the DigestInfo of a digest, which RSA signs after padding."""
    return _INFO[algorithm] + value
