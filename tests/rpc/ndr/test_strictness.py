"""Stubs that break a rule of MS-RPCE 3.1.1.5.3 (target level 6.0), made by hand: fault 0x6F7."""

from __future__ import annotations

import struct
import tracemalloc
from uuid import UUID

import pytest

from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.epm import EPM
from msmq_fast.rpc.idl.qm2qm import MAX_PACKET, QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import Op
from msmq_fast.rpc.ndr.stream import MAX_ELEMENTS

START_RECEIVE = QM2QM.op("start_receive")
START_RECEIVE2 = QM2QM.op("start_receive2")
END_RECEIVE = QM2QM.op("end_receive")
SET_SECURITY = QMCOMM.op("set_object_security_internal")
SET_PROPERTIES = QMCOMM.op("set_object_properties")
DELETE_OBJECT = QMCOMM.op("delete_object")
FORMAT_NAME = QMCOMM.op("handle_to_format_name")
PATH = QMCOMM.op("object_path_to_object_format")
ENLIST = REMOTE_READ.op("enlist_remote_transaction")
HANDLE = bytes(4) + bytes(range(16))


def u32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def desc(size: int, referent: int = 0, rest: bytes = b"") -> bytes:
    """REMOTEREADDESC in NDR, and what follows it."""
    return u32(7, 0, 0, 0, size, 7, 1, 0, 0, 0, referent) + rest


def desc64(size: int, referent: int = 0, rest: bytes = b"") -> bytes:
    """REMOTEREADDESC in NDR64."""
    return u32(7, 0, 0, 0, size, 7, 1, 0, 0, 0) + u64(referent) + rest


def object_format(qft: int = 1, tag: int = 1, rest: bytes = bytes(16)) -> bytes:
    """OBJECT_FORMAT in NDR with a pointer to a QUEUE_FORMAT."""
    return u32(1, 1, 0x20000) + bytes((qft, 0, 0, 0, tag, 0, 0, 0)) + rest


def property_of(vt: int, value: bytes) -> bytes:
    """A request to set one property, in NDR; the value begins at a multiple of four after its two tags."""
    head = object_format() + u32(1, 1, 1, 0, 1, 1) + bytes(4)
    return head + struct.pack("<HBBIHxx", vt, 0, 0, 0, vt) + value


def refused(op: Op, stub: bytes, *, ndr64: bool = False) -> str:
    """The detail of the fault that this request causes."""
    with pytest.raises(RpcFault) as caught:
        op.decode_request(stub, ndr64=ndr64)
    assert caught.value.status == 0x6F7
    return caught.value.detail


@pytest.mark.parametrize(
    ("op", "good", "bad"),
    [
        (QM2QM.op("get_port"), u32(3), u32(4)),
        (END_RECEIVE, HANDLE + u32(1), HANDLE + u32(0)),
        (END_RECEIVE, HANDLE + u32(2), HANDLE + u32(3)),
        (QM2QM.op("open_queue"), bytes(16) + u32(16, 1, 1, 1), bytes(16) + u32(17, 1, 1, 1)),
        (REMOTE_READ.op("end_receive"), HANDLE + u32(2, 1), HANDLE + u32(3, 1)),
        (EPM.op("ept_map"), u32(0, 0) + HANDLE + u32(500), u32(0, 0) + HANDLE + u32(501)),
        (
            EPM.op("ept_map"),  # in a structure with an array at its end
            u32(0, 1, 2000, 2000) + bytes(2000) + HANDLE + u32(1),
            u32(0, 1, 2001, 2001) + bytes(2001) + bytes(3) + HANDLE + u32(1),
        ),
        (
            SET_PROPERTIES,
            object_format() + u32(128, 1, 128) + bytes(512) + u32(1, 128, 0) + bytes(2048),
            object_format() + u32(0, 0, 0),
        ),
    ],
)
@pytest.mark.rule("RP-16", "QP-101", "QP-162")
def test_range(op: Op, good: bytes, bad: bytes) -> None:
    op.decode_request(good, ndr64=False)
    assert refused(op, bad) == "an integer is out of its range"


@pytest.mark.rule("RP-16")
def test_range_of_the_size_of_a_packet() -> None:
    packet = bytes(MAX_PACKET)
    START_RECEIVE.decode_request(desc(len(packet), 1, u32(len(packet), 0, len(packet)) + packet), ndr64=False)
    rest = u32(MAX_PACKET + 1, 0, MAX_PACKET + 1) + packet + b"x"
    assert refused(START_RECEIVE, desc(MAX_PACKET + 1, 1, rest)) == "an integer is out of its range"


@pytest.mark.rule("RP-16")
@pytest.mark.parametrize(
    ("counts", "detail"),
    [
        ((4, 0, 3), "the maximum count differs from size_is"),
        ((2, 0, 3), "the maximum count differs from size_is"),
        ((3, 0, 2), "the actual count differs from length_is"),
        ((3, 0, 4), "the actual count of an array is greater than its maximum count"),
        ((3, 1, 3), "the offset of an array is not 0"),
        ((3, 1, 2), "the offset of an array is not 0"),
        ((0xFFFFFFFF, 0, 3), "a maximum count is 2^31 or more"),
        ((3, 0xFFFFFFFF, 3), "the offset of an array is not 0"),
        ((3, 0, 0xFFFFFFFF), "the actual count of an array is greater than its maximum count"),
    ],
)
def test_counts_of_a_conformant_varying_array(counts: tuple[int, int, int], detail: str) -> None:
    args = START_RECEIVE.decode_request(desc(3, 1, u32(3, 0, 3) + b"ABC"), ndr64=False)
    assert args.lpRemoteReadDesc.lpBuffer == b"ABC"
    assert refused(START_RECEIVE, desc(3, 1, u32(*counts) + b"ABCD")) == detail
    assert refused(START_RECEIVE, desc64(3, 1, u64(*counts) + b"ABCD"), ndr64=True) == detail


@pytest.mark.rule("RP-16")
def test_counts_of_ndr64_have_64_bits() -> None:
    assert START_RECEIVE.decode_request(desc64(3, 1, u64(3, 0, 3) + b"ABC"), ndr64=True)
    for counts in (3 | 1 << 32, 0, 3), (3, 1 << 32, 3), (3, 0, 3 | 1 << 32):
        refused(START_RECEIVE, desc64(3, 1, u64(*counts) + b"ABC"), ndr64=True)


@pytest.mark.rule("RP-16")
@pytest.mark.parametrize("count", [2, 4, 0xFFFFFFFF])
def test_maximum_count_of_a_conformant_array(count: int) -> None:
    ENLIST.decode_request(bytes(16) + u32(3, 3) + b"ABC" + bytes(1) + bytes(8), ndr64=False)
    refused(ENLIST, bytes(16) + u32(3, count) + b"ABC" + bytes(1) + bytes(8))


@pytest.mark.rule("RP-16")
def test_maximum_count_in_front_of_a_structure() -> None:
    stub = u32(0, 1, 4, 3) + b"ABC" + bytes(1) + bytes(20) + u32(1)
    assert refused(EPM.op("ept_map"), stub) == "the maximum count differs from size_is"


@pytest.mark.rule("RP-16", "QP-075")
def test_null_pointer_to_an_array_with_elements() -> None:
    for ndr64, make in (False, desc), (True, desc64):
        assert START_RECEIVE.decode_request(make(0), ndr64=ndr64).lpRemoteReadDesc.lpBuffer is None
        assert (
            refused(START_RECEIVE, make(4), ndr64=ndr64)
            == "the pointer to an array is NULL, although its count is not 0"
        )
    assert (
        refused(SET_SECURITY, object_format() + u32(0, 8, 0))
        == "the pointer to an array is NULL, although its count is not 0"
    )
    SET_SECURITY.decode_request(object_format() + u32(0, 0, 0), ndr64=False)


def test_null_pointer_to_a_structure_is_let_through() -> None:
    assert START_RECEIVE2.decode_request(bytes(16), ndr64=False).lpRemoteReadDesc2.pRemoteReadDesc is None


@pytest.mark.rule("RP-16")
@pytest.mark.parametrize("ndr64", [False, True])
def test_truncated(ndr64: bool) -> None:
    buffer = (u64 if ndr64 else u32)(3, 0, 3) + b"ABC"
    stub = (desc64 if ndr64 else desc)(3, 1, buffer)
    START_RECEIVE.decode_request(stub, ndr64=ndr64)
    for size in range(len(stub)):
        assert refused(START_RECEIVE, stub[:size], ndr64=ndr64) == "the stub is truncated"
    for op in QM2QM.ops:
        if op.inputs:
            assert refused(op, b"", ndr64=ndr64) == "the stub is truncated"


@pytest.mark.rule("RP-16")
def test_union() -> None:
    args = DELETE_OBJECT.decode_request(object_format(), ndr64=False)
    assert args.pObjectFormat.pQueueFormat.name == UUID(int=0)
    assert refused(DELETE_OBJECT, object_format(1, 4)) == "the discriminant of a union differs from switch_is"
    assert refused(DELETE_OBJECT, object_format(9, 9)) == "the discriminant selects no arm of the union"
    assert refused(DELETE_OBJECT, u32(2, 2, 0)) == "the discriminant selects no arm of the union"


@pytest.mark.rule("RP-16")
@pytest.mark.parametrize(
    ("counts", "text"),
    [((2, 0, 2), "ab"), ((0, 0, 0), ""), ((3, 0, 2), "ab"), ((1, 0, 1), "a")],
)
def test_string_without_a_terminator(counts: tuple[int, int, int], text: str) -> None:
    stub = u32(*counts) + text.encode("utf-16-le")
    assert refused(PATH, stub + bytes(64)) == "a string has no terminating NUL"


@pytest.mark.rule("RP-16")
@pytest.mark.parametrize("counts", [(3, 1, 3), (2, 0, 3), (3, 0, 0x80000000)])
def test_counts_of_a_string(counts: tuple[int, int, int]) -> None:
    rest = object_format(0, 0, b"")
    good = u32(3, 0, 3) + "ab\0".encode("utf-16-le") + bytes(2) + rest
    assert PATH.decode_request(good, ndr64=False).lpwcsPathName == "ab"
    refused(PATH, u32(*counts) + good[12:])


@pytest.mark.rule("RP-16")
def test_alignment_gaps_are_ignored() -> None:
    filled = u32(7, 0, 0, 0, 0, 7, 1, 0, 0) + b"\x02\x00\xbf\xbf" + u32(0)
    assert START_RECEIVE.decode_request(filled, ndr64=False).lpRemoteReadDesc.eAckNack == 2
    filled = u32(0) + b"\xbf" * 4 + u64(5)
    assert START_RECEIVE2.decode_request(filled, ndr64=False).lpRemoteReadDesc2.SequentialId == 5


def test_what_follows_the_parameters_is_ignored() -> None:
    assert QM2QM.op("get_port").decode_request(u32(1) + b"rest", ndr64=False).dwPortType == 1


def test_ndr64_is_little_endian() -> None:
    with pytest.raises(RpcFault):
        QM2QM.op("get_port").decode_request(u32(1), ndr64=True, big_endian=True)


def test_counts_cost_nothing() -> None:
    """An array of as many elements as fit into 32 bits, and one of an element more than the stub has."""
    stubs = [
        (START_RECEIVE, desc(3, 1, u32(0x7FFFFFFF, 0, 0x7FFFFFFF))),
        (ENLIST, bytes(16) + u32(131072, 131072) + bytes(1000)),
        (PATH, u32(0x7FFFFFFF, 0, 0x7FFFFFFF) + bytes(64)),
        (FORMAT_NAME, HANDLE + u32(524288, 1, 524288, 0, 524288) + bytes(64)),
        (SET_PROPERTIES, property_of(0x101F, u32(0x7FFFFFFF, 1, 0x7FFFFFFF)) + bytes(1000)),
        (SET_PROPERTIES, property_of(0x1013, u32(8000, 1, 8000)) + bytes(4 * 7999)),
    ]
    tracemalloc.start()
    try:
        for op, stub in stubs:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            assert refused(op, stub)
            assert tracemalloc.get_traced_memory()[1] - before < 20_000
    finally:
        tracemalloc.stop()


def test_elements_of_a_stub_are_limited() -> None:
    """Arrays of objects are many times larger in memory than in the stub."""
    elements = property_of(0x1013, u32(MAX_ELEMENTS + 1, 1, MAX_ELEMENTS + 1) + bytes(4 * MAX_ELEMENTS + 4))
    assert refused(SET_PROPERTIES, elements) == "the arrays of the stub have too many elements"
    rest = 2  # of the arrays of properties
    fewer = u32(MAX_ELEMENTS - rest, 1, MAX_ELEMENTS - rest) + bytes(4 * MAX_ELEMENTS)
    assert SET_PROPERTIES.decode_request(property_of(0x1013, fewer), ndr64=False)


def test_nesting_is_limited() -> None:
    """A PROPVARIANT in a vector of PROPVARIANTs, and so on."""

    def nested(depth: int) -> bytes:
        vector = u32(1, 1, 1)  # its count, the pointer, and the count in front of the array
        variant = struct.pack("<HBBIHxx", 0x100C, 0, 0, 0, 0x100C)
        return property_of(0x100C, vector) + (variant + vector) * depth + bytes(16)

    assert SET_PROPERTIES.decode_request(nested(5), ndr64=False)
    beside_each_other = u32(100, 1, 100) + u32(1) * 100 + (u32(1, 0, 1) + bytes(4)) * 100
    assert SET_PROPERTIES.decode_request(property_of(0x101F, beside_each_other), ndr64=False)
    assert refused(SET_PROPERTIES, nested(100_000)) == "the pointers are nested too deeply"
