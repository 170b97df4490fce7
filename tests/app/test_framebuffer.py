"""The receive buffer: frames come out whole however the bytes come in, and memory follows what arrived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.app.framebuffer import IDLE, MAX_READ, FrameBuffer
from msmq_fast.protocol.frames import HEADER, MAX_FRAME, WireError, pack_frame, unpack_payload


def pour(buffer: FrameBuffer, data: bytes, step: int) -> list[tuple[int, int, object]]:
    frames = []
    at = 0
    while at < len(data):
        room = buffer.room()
        assert 0 < len(room) <= MAX_READ
        count = min(step, len(room), len(data) - at)
        room[:count] = data[at : at + count]
        room.release()
        buffer.advance(count)
        at += count
        while (frame := buffer.take()) is not None:
            frames.append((frame[0], frame[1], unpack_payload(frame[2])))
    return frames


@given(st.lists(st.binary(max_size=3000), max_size=20), st.integers(1, 9000))
def test_frames_come_out_whole(bodies: list[bytes], step: int) -> None:
    data = b"".join(pack_frame(2, number, [body]) for number, body in enumerate(bodies, 1))
    assert pour(FrameBuffer(MAX_FRAME), data, step) == [
        (2, number, [body]) for number, body in enumerate(bodies, 1)
    ]


def test_one_byte_at_a_time() -> None:
    data = pack_frame(2, 1, []) + pack_frame(3, 2, ["x" * 300])
    assert pour(FrameBuffer(MAX_FRAME), data, 1) == [(2, 1, []), (3, 2, ["x" * 300])]


def test_a_large_frame_and_back_to_a_small_buffer() -> None:
    buffer = FrameBuffer(MAX_FRAME)
    body = bytes(4_000_000)
    assert pour(buffer, pack_frame(2, 1, [body]), 100_000) == [(2, 1, [body])]
    assert len(buffer.room()) == IDLE


def test_an_announced_length_takes_no_memory() -> None:
    buffer = FrameBuffer(MAX_FRAME)
    pour(buffer, HEADER.pack(MAX_FRAME, 2, 1), 9)
    buffer.room()
    assert len(buffer._buffer) == IDLE


@pytest.mark.parametrize("length", [0, 4, 4097, 0xFFFFFFFF])
def test_a_length_outside_the_limits(length: int) -> None:
    buffer = FrameBuffer(4096)
    with pytest.raises(WireError, match="a length of"):
        pour(buffer, HEADER.pack(length, 2, 1), 9)
