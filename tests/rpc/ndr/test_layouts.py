"""Representations that follow from the rules of C706 chapter 14 and MS-RPCE 2.2.5, byte for byte."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.epm import EPM, TWR
from msmq_fast.rpc.idl.mqmq import CALPWSTR, DL_ID, OBJECTID, PROPVARIANT, QUEUE_FORMAT
from msmq_fast.rpc.idl.qm2qm import QM2QM, REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.ndr.operations import In, InterfaceTable, Op
from msmq_fast.rpc.ndr.types import (
    GUID,
    I16,
    I32,
    U8,
    U16,
    U32,
    U64,
    ArrayOf,
    Bytes,
    Enum16,
    FullPtr,
    NdrType,
    RefPtr,
    Struct,
    UniquePtr,
    WChars,
    conformant,
    varying_string,
    wstring,
)

GUID_VALUE = UUID("00112233-4455-6677-8899-aabbccddeeff")
GUID_LITTLE = "33221100 5544 7766 8899aabbccddeeff"
GUID_BIG = "00112233 4455 6677 8899aabbccddeeff"


def op_with(*kinds: NdrType) -> Op:
    """An operation with these [in] parameters, which are called a, b, …"""
    op = Op(0, "op", [In(name, kind) for name, kind in zip("abcdef", kinds, strict=False)])
    return InterfaceTable("test", UUID(int=1), (1, 0), [op]).ops[0]


def both_ways(op: Op, wire: str, *, ndr64: bool = False, big_endian: bool = False, **values: object) -> None:
    """The stub is written from the values and read as them."""
    stub = bytes.fromhex(wire)
    args = op.Args(**values)
    assert op.encode_request(args, ndr64=ndr64, big_endian=big_endian).hex(" ") == stub.hex(" ")
    assert op.decode_request(stub, ndr64=ndr64, big_endian=big_endian) == args


def test_integers_are_aligned_to_their_size() -> None:
    op = op_with(U8, U16, U8, U32, U8, U64)
    wire = "01 00 0200 03 000000 04000000 05 000000 0600000000000000"
    for ndr64 in False, True:
        both_ways(op, wire, ndr64=ndr64, a=1, b=2, c=3, d=4, e=5, f=6)


@pytest.mark.rule("RP-32")
def test_big_endian() -> None:
    handle = bytes.fromhex("01000000" + GUID_LITTLE)
    op = QM2QM.op("end_receive")
    both_ways(op, f"00000001 {GUID_BIG} 00000002", big_endian=True, pphContext=handle, dwAck=2)
    op = op_with(GUID, wstring(), WChars(conformant(1)))
    wire = f"{GUID_BIG} 00000003 00000000 00000003 0061 00fc 0000 0000 00000001 0062"
    both_ways(op, wire, big_endian=True, a=GUID_VALUE, b="aü", c=b"b\0")


@pytest.mark.rule("RP-32")
def test_big_endian_remote_read() -> None:
    desc = REMOTEREADDESC(
        hRemoteQueue=7, ulAction=0x80000000, dwSize=3, dwRequestID=9, eAckNack=2, lpBuffer=b"ABC"
    )
    wire = (
        "00020004 00000000 0011223344556677"
        "00000007 00000000 80000000 00000000 00000003 00000000 00000009 00000000 00000000 0002 0000 00020008"
        "00000003 00000000 00000003 414243"
    )
    op = QM2QM.op("start_receive2")
    both_ways(op, wire, big_endian=True, lpRemoteReadDesc2=REMOTEREADDESC2(desc, 0x0011223344556677))


def test_enumerations_have_16_bits_in_ndr_and_32_in_ndr64() -> None:
    op = op_with(Enum16(), Enum16())
    both_ways(op, "0100 0200", a=1, b=2)
    both_ways(op, "01000000 02000000", ndr64=True, a=1, b=2)


def test_gap_at_the_end_of_a_structure() -> None:
    """The example of MS-RPCE 4.8."""
    padded = Struct("StructWithPad", {"l": I32, "s": I16})
    op = op_with(padded, U8)
    both_ways(op, "01000000 0200 03", a=padded(1, 2), b=3)
    both_ways(op, "01000000 0200 0000 03", ndr64=True, a=padded(1, 2), b=3)


def test_pointers_in_a_structure_are_followed_after_it_in_order() -> None:
    inner = Struct("Inner", {"x": UniquePtr(U32), "y": U32})
    outer = Struct("Outer", {"a": UniquePtr(inner), "b": UniquePtr(U32), "c": U32})
    op = op_with(outer, U32)
    value = outer(inner(1, 2), 3, 4)
    wire = "04000200 08000200 04000000 0c000200 02000000 01000000 03000000 05000000"
    both_ways(op, wire, a=value, b=5)
    wire = (
        "0400020000000000 0800020000000000 04000000 00000000"
        "0c00020000000000 02000000 00000000 01000000 03000000 05000000"
    )
    both_ways(op, wire, ndr64=True, a=value, b=5)


def test_pointer_parameters_are_followed_at_once() -> None:
    op = op_with(UniquePtr(U32), UniquePtr(U32), UniquePtr(U32))
    both_ways(op, "04000200 01000000 00000000 08000200 02000000", a=1, b=None, c=2)


def test_array_of_pointers() -> None:
    op = op_with(ArrayOf(UniquePtr(U16), conformant()))
    both_ways(op, "03000000 04000200 00000000 08000200 0100 0200", a=[1, None, 2])


def test_full_pointers_to_the_same_value() -> None:
    op = op_with(FullPtr(U32), FullPtr(U32), U32)
    stub = bytes.fromhex("01000000 07000000 01000000 09000000")
    args = op.decode_request(stub, ndr64=False)
    assert (args.a, args.b, args.c) == (7, 7, 9)


def test_reference_pointers_in_a_structure() -> None:
    kind = Struct("S", {"p": RefPtr(U32)})
    op = op_with(kind)
    both_ways(op, "04000200 05000000", a=kind(5))
    with pytest.raises(RpcFault):
        op.decode_request(bytes(8), ndr64=False)
    with pytest.raises(ValueError, match="NULL"):
        op.encode_request(op.Args(kind(None)), ndr64=False)


def test_tower_has_its_maximum_count_in_front() -> None:
    op = EPM.op("ept_map")
    tower = TWR(3, b"abc")
    rest = f"{'00' * 20} 01000000"
    wire = f"00000000 04000200 03000000 03000000 616263 00 {rest}"
    both_ways(op, wire, map_tower=tower, max_towers=1)
    wire = f"{'00' * 8} 0400020000000000 0300000000000000 03000000 616263 00 {rest}"
    both_ways(op, wire, ndr64=True, map_tower=tower, max_towers=1)


def test_varying_string_in_a_structure() -> None:
    entry = Struct("Entry", {"id": U8, "text": varying_string(8), "last": U8})
    op = op_with(entry)
    both_ways(op, "01 000000 00000000 03000000 616200 02", a=entry(1, "ab", 2))
    wire = "01 00000000000000 0000000000000000 0300000000000000 616200 02 00000000"
    both_ways(op, wire, ndr64=True, a=entry(1, "ab", 2))


@pytest.mark.parametrize(
    ("value", "ndr", "ndr64"),
    [
        (QUEUE_FORMAT(0), "00 000000 00", "00 00000000000000 00 00000000000000"),
        (
            QUEUE_FORMAT(1, 0x81, 0, GUID_VALUE),
            f"01 81 0000 01 000000 {GUID_LITTLE}",
            f"01 81 0000 00000000 01 00000000000000 {GUID_LITTLE}",
        ),
        (
            QUEUE_FORMAT(2, 0, 0, OBJECTID(GUID_VALUE, 5)),
            f"02 00 0000 02 000000 {GUID_LITTLE} 05000000",
            f"02 00 0000 00000000 02 00000000000000 {GUID_LITTLE} 05000000 00000000",
        ),
        (
            QUEUE_FORMAT(3, 0, 0, "OS:a"),
            "03 00 0000 03 000000 04000200 05000000 00000000 05000000 4f00 5300 3a00 6100 0000",
            "03 00 0000 00000000 03 00000000000000 0400020000000000"
            "0500000000000000 0000000000000000 0500000000000000 4f00 5300 3a00 6100 0000",
        ),
        (
            QUEUE_FORMAT(6, 0, 0, DL_ID(GUID_VALUE, None)),
            f"06 00 0000 06 000000 {GUID_LITTLE} 00000000",
            f"06 00 0000 00000000 06 00000000000000 {GUID_LITTLE} 0000000000000000",
        ),
    ],
)
def test_queue_format(value: object, ndr: str, ndr64: str) -> None:
    op = op_with(QUEUE_FORMAT)
    both_ways(op, ndr, a=value)
    both_ways(op, ndr64, ndr64=True, a=value)


@pytest.mark.parametrize(
    ("value", "ndr", "ndr64"),
    [
        (PROPVARIANT(1), "0100 00 00 00000000 0100", "0100 00 00 00000000 0100 000000000000"),
        (
            PROPVARIANT(17, _varUnion=5),
            "1100 00 00 00000000 1100 05",
            "1100 00 00 00000000 1100 000000000000 05 00000000000000",
        ),
        (
            PROPVARIANT(2, _varUnion=-2),
            "0200 00 00 00000000 0200 feff",
            "0200 00 00 00000000 0200 000000000000 feff 000000000000",
        ),
        (
            PROPVARIANT(21, _varUnion=5),
            "1500 00 00 00000000 1500 000000000000 0500000000000000",
            "1500 00 00 00000000 1500 000000000000 0500000000000000",
        ),
        (
            PROPVARIANT(0x101F, _varUnion=CALPWSTR(2, ["a", None])),
            "1f10 00 00 00000000 1f10 0000 02000000 04000200"
            "02000000 08000200 00000000 02000000 00000000 02000000 6100 0000",
            "1f10 00 00 00000000 1f10 000000000000 02000000 00000000 0400020000000000"
            "0200000000000000 0800020000000000 0000000000000000"
            "0200000000000000 0000000000000000 0200000000000000 6100 0000",
        ),
    ],
)
def test_propvariant(value: object, ndr: str, ndr64: str) -> None:
    op = op_with(PROPVARIANT)
    both_ways(op, ndr, a=value)
    both_ways(op, ndr64, ndr64=True, a=value)


def test_propvariants_in_an_array_are_aligned_to_eight() -> None:
    op = op_with(ArrayOf(PROPVARIANT, conformant()))
    element = "1100 00 00 00000000 1100 05"
    wire = f"02000000 00000000 {element} 0000000000 {element}"
    both_ways(op, wire, a=[PROPVARIANT(17, _varUnion=5), PROPVARIANT(17, _varUnion=5)])


def test_strings_end_at_the_first_nul() -> None:
    op = op_with(wstring())
    stub = bytes.fromhex("04000000 00000000 04000000 6100 0000 6200 0000")
    assert op.decode_request(stub, ndr64=False).a == "a"


def test_buffers_are_copied_once() -> None:
    """Any kind of stub and of buffer will do; what was read does not change with the stub."""
    op = op_with(Bytes(conformant()))
    stub = bytearray(op.encode_request(op.Args(memoryview(b"abc")), ndr64=False))
    for kind in bytes, bytearray, memoryview:
        value = op.decode_request(kind(stub), ndr64=False).a
        assert value == b"abc"
        assert type(value) is bytes
    value = op.decode_request(memoryview(stub), ndr64=False).a
    stub[4:7] = b"xyz"
    assert value == b"abc"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 2, "b": b"abc"}, "3 elements do not fit in an array of 2"),
        ({"a": 4, "b": b"abc"}, "3 elements do not fit in an array of 4"),
        ({"a": 4, "b": None}, "the array is NULL"),
    ],
)
def test_values_that_contradict_each_other_are_not_written(values: dict[str, object], message: str) -> None:
    op = op_with(U32, UniquePtr(Bytes(conformant("a"))))
    with pytest.raises(ValueError, match=message):
        op.encode_request(op.Args(**values), ndr64=False)


def test_results_are_zero_unless_given() -> None:
    op = QM2QM.op("start_receive")
    desc = REMOTEREADDESC(hRemoteQueue=3)
    results = op.results(op.Args(desc), result=0xC00E0006)
    assert (results.pphContext, results.lpRemoteReadDesc, results.result) == (None, desc, 0xC00E0006)


@pytest.mark.rule("QP-030")
@pytest.mark.parametrize("ndr64", [False, True])
def test_the_identifier_of_a_reader_cannot_be_missing(ndr64: bool) -> None:
    """A reference pointer is what it points at: there is no place for a NULL."""
    op, guid = QM2QM.op("open_queue"), UUID("11223344-5566-7788-99aa-bbccddeeff00")
    stub = op.encode_request(op.Args(guid, 1, 2, 3, 4), ndr64=ndr64)
    assert stub.startswith(guid.bytes_le)
    nothing = op.decode_request(bytes(16) + stub[16:], ndr64=ndr64)
    assert (nothing.pLicGuid, nothing.dwMQS) == (UUID(int=0), 1)
