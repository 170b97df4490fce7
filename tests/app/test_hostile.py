"""Hostile clients: the engine answers or closes whatever comes, raises nothing, and others do not notice."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.protocol.frames import HEADER, Frame, pack_frame
from tests.support.worlds.app import World

scalars = st.none() | st.booleans() | st.integers(0, 5) | st.integers(-(2**63), 2**64 - 1)
scalars |= st.sampled_from(["orders", "", "a;b;c", b"", b"x" * 20]) | st.text(max_size=5) | st.floats()
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
kinds = st.sampled_from([int(frame) for frame in Frame if frame < 0x80]) | st.integers(0, 255)


@given(
    st.lists(st.tuples(kinds, st.integers(0, 0xFFFFFFFF), values | st.lists(values, max_size=4)), max_size=12)
)
@settings(max_examples=150, deadline=None)
def test_strange_requests(frames: list[tuple[int, int, Any]]) -> None:
    world = World()
    witness = world.client()
    handle = witness.queue()
    hostile = world.client()
    hostile.open()
    for kind, number, payload in frames:
        hostile.send(kind, payload, number)
        world.commit()
        hostile.read()
    hostile.engine.connection_lost()
    world.commit()
    if witness.call(Frame.GET_QUEUE, ["orders"])[0] == Frame.REPLY:
        witness.put(handle, b"still here")


@given(st.binary(max_size=300), st.integers(1, 50))
@settings(max_examples=150, deadline=None)
def test_noise(noise: bytes, step: int) -> None:
    world = World()
    hostile = world.client()
    for at in range(0, len(noise), step):
        hostile.write(noise[at : at + step])
    hostile.read()
    hostile.engine.connection_lost()


def test_what_belonged_to_a_connection_is_gone_with_it() -> None:
    world = World()
    random = Random(5)
    world.client().ok(Frame.CREATE_QUEUE, ["orders", {}])
    queue = world.manager.find("orders")
    for _ in range(200):
        hostile = world.client()
        handle = hostile.open()
        hostile.send(Frame.SUBSCRIBE, [handle, 5, random.random() < 0.5])
        hostile.send(Frame.RECEIVE, [handle, random.choice([None, 10_000])])
        whole = pack_frame(Frame.SEND, 9000, [handle, 0, [[b"x" * 50, "", 1]]])
        hostile.write(whole[: random.randrange(HEADER.size, len(whole))])
        hostile.engine.connection_lost()
    world.commit()
    assert not queue.descriptors
    assert len(queue.readers) == 0
    assert queue.messages == 0
