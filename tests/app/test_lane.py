"""SEND frames on the plain path and on the general one: the same answers, queues and counters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.protocol.frames import Frame, SendFlag, pack_frame
from tests.support.worlds.app import Client, World

ENOSPC = 28

_MESSAGES = st.one_of(
    st.lists(st.binary(max_size=40), min_size=1, max_size=1),
    st.tuples(st.binary(max_size=40), st.text(max_size=4), st.integers(0, 2), st.integers(0, 8)).map(list),
    st.just([b"x" * 900, "", 1]),  # the quota has room for one
    st.just([b"", "l" * 250]),
    st.just([b"", "", 1, 3, 0, 0, None, b"", "DIRECT=OS:there\\private$\\answers"]),
    st.just([b"", "", 1, 3, 0, 0, None, b"", None, None, 15]),  # no admin queue
    st.just("not a message"),
)
_PAYLOADS = st.tuples(
    st.sampled_from((1, 1, 1, 2, 9)), st.sampled_from((0, 0, 1, 2, 4)), st.lists(_MESSAGES, max_size=3)
)
_FRAMES = st.lists(st.tuples(st.integers(0, 6), _PAYLOADS.map(list)), min_size=1, max_size=8)
_STEPS = st.lists(st.tuples(_FRAMES, st.sampled_from(("commit", "fail", "nothing"))), min_size=1, max_size=4)


class _Side:
    """One world; without its lane every frame takes the general path."""

    def __init__(self, *, lane: bool) -> None:
        self.world = World(max_pending=4)
        self.client: Client = self.world.client()
        first = self.client.queue("first", quota_kb=1)
        second = self.client.queue("second")
        if not lane:
            for handle in (first, second):
                self.lane.close(handle)

    @property
    def lane(self) -> Any:
        session = self.client.engine._session
        assert session is not None
        return session.lane

    def step(self, frames: list[tuple[int, list[Any]]], end: str) -> None:
        self.client.write(b"".join(pack_frame(Frame.SEND, number, payload) for number, payload in frames))
        if end == "fail":
            self.world.writer.submit()
            self.world.writer.complete_all(ENOSPC)
        elif end == "commit":
            self.world.commit()

    def seen(self) -> Any:
        self.client.read()
        cores = [queue.core for queue in self.world.manager.queues()]
        return (
            sorted(self.client.frames),
            self.client.engine.closing,
            self.world.service.counters.as_dict(),
            [(core.ordinal, core.messages, core.bytes, core.positions.pending) for core in cores],
        )


@settings(max_examples=150, deadline=None)
@given(_STEPS)
def test_both_paths_say_the_same(steps: list[tuple[list[tuple[int, list[Any]]], str]]) -> None:
    """Whatever the frames: refused, out of room, with ids in use, more than may be pending, not stored."""
    plain, general = _Side(lane=True), _Side(lane=False)
    for frames, end in steps:
        if plain.client.engine.closing:
            break
        plain.step(frames, end)
        general.step(frames, end)
        assert plain.seen() == general.seen()
    plain.world.commit()
    general.world.commit()
    assert plain.seen() == general.seen()


def test_plain_frames_are_taken_in_one_run() -> None:
    """Frames of one read are one run: their answers are one buffer."""
    side = _Side(lane=True)
    before = side.lane.frames
    side.client.write(b"".join(pack_frame(Frame.SEND, 100 + i, [2, 0, [[b"body", "", 1]]]) for i in range(4)))
    side.world.commit()
    assert side.lane.frames == before + 4
    assert len(side.client.engine.take_output()) == 1


def test_closed_queue_is_for_the_general_path() -> None:
    """A SEND behind CLOSE is refused, one before it is answered."""
    side = _Side(lane=True)
    client = side.client
    client.write(
        pack_frame(Frame.SEND, 100, [2, 0, [[b"body", "", 1]]])
        + pack_frame(Frame.CLOSE, 101, [2])
        + pack_frame(Frame.SEND, 102, [2, 0, [[b"body", "", 1]]])
    )
    side.world.commit()
    kinds = {number: kind for kind, number, _ in client.read()}
    assert kinds == {100: Frame.SENT, 101: Frame.REPLY, 102: Frame.ERROR}


def test_deleted_queue_is_for_the_general_path() -> None:
    """A queue that was deleted takes nothing on the plain path."""
    side = _Side(lane=True)
    side.client.ok(Frame.DELETE_QUEUE, ["second"])
    assert side.client.refused(Frame.SEND, [2, 0, [[b"body", "", 1]]])


@pytest.mark.parametrize("flags", [0, SendFlag.IDS])
def test_what_could_not_be_stored_is_answered_as_it_was_asked(flags: int) -> None:
    """The ordinals, all 0, are in the answer if they were asked for."""
    side = _Side(lane=True)
    side.step([(100, [2, flags, [[b"body", "", 1]]])], "fail")
    ((kind, _, answer),) = side.client.read()
    assert kind == Frame.SENT
    assert (answer[0], answer[1][0][:2]) == (0, [0, 0xC00E002A])
    assert answer[2:] == ([[0]] if flags else [])


def test_reading_stops_while_many_bytes_wait_for_the_disk() -> None:
    """A client that sends faster than the disk waits, however many requests it may have under way."""
    world = World(max_sending=10_000)
    client = world.client()
    handle = client.queue()
    frames = [pack_frame(Frame.SEND, 100 + i, [handle, 0, [[bytes(4_000), "", 1]]]) for i in range(9)]
    client.write(b"".join(frames))
    assert not client.engine.reading
    assert world.manager.find("orders").core.positions.pending == 3
    world.commit()
    assert client.engine.reading
    world.commit()
    world.commit()
    assert [number for _, number, _ in client.read()] == [100 + i for i in range(9)]
