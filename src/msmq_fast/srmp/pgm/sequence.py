"""Sequence numbers of 32 bits that wrap (RFC 3208, 3.2).

The engines use plain integers, which do not wrap; only packets hold the low 32 bits of these integers.
"""

from __future__ import annotations

MASK = 0xFFFF_FFFF
HALF = 0x8000_0000


def unwrapped(sequence: int, near: int) -> int:
    """Return the integer nearest to `near` whose low 32 bits are `sequence`: at most half the number space
    below or above `near`.
    """
    return near + ((sequence - near + HALF) & MASK) - HALF
