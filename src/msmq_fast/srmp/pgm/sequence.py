"""Sequence numbers of 32 bits that wrap (RFC 3208, 3.2).

Engines count in plain integers that do not wrap; only packets carry 32 bits of them.
"""

from __future__ import annotations

MASK = 0xFFFF_FFFF
HALF = 0x8000_0000


def unwrapped(sequence: int, near: int) -> int:
    """Return the integer nearest to `near` whose low 32 bits are `sequence` (half the number space to either
    side)."""
    return near + ((sequence - near + HALF) & MASK) - HALF
