"""Stubs that are damaged at random."""

from __future__ import annotations

from random import Random


def mutate(stub: bytes, random: Random) -> bytes:
    """A stub with some bytes, or a count, changed, cut out, put in or repeated."""
    data = bytearray(stub)
    for _ in range(random.randint(1, 4)):
        position = random.randint(0, len(data))
        match random.randrange(6):
            case 0:
                data[position : position + 1] = random.randbytes(1)
            case 1:
                del data[position : position + random.randint(1, 8)]
            case 2:
                data[position:position] = random.randbytes(random.randint(1, 8))
            case 3:
                start = position & ~3
                word = random.choice((0, 1, 2, 3, 0x7FFFFFFF, 0xFFFFFFFF, random.getrandbits(8)))
                data[start : start + 4] = word.to_bytes(4, random.choice(("little", "big")))
            case 4:
                del data[position:]
            case 5:
                data[position:position] = data[: random.randint(0, len(data))]
    return bytes(data)
