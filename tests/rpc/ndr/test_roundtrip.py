"""What is written is read back, for every operation, syntax and byte order; and what is broken is refused."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.rpc.faults import RPC_X_BAD_STUB_DATA, RpcFault
from msmq_fast.rpc.ndr.operations import Op
from tests.support.rpc.mutations import mutate
from tests.support.rpc.values import OPERATIONS, Values

SYNTAXES = [(False, False), (False, True), (True, False)]
SEEDS = st.integers(0, 2**32)
every_operation = pytest.mark.parametrize(
    "op", [pytest.param(op, id=f"{name}.{op.name}") for name, op in OPERATIONS]
)
every_syntax = pytest.mark.parametrize(
    ("ndr64", "big_endian"), SYNTAXES, ids=["ndr", "ndr-big-endian", "ndr64"]
)


@every_syntax
@every_operation
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_written_and_read(op: Op, ndr64: bool, big_endian: bool, seed: int) -> None:
    values = Values(Random(seed))
    args = values.arguments(op)
    request = op.encode_request(args, ndr64=ndr64, big_endian=big_endian)
    assert op.decode_request(request, ndr64=ndr64, big_endian=big_endian) == args
    results = values.results(op, args)
    for name in set(op.inputs) - set(op.outputs):
        setattr(args, name, getattr(results, name))
    response = op.encode_response(results, ndr64=ndr64, big_endian=big_endian)
    assert op.decode_response(response, args, ndr64=ndr64, big_endian=big_endian) == results


@every_operation
@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
@pytest.mark.rule("RP-16")
def test_mutated_requests_are_read_or_refused(op: Op, seed: int) -> None:
    """Whatever arrives: a value or the fault, and memory in proportion to the stub."""
    random = Random(seed)
    ndr64, big_endian = random.choice(SYNTAXES)
    stub = op.encode_request(Values(random).arguments(op), ndr64=ndr64, big_endian=big_endian)
    tracemalloc.start()
    try:
        for _ in range(20):
            mutated = mutate(stub, random)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            status = fault_status(op, mutated, ndr64=ndr64, big_endian=big_endian)
            assert status in (None, RPC_X_BAD_STUB_DATA)
            assert tracemalloc.get_traced_memory()[1] - before < 20_000 + 100 * len(mutated)
    finally:
        tracemalloc.stop()


def fault_status(op: Op, stub: bytes, *, ndr64: bool, big_endian: bool) -> int | None:
    """The status of the fault that this request causes; nothing else may be raised."""
    try:
        op.decode_request(stub, ndr64=ndr64, big_endian=big_endian)
    except RpcFault as fault:
        return fault.status
    return None
