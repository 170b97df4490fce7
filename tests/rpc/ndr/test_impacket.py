"""Every operation, in both syntaxes and directions, against the NDR engine of impacket."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.rpc.ndr.operations import Op
from tests.support.rpc import impacketbridge
from tests.support.rpc.impacketstubs import CALLS
from tests.support.rpc.values import OPERATIONS, Values

SEEDS = st.integers(0, 2**32)
EXAMPLES = settings(max_examples=10, deadline=None)
every_operation = pytest.mark.parametrize(
    ("name", "op"), [pytest.param(name, op, id=f"{name}.{op.name}") for name, op in OPERATIONS]
)
every_syntax = pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])


def test_impacket_knows_every_operation() -> None:
    assert {(name, op.opnum) for name, op in OPERATIONS} == {
        (name, opnum) for name, calls in CALLS.items() for opnum in calls
    }


@pytest.mark.rule("QP-008")
@every_syntax
@every_operation
@EXAMPLES
@given(seed=SEEDS)
def test_requests_of_impacket_are_read(name: str, op: Op, ndr64: bool, seed: int) -> None:
    args = Values(Random(seed)).arguments(op)
    stub = impacketbridge.encode(CALLS[name][op.opnum][0], op.inputs, args, ndr64=ndr64)
    assert op.decode_request(stub, ndr64=ndr64) == args


@every_syntax
@every_operation
@EXAMPLES
@given(seed=SEEDS)
def test_requests_are_read_by_impacket(name: str, op: Op, ndr64: bool, seed: int) -> None:
    args = Values(Random(seed)).arguments(op)
    stub = op.encode_request(args, ndr64=ndr64)
    read = impacketbridge.decode(CALLS[name][op.opnum][0], op.inputs, stub, ndr64=ndr64)
    assert op.Args(**read) == args


@every_syntax
@every_operation
@EXAMPLES
@given(seed=SEEDS)
def test_responses_of_impacket_are_read(name: str, op: Op, ndr64: bool, seed: int) -> None:
    values = Values(Random(seed))
    results = values.results(op, values.arguments(op))
    stub = impacketbridge.encode(CALLS[name][op.opnum][1], op.outputs, results, ndr64=ndr64)
    read = op.decode_response(stub, ndr64=ndr64)
    assert {key: getattr(read, key) for key in op.outputs} == {
        key: getattr(results, key) for key in op.outputs
    }


@every_syntax
@every_operation
@EXAMPLES
@given(seed=SEEDS)
def test_responses_are_read_by_impacket(name: str, op: Op, ndr64: bool, seed: int) -> None:
    values = Values(Random(seed))
    results = values.results(op, values.arguments(op))
    stub = op.encode_response(results, ndr64=ndr64)
    read = impacketbridge.decode(CALLS[name][op.opnum][1], op.outputs, stub, ndr64=ndr64)
    assert read == {key: getattr(results, key) for key in op.outputs}
