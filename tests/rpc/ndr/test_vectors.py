"""The canonical stubs of the remote read operations, byte for byte."""

from __future__ import annotations

import pytest

from msmq_fast.rpc.idl.qm2qm import QM2QM, REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.ndr.record import Record

START_RECEIVE = QM2QM.op("start_receive")
START_RECEIVE2 = QM2QM.op("start_receive2")
HANDLE = bytes(4) + bytes(range(1, 17))
HANDLE_WIRE = "00000000 0102030405060708090a0b0c0d0e0f10"
DESC = "07000000 00000000 00000000 00000000 03000000 07000000 01000000 01000000 00000066"


def desc() -> Record:
    return REMOTEREADDESC(
        hRemoteQueue=7,
        dwSize=3,
        dwQueue=7,
        dwRequestID=1,
        Reserved=1,
        dwArriveTime=0x66000000,
        lpBuffer=b"ABC",
    )


@pytest.mark.parametrize(
    ("ndr64", "wire"),
    [
        (False, f"{HANDLE_WIRE} {DESC} 0000 0000 04000200 03000000 00000000 03000000 414243 00 00000000"),
        (
            True,
            f"{HANDLE_WIRE} 00000000 {DESC} 00000000 0400020000000000"
            "0300000000000000 0000000000000000 0300000000000000 414243 00 00000000",
        ),
    ],
)
def test_response_of_start_receive(ndr64: bool, wire: str) -> None:
    results = START_RECEIVE.Results(pphContext=HANDLE, lpRemoteReadDesc=desc(), result=0)
    stub = bytes.fromhex(wire)
    assert START_RECEIVE.encode_response(results, ndr64=ndr64) == stub
    assert START_RECEIVE.decode_response(stub, ndr64=ndr64) == results


@pytest.mark.parametrize(
    ("ndr64", "wire"),
    [
        (
            False,
            f"{HANDLE_WIRE} 00000000 04000200 00000000 7766554433221100 {DESC} 0000 0000 08000200"
            "03000000 00000000 03000000 414243 00 00000000",
        ),
        (
            True,
            f"{HANDLE_WIRE} 00000000 0400020000000000 7766554433221100 {DESC} 00000000 0800020000000000"
            "0300000000000000 0000000000000000 0300000000000000 414243 00 00000000",
        ),
    ],
)
def test_response_of_start_receive2(ndr64: bool, wire: str) -> None:
    desc2 = REMOTEREADDESC2(desc(), 0x0011223344556677)
    results = START_RECEIVE2.Results(pphContext=HANDLE, lpRemoteReadDesc2=desc2, result=0)
    stub = bytes.fromhex(wire)
    assert START_RECEIVE2.encode_response(results, ndr64=ndr64) == stub
    assert START_RECEIVE2.decode_response(stub, ndr64=ndr64) == results


@pytest.mark.parametrize(
    ("name", "request_size", "response_size"),
    [
        ("start_receive", 44, 68),
        ("end_receive", 24, 24),
        ("open_queue", 32, 24),
        ("close_queue", 20, 24),
        ("close_cursor", 8, 4),
        ("cancel_receive", 12, 4),
        ("purge_queue", 4, 4),
        ("get_port", 4, 4),
        ("get_version", 0, 4),
        ("start_receive2", 60, 88),
        ("start_receive_by_lookup_id", 68, 88),
    ],
)
def test_sizes_without_a_buffer(name: str, request_size: int, response_size: int) -> None:
    op = QM2QM.op(name)
    empty = REMOTEREADDESC2(REMOTEREADDESC())
    given = {"lpRemoteReadDesc": REMOTEREADDESC(), "lpRemoteReadDesc2": empty}
    args = op.Args(**{name: value for name, value in given.items() if hasattr(op.Args, name)})
    assert len(op.encode_request(args, ndr64=False)) == request_size
    assert len(op.encode_response(op.results(args), ndr64=False)) == response_size
