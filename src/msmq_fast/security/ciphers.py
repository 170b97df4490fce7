"""Encryption of message bodies (MS-MQMQ 2.2.19.3). There is one cipher object for each session key, for any
number of bodies.
"""

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
    """Encrypts and decrypts bodies with one session key.

    AES and RC2 run in CBC mode with a zero initialisation vector and PKCS #5 padding.
    """

    def encrypt(self, body: bytes) -> bytes:
        """Return the encrypted body, which is up to 16 bytes longer."""

    def decrypt(self, body: bytes) -> bytes:
        """Return the decrypted body. Raises ValueError if its size or padding is wrong."""


class _Aes:
    """AES by OpenSSL, with one context for each direction, which is reused for all bodies.

    Creating a context takes four times as long as encrypting a small body. A reused context XORs the first
    block of a message with the last block of cipher text of the previous message, in place of the
    initialisation vector. XORing the first block with the same block once more has the effect of the zero
    vector with which each message must begin.
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
            raise ValueError("the size of the encrypted body is not a multiple of the block size")
        if self._decryptor is None:
            self._decryptor, self._received = self._cipher.decryptor(), 0
        clear = self._decryptor.update(body)
        first = int.from_bytes(clear[:_BLOCK]) ^ self._received
        self._received = int.from_bytes(body[-_BLOCK:])
        unpadder = _PADDING.unpadder()  # in constant time, so that the duration does not reveal the error
        return unpadder.update(first.to_bytes(_BLOCK) + clear[_BLOCK:]) + unpadder.finalize()


class _Rc4:
    """RC4. As in CryptoAPI, the key stream restarts with each body."""

    def __init__(self, key: bytes) -> None:
        self._cipher = RC4(key)

    def encrypt(self, body: bytes) -> bytes:
        return self._cipher.apply(body)

    decrypt = encrypt


def body_cipher(algorithm: EncryptionAlgorithm, key: bytes, effective_bits: int) -> BodyCipher:
    """Return a cipher for one session key. `effective_bits` is the effective key length of RC2. Raises
    ValueError if the key has a wrong size.
    """
    match algorithm:
        case EncryptionAlgorithm.RC2:
            return RC2(key, effective_bits)
        case EncryptionAlgorithm.RC4:
            return _Rc4(key)
        case _:
            if 8 * len(key) != _AES_BITS[algorithm]:
                raise ValueError("the length of the AES key does not match the algorithm")
            return _Aes(key)


_AES_BITS: Final = {
    EncryptionAlgorithm.AES_128: 128,
    EncryptionAlgorithm.AES_192: 192,
    EncryptionAlgorithm.AES_256: 256,
}
