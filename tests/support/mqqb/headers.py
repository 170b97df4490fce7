"""Headers of packets that tests check."""

from __future__ import annotations

import struct


def header(
    number: int, previous: int | None = None, ordinal: int = 1, stamp: int = 7, flags: int = 0
) -> bytes:
    """A TransactionHeader."""
    return struct.pack("<IIIII", flags, ordinal, stamp, number, number - 1 if previous is None else previous)
