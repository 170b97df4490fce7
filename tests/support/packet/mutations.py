"""Hypothesis strategies for packets that are valid, nearly valid, or not packets at all."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from tests.support.packet.samples import OPTIONAL, build, seeds

SEEDS = [packet for _, packet in seeds()]
_EDGES = [0, 1, 2, 3, 4, 0x7F, 0xFA, 0xFB, 0xFF, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF]
_EDGES_32 = [
    *_EDGES,
    0x7FFFFFFF,
    0x80000000,
    0x80000004,
    0xFFFFFFF0,
    0xFFFFFFFE,
    0xFFFFFFFF,
    0x400000,
    0x400001,
]


@st.composite
def valid_packets(draw: st.DrawFn) -> bytes:
    """Any combination of the optional headers, with bodies, labels and extensions of any small size."""
    headers = {}
    for variants in OPTIONAL.values():
        headers |= draw(st.sampled_from([{}, *variants]))
    packet = build(**headers)
    packet.properties.body = draw(st.binary(max_size=9))
    packet.properties.extension = draw(st.binary(max_size=5))
    packet.properties.label = draw(st.text(max_size=6, alphabet=st.characters(exclude_characters="\0")))
    return packet.encode(count_session=draw(st.booleans()))


@st.composite
def mutated_packets(draw: st.DrawFn) -> bytes:
    """A seed with a few bytes, words or flags changed, cut or extended, PacketSize sometimes made to fit."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 4))
        form, values = draw(st.sampled_from([("<B", [*range(256)]), ("<H", _EDGES), ("<I", _EDGES_32)]))
        struct.pack_into(form, data, at, draw(st.sampled_from(values)))
    if draw(st.booleans()):
        (flags,) = struct.unpack_from("<I", data, 60)
        struct.pack_into("<I", data, 60, flags ^ 1 << draw(st.integers(0, 31)))
    cut = draw(st.sampled_from([0, 0, 0, 1, 2, 4, 16, 20]))
    if cut and draw(st.booleans()):
        del data[-cut:]
    else:
        data += bytes(cut)
    if draw(st.booleans()):
        struct.pack_into("<I", data, 8, len(data))
        data[0], data[4:8] = 0x10, b"LIOR"
    return bytes(data)


def random_packets() -> st.SearchStrategy[bytes]:
    """A sound BaseHeader with noise behind it, or noise alone."""

    def packet(content: bytes, flags: int) -> bytes:
        return struct.pack("<BBH4sII", 0x10, 0, flags, b"LIOR", 16 + len(content), 0) + content

    noise = st.binary(min_size=4, max_size=300)
    return st.one_of(st.binary(max_size=64), st.builds(packet, noise, st.integers(0, 0xFFFF)))
