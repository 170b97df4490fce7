"""The PGM codec: published packets byte for byte, round trips, and packets that are broken on purpose."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.srmp.pgm.model import Tsi
from msmq_fast.srmp.pgm.options import Fragment, Malformed
from msmq_fast.srmp.pgm.packets import Data, Nak, Spm, decode, encode_data, encode_nak, encode_spm
from tests.srmp.pgm.sealing import VECTORS, sealed

TSI = Tsi(bytes.fromhex("14afba74bd7a"), 0xC001)
APDU = VECTORS["odata-single"][24:]
HERE, GROUP = "192.0.2.10", "234.1.1.1"


EXPECTED = {
    "spm-before-data": Spm(TSI, 8001, 0, 1, 0, HERE),
    "odata-single": Data(TSI, 8001, 1, 1, APDU),
    "odata-frag-1": Data(TSI, 8001, 2, 1, APDU[:1000], Fragment(2, 0, 1292)),
    "odata-frag-2": Data(TSI, 8001, 3, 1, APDU[1000:], Fragment(2, 1000, 1292)),
    "nak": Nak(TSI, 8001, (2,), HERE, GROUP),
    "ncf": Nak(TSI, 8001, (2,), HERE, GROUP, confirmed=True),
    "rdata-frag-1": Data(TSI, 8001, 2, 1, APDU[:1000], Fragment(2, 0, 1292), repair=True),
    "spm-fin": Spm(TSI, 8001, 1, 1, 3, HERE, fin=True),
}


def encode(message: Spm | Data | Nak) -> bytes:
    if isinstance(message, Spm):
        return encode_spm(message)
    return encode_data(message) if isinstance(message, Data) else encode_nak(message)


@pytest.mark.rule("SR-009")
@pytest.mark.parametrize("name", EXPECTED)
def test_published_packets_are_read_and_made_byte_for_byte(name: str) -> None:
    assert decode(VECTORS[name]) == EXPECTED[name]
    assert encode(EXPECTED[name]) == VECTORS[name]
    assert set(EXPECTED) == set(VECTORS)


number = st.integers(0, 0xFFFF_FFFF)
port = st.integers(0, 0xFFFF)
tsi = st.builds(Tsi, st.binary(min_size=6, max_size=6), port)
address = st.ip_addresses(v=4).map(str)
spms = st.one_of(
    st.builds(Spm, tsi, port, number, number, number, address, st.booleans(), st.none(), st.none()),
    st.builds(
        Spm, tsi, port, number, number, number, address, st.just(False), st.integers(0, 0x7F), st.none()
    ),
)
naks = st.builds(
    Nak,
    tsi,
    port,
    st.lists(number, min_size=1, max_size=63).map(tuple),
    address,
    address,
    st.booleans(),
)


@st.composite
def datas(draw: st.DrawFn) -> Data:
    data = draw(st.binary(max_size=200))
    fragment = None
    if draw(st.booleans()):
        offset = draw(st.integers(0, 100_000))
        fragment = Fragment(draw(number), offset, offset + len(data) + draw(st.integers(0, 100_000)))
    return Data(draw(tsi), draw(port), draw(number), draw(number), data, fragment, draw(st.booleans()))


@given(st.one_of(spms, datas(), naks))
def test_round_trip(message: Spm | Data | Nak) -> None:
    packet = encode(message)
    assert decode(packet) == message
    assert packet == sealed(packet)


@given(st.one_of(spms, datas(), naks), st.data())
def test_a_changed_octet_is_noticed(message: Spm | Data | Nak, data: st.DataObject) -> None:
    packet = bytearray(encode(message))
    at = data.draw(st.integers(0, len(packet) - 1))
    packet[at] ^= data.draw(st.integers(1, 255))
    if packet[6:8] == b"\0\0" and packet[4] not in (4, 5):
        return  # no checksum, and none needed
    with pytest.raises(Malformed):
        decode(bytes(packet))


@settings(max_examples=200)
@given(st.one_of(spms, datas(), naks), st.data())
def test_mutated_packets_with_a_right_checksum_raise_nothing_else(
    message: Spm | Data | Nak, data: st.DataObject
) -> None:
    packet = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(packet)))
    packet = packet[:cut] + data.draw(st.binary(max_size=8)) if data.draw(st.booleans()) else packet
    broken = sealed(bytes(packet)) if len(packet) >= 8 else bytes(packet)
    try:
        read = decode(broken)
    except Malformed:
        return
    if isinstance(read, Data):
        assert len(read.data) == int.from_bytes(broken[14:16], "big") <= len(broken) - 24
    elif isinstance(read, Nak):
        assert 1 <= len(read.sequences) <= 63


@given(st.binary(max_size=120))
def test_octets_of_any_kind_raise_nothing_else(octets: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert decode(octets) is None or octets[6:8] == b"\0\0" or octets == sealed(octets)


SPM_HEAD = VECTORS["spm-before-data"][:5] + b"\x01" + VECTORS["spm-before-data"][6:]
DATA_HEAD = VECTORS["odata-single"][:5] + b"\x01" + VECTORS["odata-single"][6:14] + b"\0\0" + bytes(8)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "none follow"),
        ("0004", "none follow"),
        ("00030008 8e040000", "OPT_LENGTH"),
        ("01040008 8e040000", "OPT_LENGTH"),
        ("00040000 8e040000", "options of 0 octets"),
        ("00040003 8e040000", "options of 3 octets"),
        ("00040004", "options of 4 octets"),
        ("0004ffff 8e040000", "options of 65535 octets"),
        ("00040008 8e000000", "option of 0 octets"),
        ("00040008 8e010000", "option of 1 octets"),
        ("00040008 8e030000", "option of 3 octets"),
        ("00040008 8e050000", "option of 5 octets"),
        ("00040008 8eff0000", "option of 255 octets"),
        ("00040008 0e040000", "truncated"),
        ("00040006 0e04", "truncated"),
        ("0004000c 8e040000 00000000", "follow the last option"),
        ("0004000c 8e080000 00000000", "option 0x0e of 8 octets instead of 4"),
        ("0004000c 8f080000 00000000", "option 0x0f of 8 octets instead of 4"),
        ("00040008 83040000", "option 0x03 of 4 octets instead of 8"),
        ("00040010 810c0000 00000000 00000000", "option 0x01 of 12 octets instead of 16"),
        ("00040008 82040000", "NAK list of 4 octets"),
        ("0004000a 82060000 0000", "NAK list of 6 octets"),
        ("00040100 82fc0000" + "00" * 248, None),
        ("00040044" + "0e040000" * 16, "more than 16 options"),
        ("0004000c 8508 0000 00000001", None),
    ],
)
@pytest.mark.parametrize("head", [SPM_HEAD, DATA_HEAD], ids=["spm", "odata"])
def test_options_are_bounded_by_what_is_there(head: bytes, options: str, why: str | None) -> None:
    packet = sealed(head + bytes.fromhex(options))
    if why is None:
        assert decode(packet) is not None
    else:
        with pytest.raises(Malformed, match=why):
            decode(packet)


def test_a_fragment_does_not_leave_its_apdu() -> None:
    with pytest.raises(Malformed, match="fragment of 6 octets at 5 exceeds its APDU of 10"):
        decode(encode_data(Data(TSI, 8001, 1, 1, b"abcdef", Fragment(1, 5, 10))))


def test_the_length_of_the_data_is_that_of_the_header() -> None:
    packet = VECTORS["odata-single"]
    for wrong in (0, 1, 1291, 1293, 65_535):
        with pytest.raises(Malformed, match="TSDU"):
            decode(sealed(packet[:14] + struct.pack(">H", wrong) + packet[16:]))
    with pytest.raises(Malformed, match="TSDU"):
        decode(sealed(VECTORS["nak"] + b"\0"))


def test_only_packets_without_data_may_lack_a_checksum() -> None:
    def without(name: str) -> bytes:
        return VECTORS[name][:6] + b"\0\0" + VECTORS[name][8:]

    assert decode(without("spm-before-data")) == EXPECTED["spm-before-data"]
    assert decode(without("nak")) == EXPECTED["nak"]
    for name in ("odata-single", "rdata-frag-1"):
        with pytest.raises(Malformed, match="no checksum"):
            decode(without(name))


def test_a_checksum_of_zero_goes_out_as_all_ones() -> None:
    """The sum of the words is 0xFFFF for exactly one value of the last word."""
    for last in range(0x10000):
        packet = encode_data(Data(TSI, 8001, 0, 0, struct.pack(">H", last)))
        if packet[6:8] == b"\xff\xff":
            assert decode(packet) == Data(TSI, 8001, 0, 0, struct.pack(">H", last))
            return
        assert packet[6:8] != b"\0\0"
    pytest.fail("no such packet")


def test_parity_and_packets_of_no_use_are_none() -> None:
    for kind in (0x01, 0x02, 0x09, 0x0C, 0x0D):
        assert decode(sealed(VECTORS["nak"][:4] + bytes([kind]) + VECTORS["nak"][5:])) is None
    assert decode(sealed(VECTORS["odata-single"][:5] + b"\x80" + VECTORS["odata-single"][6:])) is None


@pytest.mark.parametrize("kind", [0x10, 0x40, 0x80, 0x84])
def test_another_version_is_refused(kind: int) -> None:
    with pytest.raises(Malformed, match="version"):
        decode(sealed(VECTORS["nak"][:4] + bytes([kind]) + VECTORS["nak"][5:]))


def test_other_addresses_than_ipv4_are_refused() -> None:
    with pytest.raises(Malformed, match="address family 2"):
        decode(sealed(VECTORS["nak"][:20] + b"\0\2" + VECTORS["nak"][22:]))
    with pytest.raises(Malformed, match="address family 0"):
        decode(sealed(VECTORS["nak"][:28] + b"\0\0" + VECTORS["nak"][30:]))


def test_a_nak_list_has_at_most_62_numbers() -> None:
    with pytest.raises(ValueError, match="at most 62"):
        encode_nak(Nak(TSI, 8001, tuple(range(64)), HERE, GROUP))
