"""Encryption of message bodies (MS-MQMQ 2.2.19.3): one object for a session key, for any number of bodies."""

from __future__ import annotations

from typing import Final, Protocol

from cryptography.hazmat.primitives.ciphers import Cipher as _Cipher
from cryptography.hazmat.primitives.ciphers import CipherContext, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from msmq_fast._native.crypto import RC2, RC4
from msmq_fast.protocol.properties import EncryptionAlgorithm

__all__ = ["BodyCipher", "body_cipher"]

_BLOCK: Final = 16
_ZEROS: Final = bytes(_BLOCK)
_PADDING: Final = PKCS7(8 * _BLOCK)


class BodyCipher(Protocol):
    """AES and RC2 run in CBC mode with a zero initialisation vector and PKCS #5 padding."""

    def encrypt(self, body: bytes) -> bytes:
        """The encrypted body, up to 16 bytes longer."""

    def decrypt(self, body: bytes) -> bytes:
        """The body. Raises ValueError for a wrong size or padding."""


class _Aes:
    """AES by OpenSSL: one context for each direction, which lives as long as the key.

    To make a context takes four times as long as to encrypt a small body. One that goes on from the last
    message XORs its last block of cipher text where the initialisation vector belongs; XORing the same block
    once more leaves the zero vector that each message begins with.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = _Cipher(algorithms.AES(key), modes.CBC(_ZEROS))
        self._encryptor: CipherContext | None = None
        self._decryptor: CipherContext | None = None
        self._sent = self._received = 0  # the last block of cipher text that went through

    def encrypt(self, body: bytes) -> bytes:
        if self._encryptor is None:
            self._encryptor, self._sent = self._cipher.encryptor(), 0
        pad = _BLOCK - len(body) % _BLOCK
        padded = body + bytes((pad,)) * pad
        first = int.from_bytes(padded[:_BLOCK]) ^ self._sent
        encrypted = self._encryptor.update(first.to_bytes(_BLOCK) + padded[_BLOCK:])
        self._sent = int.from_bytes(encrypted[-_BLOCK:])
        return encrypted

    def decrypt(self, body: bytes) -> bytes:
        if not body or len(body) % _BLOCK:
            raise ValueError("not a whole number of blocks")
        if self._decryptor is None:
            self._decryptor, self._received = self._cipher.decryptor(), 0
        clear = self._decryptor.update(body)
        first = int.from_bytes(clear[:_BLOCK]) ^ self._received
        self._received = int.from_bytes(body[-_BLOCK:])
        unpadder = _PADDING.unpadder()  # in constant time: how long it takes must not tell what was wrong
        return unpadder.update(first.to_bytes(_BLOCK) + clear[_BLOCK:]) + unpadder.finalize()


class _Rc4:
    """RC4, whose key stream starts anew with each body, as it does in CryptoAPI."""

    def __init__(self, key: bytes) -> None:
        self._cipher = RC4(key)

    def encrypt(self, body: bytes) -> bytes:
        return self._cipher.apply(body)

    decrypt = encrypt


def body_cipher(algorithm: EncryptionAlgorithm, key: bytes, effective_bits: int) -> BodyCipher:
    """A cipher for one session key; `effective_bits` are those of RC2. Raises ValueError for a wrong key."""
    match algorithm:
        case EncryptionAlgorithm.RC2:
            return RC2(key, effective_bits)
        case EncryptionAlgorithm.RC4:
            return _Rc4(key)
        case _:
            if 8 * len(key) != _AES_BITS[algorithm]:
                raise ValueError("an AES key of another length than the algorithm has")
            return _Aes(key)


_AES_BITS: Final = {
    EncryptionAlgorithm.AES_128: 128,
    EncryptionAlgorithm.AES_192: 192,
    EncryptionAlgorithm.AES_256: 256,
}
