"""RemoteRead through the whole runtime: requests and replies as bytes written by hand."""

from __future__ import annotations

import struct

import pytest

from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.security.descriptor import SecurityDescriptor
from tests.rpc.services.lines import Endpoint, Line
from tests.support.rpc import wire

ACCESS_DENIED, BAD_STUB_DATA = 5, 0x6F7
INFINITE = 0xFFFFFFFF
CANCELLED = 0xC00E0008
NAME = "OS:HOST\\private$\\orders\0"
CLIENT = bytes(range(16))


def padded(stub: bytes, to: int = 4) -> bytes:
    return stub + bytes(-len(stub) % to)


def opening(name: str = NAME, tag: int = 3, kind: int = 3) -> bytes:
    """The request of R_OpenQueue for a direct name."""
    text = name.encode("utf-16-le")
    count = len(text) // 2
    queue = struct.pack("<BBHBxxxI", kind, 0, 0, tag, 0x20000)
    queue += padded(struct.pack("<III", count, 0, count) + text)
    return queue + struct.pack("<II", 1, 0) + CLIENT + struct.pack("<iBBHi", 1, 6, 1, 7601, 0)


def starting(context: bytes, request: int = 1, timeout: int = 0) -> bytes:
    """The request of R_StartReceive."""
    head = padded(context, 8) + struct.pack("<Q", 0)
    return head + struct.pack("<IIIIII", 0, 0, timeout, request, INFINITE, INFINITE)


@pytest.fixture
def endpoint() -> Endpoint:
    endpoint = Endpoint("remote_read")
    for interface in endpoint.server.interfaces:
        interface.policy = InterfacePolicy()
    queue = endpoint.remote.world.manager.find("orders")
    queue.security = SecurityDescriptor.build(None, None, None)  # everybody may read it
    return endpoint


def opened(line: Line) -> bytes:
    answer = line.call(2, opening())
    assert answer.type == wire.RESPONSE
    assert len(answer.stub) == 20
    return answer.stub


@pytest.mark.rule("RR-005", "RR-010")
def test_only_the_port_is_told_to_those_who_do_not_encrypt() -> None:
    line = Line(Endpoint("remote_read"))
    assert line.call(0, b"").stub == struct.pack("<I", 2103)
    answer = line.call(2, opening())
    assert (answer.type, answer.status) == (wire.FAULT, ACCESS_DENIED)


@pytest.mark.rule("RR-003")
def test_requests_that_break_a_rule(endpoint: Endpoint) -> None:
    line = Line(endpoint)
    context = opened(line)
    token = padded(bytes(16) + struct.pack("<II", 131073, 131073) + bytes(131073))
    for opnum, stub in (
        (9, context + struct.pack("<II", 0, 1)),
        (9, context + struct.pack("<II", 3, 1)),
        (15, context + struct.pack("<II", 3, 1)),
        (2, opening(tag=8)),
        (2, opening(tag=9, kind=9)),
        (2, opening()[:-1]),
        (2, opening(name="OS:HOST")),
        (12, token),
        (12, bytes(16) + struct.pack("<II", 8, 4) + bytes(8)),
    ):
        answer = line.call(opnum, stub)
        assert (answer.type, answer.status) == (wire.FAULT, BAD_STUB_DATA), (opnum, stub[:40])
    assert line.call(0, b"").type == wire.RESPONSE


@pytest.mark.rule("RR-027", "RR-032", "RR-042", "RR-054")
def test_what_a_read_looks_like(endpoint: Endpoint) -> None:
    key = endpoint.remote.world.send(b"body")
    line = Line(endpoint)
    context = opened(line)
    stub = line.call(7, starting(context)).stub
    arrived, gap, sequence, count = struct.unpack_from("<I4sQI", stub)
    assert arrived
    assert gap is not None
    assert sequence == key & (1 << 56) - 1
    assert count == 1
    pointer, maximum = struct.unpack_from("<II", stub, 20)
    assert pointer
    assert maximum == 1
    kind, allocated, size, buffer = struct.unpack_from("<HxxIII", stub, 28)
    assert (kind, allocated) == (0, size)
    assert buffer
    assert struct.unpack_from("<I", stub, 44) == (size,)
    assert stub[48:][:16][4:8] == b"LIOR"
    assert stub[-4:] == bytes(4)
    assert len(stub) == 48 + size + -size % 4 + 4
    assert line.call(9, context + struct.pack("<II", 2, 1)).stub == bytes(4)
    assert endpoint.remote.world.bodies() == []


@pytest.mark.rule("RR-050")
def test_a_read_that_waits_is_cancelled_on_its_own_connection(endpoint: Endpoint) -> None:
    line = Line(endpoint)
    context = opened(line)
    assert line.start(7, starting(context, timeout=INFINITE)) == []
    assert line.call(0, b"").type == wire.RESPONSE
    answers = sorted(line.start(8, context + struct.pack("<I", 1)), key=lambda answer: len(answer.stub))
    assert answers[0].stub == bytes(4)
    assert answers[1].stub[-4:] == struct.pack("<I", CANCELLED)
    assert len(answers[1].stub) == 28


@pytest.mark.rule("RR-082")
def test_a_client_that_is_lost(endpoint: Endpoint) -> None:
    endpoint.remote.world.send(b"one")
    line = Line(endpoint)
    context = opened(line)
    line.call(7, starting(context))
    assert line.start(7, starting(context, 2, INFINITE)) == []
    line.engine.connection_lost()
    assert len(endpoint.remote.queues) == 0
    assert endpoint.remote.world.receive() == b"one"
