"""MD4 (RFC 1320), which hashlib no longer offers: the NT hash of a password is MD4 of its UTF-16 form."""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["md4", "nt_hash"]

_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
# Per round: the constant, the order of the words, the rotations.
_ROUNDS: Final = (
    (0x00000000, range(16), (3, 7, 11, 19)),
    (0x5A827999, (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), (3, 5, 9, 13)),
    (0x6ED9EBA1, (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15), (3, 9, 11, 15)),
)


def _mix(number: int, b: int, c: int, d: int) -> int:
    if number == 0:
        return (b & c) | (~b & d)
    return (b & c) | (b & d) | (c & d) if number == 1 else b ^ c ^ d


def md4(data: bytes) -> bytes:
    """The 16-byte digest of `data`."""
    data += b"\x80" + bytes(-(len(data) + 9) % 64) + struct.pack("<Q", len(data) * 8)
    state = _START
    for start in range(0, len(data), 64):
        words = struct.unpack_from("<16I", data, start)
        a, b, c, d = state
        for number, (constant, order, rotations) in enumerate(_ROUNDS):
            for step, index in enumerate(order):
                total = (a + _mix(number, b, c, d) + words[index] + constant) & 0xFFFFFFFF
                turn = rotations[step % 4]
                a, b, c, d = d, ((total << turn) | (total >> (32 - turn))) & 0xFFFFFFFF, b, c
        state = tuple((x + y) & 0xFFFFFFFF for x, y in zip(state, (a, b, c, d), strict=True))  # type: ignore[assignment]
    return struct.pack("<4I", *state)


def nt_hash(password: str) -> bytes:
    """What NTLM proves knowledge of (MS-NLMP 3.3.1)."""
    return md4(password.encode("utf-16-le", "surrogatepass"))
