"""The native framing against plain Python, and PDUs cut out of streams that are cut anywhere."""

import itertools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.rpcframing import PduScanner, fragments
from tests.support.rpc import reference, wire


def scan(stream: bytes, cuts: list[int], limit: int = 5840) -> list[tuple[object, ...]]:
    scanner = PduScanner(limit)
    found = []
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        piece = stream[start:end]
        while piece:
            taken = scanner.feed(piece)
            piece = piece[taken:]
            while (pdu := scanner.take()) is not None:
                found.append(
                    (pdu.data, pdu.fault, pdu.type, pdu.flags, pdu.call_id, pdu.opnum, pdu.stub, pdu.token)
                )
                if pdu.fault in (2, 5):
                    return found
    return found


requests = st.builds(
    wire.request,
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, 0xFFFF),
    st.binary(max_size=300),
    context_id=st.integers(0, 0xFFFF),
    flags=st.integers(0, 127),
    alloc_hint=st.integers(0, 0xFFFFFFFF),
    object_uuid=st.sampled_from([None, "00112233-4455-6677-8899-aabbccddeeff"]),
    big=st.booleans(),
    auth=st.one_of(
        st.none(),
        st.builds(
            wire.Auth,
            st.integers(0, 255),
            st.integers(0, 255),
            st.integers(0, 0xFFFFFFFF),
            st.binary(min_size=1, max_size=40),
        ),
    ),
)


def native(stream: bytes, limit: int = 5840) -> list[dict[str, object]]:
    """What the native scanner makes of a stream, in the terms of the reference."""
    scanner, found = PduScanner(limit), []
    while stream:
        stream = stream[scanner.feed(stream) :]
        while (pdu := scanner.take()) is not None:
            names = reference.ALWAYS if pdu.fault else reference.ATTRIBUTES
            found.append({name: getattr(pdu, name) for name in names})
            if pdu.fault in (reference.LENGTH, reference.TOO_LARGE) and pdu.length != len(pdu.data):
                return found
    return found


def expected(stream: bytes, limit: int = 5840) -> list[dict[str, object]]:
    """What the reference says."""
    return [
        {name: pdu[name] for name in (reference.ALWAYS if pdu["fault"] else reference.ATTRIBUTES)}
        for pdu in reference.cut(stream, limit)
    ]


others = st.builds(
    wire.pdu,
    st.integers(0, 20),
    st.integers(0, 0xFFFFFFFF),
    st.binary(max_size=80),
    flags=st.integers(0, 255),
    big=st.booleans(),
    minor=st.integers(0, 2),
    major=st.sampled_from([5, 5, 5, 4]),
    length=st.one_of(st.none(), st.integers(0, 120)),
    auth_length=st.one_of(st.none(), st.integers(0, 60)),
    auth=st.one_of(
        st.none(),
        st.builds(
            wire.Auth,
            *(st.integers(0, 255), st.integers(0, 255), st.integers(0, 0xFFFFFFFF), st.binary(max_size=40)),
            pad=st.one_of(st.none(), st.integers(0, 90)),
        ),
    ),
)


@pytest.mark.rule("RP-32", "RP-33")
@settings(max_examples=400)
@given(st.lists(st.one_of(requests, others), max_size=4))
def test_streams_are_cut_as_the_reference_cuts_them(pdus: list[bytes]) -> None:
    assert native(b"".join(pdus)) == expected(b"".join(pdus))


@given(st.lists(requests, max_size=6), st.lists(st.integers(0, 5000)))
def test_any_cut_of_the_stream_gives_the_same_pdus(pdus: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(pdus)
    found = scan(stream, cuts)
    assert [pdu[0] for pdu in found] == pdus
    assert found == scan(stream, [])


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_any_bytes_are_cut_the_same_way_wherever_they_are_cut(stream: bytes, cuts: list[int]) -> None:
    assert scan(stream, cuts) == scan(stream, [])


def test_pdus_up_to_65535_bytes_and_no_memory_for_what_did_not_arrive() -> None:
    scanner = PduScanner(5840)
    token = wire.pdu(wire.ALTER, 1, bytes(65519))
    scanner.feed(token[:16])
    assert scanner.capacity <= 16384
    fed = 16
    while fed < len(token):
        fed += scanner.feed(token[fed:])
    pdu = scanner.take()
    assert pdu is not None
    assert pdu.data == token
    scanner.buffer(1)
    assert scanner.capacity <= 16384


@pytest.mark.rule("RP-10")
def test_a_request_that_is_too_large_is_known_by_its_header() -> None:
    scanner = PduScanner(5840)
    scanner.feed(wire.pdu(wire.REQUEST, 77, bytes(16), length=5841))
    pdu = scanner.take()
    assert pdu is not None
    assert (pdu.fault, pdu.call_id) == (5, 77)
    assert scanner.take() is None


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (wire.pdu(wire.REQUEST, 1, bytes(8), major=4), 1),
        (wire.pdu(wire.BIND, 1, bytes(40), minor=2), 1),
        (wire.pdu(wire.BIND, 1, bytes(40), minor=1), 0),
        (wire.pdu(wire.REQUEST, 1, bytes(8), length=15), 2),
        (wire.pdu(wire.REQUEST, 1, bytes(7)), 2),
        (wire.pdu(wire.REQUEST, 1, bytes(23), flags=wire.WHOLE | wire.OBJECT), 2),
        (wire.pdu(wire.REQUEST, 1, bytes(24), auth_length=9), 3),
        (wire.pdu(wire.BIND, 1, bytes(24), auth_length=17), 3),
        (wire.request(1, 0, b"abcd", auth=wire.Auth(10, 5, 1, b"t", pad=5)), 4),
        (wire.request(1, 0, b"abcd", auth=wire.Auth(10, 5, 1, b"t", pad=4)), 0),
        (wire.pdu(wire.BIND, 1, bytes(40), auth=wire.Auth(10, 5, 1, b"t", pad=33)), 4),
        (wire.pdu(wire.BIND, 1, bytes(40), auth=wire.Auth(10, 5, 1, b"t", pad=32)), 0),
        (wire.auth3(wire.Auth(10, 5, 1, b"t", pad=1)), 4),
        (wire.auth3(wire.Auth(10, 5, 1, b"t", pad=0)), 0),
    ],
)
def test_sizes_are_checked_before_they_are_used(raw: bytes, fault: int) -> None:
    scanner = PduScanner(5840)
    scanner.feed(raw)
    pdu = scanner.take()
    assert pdu is not None
    assert pdu.fault == fault


def plain_fragments(
    ptype: int,
    stub: bytes,
    flags: int,
    call_id: int,
    context_id: int,
    opnum: int,
    size: int,
    trailer: bytes | None,
    overhead: int,
) -> list[bytes]:
    """The reference for `fragments`."""
    align = 8 if trailer is None else 16
    extra = 0 if trailer is None else 8 + overhead
    room = (size - 24 - extra) // align * align
    pieces = [stub[at : at + room] for at in range(0, len(stub), room)] or [b""]
    pdus, left = [], len(stub)
    for i, piece in enumerate(pieces):
        body = struct.pack("<IHH", left, context_id, opnum) + piece
        if trailer is not None:
            pad = -len(piece) % 16
            body += bytes(pad) + trailer[:2] + bytes([pad]) + trailer[3:] + bytes(overhead)
        first_last = (wire.FIRST if i == 0 else 0) | (wire.LAST if i == len(pieces) - 1 else 0)
        auth_length = overhead if trailer is not None else 0
        pdus.append(wire.pdu(ptype, call_id, body, flags | first_last, auth_length=auth_length))
        left -= len(piece)
    return pdus


@pytest.mark.rule("RP-11")
@given(
    st.binary(max_size=2000),
    st.integers(100, 700),
    st.integers(0, 3000),
    st.one_of(st.none(), st.integers(1, 40)),
    st.integers(0, 0xFFFFFFFF),
    st.sampled_from([(0, 7), (2, 0)]),
)
def test_fragments_are_those_of_the_reference_however_they_are_taken(
    stub: bytes, size: int, budget: int, overhead: int | None, call_id: int, kind: tuple[int, int]
) -> None:
    trailer = None if overhead is None else bytes([10, 6, 0, 0, 4, 3, 2, 1])
    ptype, opnum = kind
    expected = plain_fragments(ptype, stub, 0, call_id, 258, opnum, size, trailer, overhead or 0)
    stream, offset, total = b"", 0, 0
    while True:
        data, offset, count = fragments(
            ptype, stub, offset, budget, 0, call_id, 258, opnum, size, trailer, overhead or 0
        )
        assert len(data) <= max(budget, size)
        stream += data
        total += count
        if offset == len(stub):
            break
    assert list(wire.split(stream)) == expected
    assert total == len(expected)
    assert all(len(pdu) <= size for pdu in expected)


def test_fragments_refuse_what_has_no_room() -> None:
    with pytest.raises(ValueError, match="room"):
        fragments(2, b"abc", 0, 100, 0, 1, 0, 0, 31)
    with pytest.raises(ValueError, match="offset"):
        fragments(2, b"abc", 4, 100, 0, 1, 0, 0, 100)
    with pytest.raises(ValueError, match="trailer"):
        fragments(2, b"abc", 0, 100, 0, 1, 0, 0, 100, b"short", 16)
    with pytest.raises(ValueError, match="trailer"):
        fragments(2, b"abc", 0, 100, 0, 1, 0, 0, 100, bytes(8), 0)
