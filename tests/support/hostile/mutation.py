"""Mutations of bytes for the fuzzers."""

from __future__ import annotations

import random


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A few random changes: bytes, cuts, repetitions, extreme numbers."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(changed) + 1)
        action = rng.randrange(5)
        if action == 0 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif action == 1:
            del changed[at:]
        elif action == 2:
            changed[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
        elif action == 3:
            size = rng.choice((1, 2, 4, 8))
            changed[at : at + size] = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * size
        else:
            changed[at : at + 8] = changed[at : at + 8] * 2
    return bytes(changed)
