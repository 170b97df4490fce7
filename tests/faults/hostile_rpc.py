"""What hostile RPC clients may send: sound binds and rubbish behind them, rubbish at once, lies, halves."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from tests.support.rpc import wire

QM2QM: wire.Syntax = ("1088a980-eae5-11d0-8d9b-00a02453c337", 1, 0)
QMCOMM: wire.Syntax = ("fdb3a030-065f-11d1-bb9b-00a024ea5525", 1, 0)
QMCOMM2: wire.Syntax = ("76d12b80-3467-11d3-91ff-0090272f9ea3", 1, 0)
REMOTE_READ: wire.Syntax = ("1a9134dd-7b39-45ba-ad88-44d01ca47f28", 1, 0)
MGMT: wire.Syntax = ("afa8bd80-7d8a-11c9-bef4-08002b102989", 1, 0)
EPM: wire.Syntax = ("e1af8308-5d1f-11c9-91a4-08002b14a0fa", 3, 0)
INTERFACES = {QM2QM: 12, QMCOMM: 36, QMCOMM2: 12, REMOTE_READ: 16, MGMT: 6, EPM: 9}
"""With one operation more than there are."""

_NUMBERS = (0, 1, 2, 3, 0x10, 0x20000, 0x420000, 0x420001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
NEGOTIATE = b"NTLMSSP\0" + struct.pack("<II", 1, 0xE20882B7) + bytes(24)


def stub(chance: random.Random) -> bytes:
    """[in] parameters that may pass for some: counts that are far too large, pointers to nothing, text."""
    parts = []
    for _ in range(chance.randrange(20)):
        kind = chance.randrange(6)
        if kind < 3:
            parts.append(struct.pack("<I", chance.choice(_NUMBERS)))
        elif kind == 3:
            parts.append(chance.randbytes(chance.randrange(24)))
        elif kind == 4:
            count = chance.randrange(8)
            parts.append(struct.pack("<III", count, 0, count) + chance.randbytes(2 * count))
        else:
            parts.append(struct.pack("<Q", chance.choice(_NUMBERS)))
    return b"".join(parts)


def _calls(chance: random.Random, interface: wire.Syntax) -> Iterator[bytes]:
    """Calls of one interface, on a connection that is bound to it."""
    transfer = chance.choice([wire.NDR, wire.NDR64])
    yield wire.bind([(0, interface, [transfer])], flags=wire.WHOLE | chance.choice([0, wire.MPX]))
    for call_id in range(1, chance.randrange(2, 12)):
        opnum = chance.randrange(INTERFACES[interface])
        if chance.randrange(8):
            yield wire.request(call_id, opnum, stub(chance), big=chance.randrange(10) == 0)
        else:
            yield b"".join(wire.fragmented(call_id, opnum, stub(chance) or b"x", chance.randrange(1, 50)))
        if not chance.randrange(10):
            yield chance.choice([wire.cancel, wire.orphaned])(call_id)


def _legs(chance: random.Random, interface: wire.Syntax) -> Iterator[bytes]:
    """Security contexts of which nothing comes."""
    kind, level = chance.choice([9, 10, 16, 99]), chance.randrange(8)
    token = NEGOTIATE if chance.randrange(2) else chance.randbytes(chance.randrange(1, 200))
    contexts = [(0, interface, [wire.NDR])]
    yield wire.bind(contexts, auth=wire.Auth(kind, level, 1, token))
    for _ in range(chance.randrange(3)):
        rubbish = b"NTLMSSP\0" + struct.pack("<I", 3) + chance.randbytes(chance.randrange(200))
        auth = wire.Auth(kind, level, 1, rubbish)
        yield wire.auth3(auth) if chance.randrange(2) else wire.alter(contexts, auth=auth)
    yield wire.request(1, 0, stub(chance), auth=wire.Auth(kind, level, 1, bytes(16)))


def _lies(chance: random.Random, interface: wire.Syntax) -> Iterator[bytes]:
    """Lengths that are wrong, PDUs that are out of place, requests without end."""
    yield wire.bind([(i, interface, [wire.NDR]) for i in range(chance.randrange(1, 40))])
    kind = chance.randrange(5)
    if kind == 0:
        yield wire.pdu(chance.randrange(256), 1, chance.randbytes(40), length=chance.randrange(0x10000))
    elif kind == 1:
        yield wire.request(1, 0, bytes(64), auth_length=chance.randrange(0x10000))
    elif kind == 2:
        yield wire.request(1, 0, bytes(5000), flags=wire.FIRST, alloc_hint=0x400000)
        for _ in range(chance.randrange(60)):
            yield wire.request(1, 0, bytes(5000), flags=0)
    elif kind == 3:
        yield wire.pdu(wire.ALTER, 1, chance.randbytes(100), length=0xFFFF)
    else:
        for identifier in range(200):
            yield wire.alter([(identifier, interface, [wire.NDR])])


def _rubbish(chance: random.Random, interface: wire.Syntax) -> Iterator[bytes]:
    """A sound conversation with bytes changed."""
    stream = bytearray(b"".join(_calls(chance, interface)))
    for _ in range(chance.randrange(1, 8)):
        stream[chance.randrange(len(stream))] = chance.randrange(256)
    yield bytes(stream)


def conversations(count: int, seed: int) -> Iterator[bytes]:
    """So many streams, one for each connection; a third of them breaks off somewhere."""
    chance = random.Random(seed)
    for _ in range(count):
        interface = chance.choice(list(INTERFACES))
        make = chance.choice([_calls, _calls, _legs, _lies, _rubbish])
        stream = b"".join(make(chance, interface))
        yield stream if chance.randrange(3) else stream[: chance.randrange(1, len(stream))]
