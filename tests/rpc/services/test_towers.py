"""Protocol towers, octet by octet; and nothing that is only nearly one."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.rpc.services.towers import TcpTower, TowerError, decode_floors
from msmq_fast.rpc.syntaxes import NDR, SyntaxId

QM2QM = SyntaxId(UUID("1088a980-eae5-11d0-8d9b-00a02453c337"), 1, 0)
OCTETS = bytes.fromhex(
    "0500"
    "1300 0d 80a98810e5ead0118d9b00a02453c337 0100 0200 0000"  # the interface, version 1.0
    "1300 0d 045d888aeb1cc9119fe808002b104860 0200 0200 0000"  # NDR 2.0
    "0100 0b 0200 0000"  # connection-oriented RPC
    "0100 07 0200 0839"  # TCP port 2105
    "0100 09 0400 0a000007"  # IP 10.0.0.7
)


@pytest.mark.rule("RP-28")
def test_a_tower_of_five_floors_both_ways() -> None:
    tower = TcpTower(QM2QM, NDR, 2105, bytes((10, 0, 0, 7)))
    assert tower.encode() == OCTETS
    assert TcpTower.of_floors(decode_floors(OCTETS)) == tower


def test_versions_are_split_into_the_two_halves_of_a_floor() -> None:
    tower = TcpTower(SyntaxId(QM2QM.uuid, 3, 7), SyntaxId(NDR.uuid, 2, 9), 1)
    octets = tower.encode()
    assert (octets[21:23], octets[25:27]) == (b"\x03\x00", b"\x07\x00")
    assert TcpTower.of_floors(decode_floors(octets)) == tower


@pytest.mark.parametrize("identifier", [0x08, 0x0F, 0x10, 0x1F])  # UDP, pipe, local, HTTP
def test_other_protocol_sequences_are_understood_but_none_of_ours(identifier: int) -> None:
    octets = bytearray(OCTETS)
    octets[octets.index(b"\x01\x00\x07") + 2] = identifier
    assert TcpTower.of_floors(decode_floors(octets)) is None


def test_every_truncation_is_refused() -> None:
    for size in range(len(OCTETS)):
        with pytest.raises(TowerError):
            decode_floors(OCTETS[:size])
    with pytest.raises(TowerError):
        decode_floors(OCTETS + b"\0")


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (b"\x07\x00" + b"\x01\x00\x0b\x00\x00" * 7, "7 floors"),
        (b"\x01\x00" + b"\x00\x00\x00\x00", "has no protocol identifier"),
        (b"\x01\x00" + b"\xff\xff\x0b\x00\x00", "beyond the end"),
    ],
)
def test_what_cannot_be_floors(wrong: bytes, complaint: str) -> None:
    with pytest.raises(TowerError, match=complaint):
        decode_floors(wrong)


@pytest.mark.parametrize(
    "floors",
    [
        b"\x00\x00",
        b"\x01\x00\x01\x00\x0b\x00\x00",
        OCTETS.replace(b"\x13\x00\x0d\x80", b"\x13\x00\x0c\x80"),  # the first floor is no UUID
        OCTETS.replace(b"\x02\x00\x08\x39", b"\x01\x00\x39"),  # half a port
        OCTETS.replace(b"\x04\x00\x0a\x00\x00\x07", b"\x00\x00"),  # no address
    ],
)
def test_floors_that_say_nothing_useful(floors: bytes) -> None:
    with pytest.raises(TowerError):
        TcpTower.of_floors(decode_floors(floors))


@given(st.binary(max_size=200))
def test_any_octets_are_a_tower_or_an_error(octets: bytes) -> None:
    try:
        floors = decode_floors(octets)
    except TowerError:
        return
    assert sum(4 + len(floor.left) + len(floor.right) for floor in floors) + 2 == len(octets)
