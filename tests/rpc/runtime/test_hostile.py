"""Whatever a client sends: nothing fails inside, nothing stays behind, and answers are PDUs."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.rpc.limits import Limits
from tests.support.rpc import wire
from tests.support.rpc.world import CRASH, FAIL_RPC, IFACE, OTHER, RawService, World

NDR, NDR64 = wire.NDR, wire.NDR64

syntaxes = st.sampled_from([IFACE, OTHER, NDR, NDR64, wire.NOTHING, wire.features(3)])
contexts = st.lists(
    st.tuples(st.integers(0, 3), syntaxes, st.lists(syntaxes, max_size=3)),
    max_size=3,
)
tokens = st.sampled_from([b"hello", b"more", b"I am alice", b"I am mallory", b"rubbish", bytes(12)])
auths = st.one_of(
    st.none(),
    st.builds(
        wire.Auth,
        st.sampled_from([9, 10, 16, 0, 77]),
        st.integers(0, 7),
        st.integers(0, 2),
        tokens,
        st.one_of(st.none(), st.integers(0, 255)),
    ),
)
flags = st.one_of(st.just(wire.WHOLE), st.integers(0, 255))
big = st.booleans()
opnums = st.integers(0, 12).filter(lambda opnum: opnum != CRASH)
pdus = st.one_of(
    st.builds(wire.bind, contexts, flags=flags, auth=auths, big=big, xmit=st.integers(0, 0xFFFF)),
    st.just(wire.bind([(0, IFACE, [NDR])], flags=wire.WHOLE | wire.MPX)),
    st.builds(wire.alter, contexts, flags=flags, auth=auths, big=big),
    st.builds(
        wire.request,
        st.integers(0, 5),
        opnums,
        st.binary(max_size=40),
        context_id=st.integers(0, 2),
        flags=flags.map(lambda bits: bits & ~wire.OBJECT),
        auth=auths,
        big=big,
    ),
    st.builds(wire.auth3, auths.filter(bool)),
    st.builds(wire.cancel, st.integers(0, 5)),
    st.builds(wire.orphaned, st.integers(0, 5)),
    st.builds(wire.pdu, st.integers(0, 255), st.integers(0, 5), st.binary(max_size=60), flags=flags),
)


def damaged(stream: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    raw = bytearray(stream)
    for at, value in places:
        if raw:
            raw[at % len(raw)] ^= value
    return bytes(raw)


@settings(max_examples=300)
@given(
    st.lists(pdus, min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=3),
    st.lists(st.integers(1, 500), max_size=5),
)
def test_any_client(said: list[bytes], places: list[tuple[int, int]], cuts: list[int]) -> None:
    world = World(others=[RawService(OTHER)], limits=Limits(calls=3, handles=3, security_contexts=2))
    client = world.bound() if cuts else world.connect()
    stream = damaged(b"".join(said), places)
    for cut in cuts:
        client.send(stream[:cut])
        stream = stream[cut:]
    client.send(stream)
    answers = client.read()
    assert world.server.counters.failures == 0
    assert {answer.type for answer in answers} <= {
        *(wire.BIND_ACK, wire.ALTER_RESPONSE, wire.BIND_NAK, wire.RESPONSE, wire.FAULT),
    }
    if client.closed:
        assert len(world.refused) == 1
    else:
        assert client.connection.reading
    client.close()
    assert not any(call.alive for call in world.service.calls)
    assert len(world.server.associations) == 0
    assert len(list(world.server.connections)) == 0
    assert world.server.incomplete.held == 0


@given(st.binary(max_size=400))
def test_any_bytes(stream: bytes) -> None:
    world = World()
    client = world.bound()
    client.send(stream)
    client.read()
    assert world.server.counters.failures == 0
    client.close()
    assert world.server.incomplete.held == 0


def test_what_fails_inside_ends_its_connection_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    client, other = world.bound(), world.bound()
    monkeypatch.setattr("msmq_fast.rpc.connection.dispatch", None)
    with caplog.at_level(logging.ERROR):
        client.send(wire.request(1, FAIL_RPC))
    assert client.closed
    assert world.server.counters.failures == 1
    assert [record.exc_info is not None for record in caplog.records] == [True]
    monkeypatch.undo()
    assert other.call(1) == b""
