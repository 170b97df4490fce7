"""Stored secrets, sealed with AES-256-GCM under a key that is kept outside the store (KV-13)."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from msmq_fast.security.errors import SecurityDataError

__all__ = ["KEY_BYTES", "Vault", "key_of_file", "key_of_text"]

KEY_BYTES: Final = 32
_VERSION: Final = b"\x01"
_NONCE: Final = 12


class Vault:
    """Seals and opens secrets. The name of a secret is authenticated together with the secret, so that two
    stored secrets cannot be swapped.
    """

    def __init__(self, key: bytes, random_bytes: Callable[[int], bytes]) -> None:
        if len(key) != KEY_BYTES:
            raise SecurityDataError(f"the key of a vault must have {KEY_BYTES} bytes")
        self._cipher = AESGCM(key)
        self._random = random_bytes

    def seal(self, name: bytes, secret: bytes) -> bytes:
        """Returns the sealed form of a secret, for the store."""
        nonce = self._random(_NONCE)
        return _VERSION + nonce + self._cipher.encrypt(nonce, secret, name)

    def open(self, name: bytes, sealed: bytes) -> bytes:
        """Returns the secret. Raises SecurityDataError if the key or name differs, or the data is damaged."""
        if sealed[:1] != _VERSION:
            raise SecurityDataError("the sealed secret has an unknown version")
        nonce = sealed[1 : 1 + _NONCE]
        try:
            return self._cipher.decrypt(nonce, sealed[1 + _NONCE :], name)
        except (InvalidTag, ValueError):
            raise SecurityDataError(
                "cannot open the secret: its key or name is another one, or it is damaged"
            ) from None


def key_of_text(text: str) -> bytes:
    """Returns the key of a vault from text: 64 hexadecimal digits, or base64. Raises SecurityDataError if the
    text is neither.
    """
    text = text.strip()
    with contextlib.suppress(ValueError):
        if len(text) == 2 * KEY_BYTES:
            return bytes.fromhex(text)
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SecurityDataError(f"the key of a vault must be {KEY_BYTES} bytes, in hexadecimal or base64")
    return key


def key_of_file(path: Path, random_bytes: Callable[[int], bytes]) -> bytes:
    """Returns the key in a file. If there is no file, creates it with a new key, mode 0600.

    Raises SecurityDataError if the content is not a key or other users may read the file, or OSError.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(1024)
    except FileNotFoundError:
        return _new(path, random_bytes(KEY_BYTES))
    if mode & 0o077:
        raise SecurityDataError(f"{path} can be read by other users; run: chmod 600 {path}")
    try:
        return key_of_text(content.decode("ascii"))
    except (SecurityDataError, UnicodeDecodeError):
        raise SecurityDataError(
            f"{path}: expected a key of {KEY_BYTES} bytes, in hexadecimal or base64"
        ) from None


def _new(path: Path, key: bytes) -> bytes:
    """Writes a new key file atomically: after a crash the file is either complete or missing."""
    partial = path.with_name(f"{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.hex().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return key
