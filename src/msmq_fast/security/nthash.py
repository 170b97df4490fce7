"""The NT hash of a password: MD4 of its UTF-16 form."""

from __future__ import annotations

from msmq_fast._native.crypto import md4

__all__ = ["nt_hash"]


def nt_hash(password: str) -> bytes:
    """Return the NT hash of a password. An NTLM client proves that it knows this hash (MS-NLMP 3.3.1)."""
    return md4(password.encode("utf-16-le", "surrogatepass"))
