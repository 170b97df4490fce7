"""The native parser and the reference accept the same packets, find the same parts, name the same faults."""

import ast
import inspect
import struct
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings

from msmq_fast._native.framing import BadPacket, parse
from msmq_fast.protocol.errors import PacketFaultCode
from tests.support.hostile.fields import hostile_packets
from tests.support.packet import reference
from tests.support.packet.mutations import mutated_packets, random_packets, valid_packets
from tests.support.packet.samples import seeds


def outcome_native(data: bytes) -> dict[str, Any] | str:
    try:
        fields = parse(data).fields()
    except BadPacket as fault:
        return PacketFaultCode(fault.code).name
    return {name: value for name, value in fields.items() if value}


def outcome_reference(data: bytes) -> dict[str, Any] | str:
    try:
        fields = reference.reference(data)
    except reference.Refused as refused:
        return str(refused.args[0])
    return {name: value for name, value in fields.items() if value}


def check(data: bytes) -> None:
    assert outcome_native(data) == outcome_reference(data)


@given(valid_packets())
@settings(max_examples=300, deadline=None)
def test_valid_packets(data: bytes) -> None:
    check(data)
    assert isinstance(outcome_native(data), dict)


@given(mutated_packets())
@settings(max_examples=2000, deadline=None)
def test_mutated_packets(data: bytes) -> None:
    check(data)


@given(random_packets())
@settings(max_examples=1000, deadline=None)
def test_random_packets(data: bytes) -> None:
    check(data)


@pytest.mark.rule("QB-163", "DM-189")
def test_hostile_packets() -> None:
    refused = 0
    for name, data in hostile_packets():
        expected = outcome_reference(data)
        assert outcome_native(data) == expected, name
        refused += isinstance(expected, str)
    assert refused > 300


@pytest.mark.parametrize(("name", "data"), seeds())
def test_every_prefix_of_a_packet_is_incomplete(name: str, data: bytes) -> None:
    for length in range(len(data)):
        assert outcome_native(data[:length]) == "TRUNCATED" == outcome_reference(data[:length])


def branches(module: Any) -> set[tuple[int, int]]:
    """(line of the test, line that follows it when taken) of both ways out of each if, while and for."""
    found = set()
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.For | ast.While):
            found.add((node.lineno, node.body[0].lineno))
            if node.orelse:
                found.add((node.lineno, node.orelse[0].lineno))
            else:
                found.add((node.lineno, -1))
    return found


def test_the_corpus_covers_the_reference() -> None:
    """What the differential tests draw from takes at least 95 % of the reference's branches."""
    wanted = branches(reference)
    seen: set[tuple[int, int]] = set()
    last: dict[FrameType, int] = {}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != reference.__file__:
            return None
        if event == "line":
            if frame in last:
                seen.add((last[frame], frame.f_lineno))
            last[frame] = frame.f_lineno
        elif event == "return" and frame in last:
            seen.add((last.pop(frame), 0))
        return trace

    corpus = [data for _, data in seeds()]
    corpus += [data[:length] for data in corpus[:3] for length in range(0, len(data), 7)]
    corpus += [data for _, data in hostile_packets()]
    sys.settrace(trace)
    try:
        for data in corpus:
            outcome_reference(data)
    finally:
        sys.settrace(None)
    bodies = {edge for edge in wanted if edge[1] != -1}
    taken = {edge for edge in wanted if edge in seen}
    for line, _ in wanted - bodies:  # left without entering the body: the next line is anything else
        body = {edge[1] for edge in bodies if edge[0] == line}
        if any(edge[0] == line and edge[1] not in body for edge in seen):
            taken.add((line, -1))
    missed = sorted(wanted - taken)
    assert len(taken) >= 0.95 * len(wanted), missed


def test_a_count_that_wraps_at_32_bits_is_refused() -> None:
    """CVE-2023-21554: DataLength counts WCHARs, so 0x80000000 of them are 2**32 bytes, or 0 if it wraps."""
    everything = dict(seeds())["srmp-0"]
    at = parse(everything).envelope_offset
    data = bytearray(everything)
    (chars,) = struct.unpack_from("<I", data, at + 4)
    struct.pack_into("<I", data, at + 4, chars + 0x80000000)
    assert outcome_native(bytes(data)) == "ENVELOPE_SIZE"
