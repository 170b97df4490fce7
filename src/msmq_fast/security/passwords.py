"""Passwords at rest: scrypt with a salt, as `scrypt$n$r$p$salt$key` (base64)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

__all__ = ["SALT_SIZE", "hash_password", "verify_password"]

SALT_SIZE: Final = 16
_N, _R, _P, _SIZE = 1 << 14, 8, 1, 32
_MAX_MEMORY: Final = 64 << 20  # bytes that a stored line may make us use


def _derive(password: str, salt: bytes, n: int, r: int, p: int, size: int) -> bytes:
    secret = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=n, r=r, p=p, maxmem=_MAX_MEMORY, dklen=size)


def hash_password(password: str, salt: bytes) -> str:
    """Return the line to store. `salt` is SALT_SIZE random bytes."""
    key = _derive(password, salt, _N, _R, _P, _SIZE)
    return f"scrypt${_N}${_R}${_P}${base64.b64encode(salt).decode()}${base64.b64encode(key).decode()}"


def verify_password(password: str, line: str) -> bool:
    """Whether `password` matches a stored line. False if the line is malformed."""
    try:
        kind, n, r, p, salt, key = line.split("$")
        expected = base64.b64decode(key, validate=True)
        if kind != "scrypt" or not 16 <= len(expected) <= 64:
            return False
        found = _derive(
            password, base64.b64decode(salt, validate=True), int(n), int(r), int(p), len(expected)
        )
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(found, expected)
