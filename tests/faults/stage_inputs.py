"""Damaged Arrow streams for `fuzz_stage.py`, and what the decoder of stages must make of them."""

from __future__ import annotations

import io
import random
import struct
import sys
import time
from functools import cache
from pathlib import Path

from msmq_fast._native.stagecodec import Destination, RowBuilder, RowError
from msmq_fast.bulk.ipc import MessageCutter
from msmq_fast.bulk.stagedecode import StageDecoder
from msmq_fast.packet.user_message import UserMessagePacket
from tests.support.hostile.mutation import mutate

FIELD = b"\4\0a\0\0\0\0\0"  # the DestinationQueue of every row


@cache
def seeds() -> list[bytes]:
    """Streams with every type that a column may have."""
    import pyarrow as pa  # here: the fuzzer makes its seeds in a process that no sanitizer watches

    long = ["a text that is longer than a view holds itself", None, "x", ""]
    texts = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    found = []
    for kind in texts:
        columns = {
            "body": pa.array([None if text is None else text.encode() for text in long]).cast(pa.binary()),
            "label": pa.array(long, kind),
            "queue": pa.array(["q", "q", None, "r"]).cast(kind),
            "priority": pa.array([1, None, 3, 7], pa.int8()),
            "app_specific": pa.array([1, 2, 3, None], pa.uint64()),
            "correlation_id": pa.array([bytes(20), None, bytes(20), bytes(20)], pa.binary(20)),
            "extension": pa.array([b"e" * 30, b"", None, b"e"], pa.binary_view()),
            "sent_us": pa.array([1, 2, 3, 4], pa.timestamp("us")),
        }
        out = io.BytesIO()
        batch = pa.RecordBatch.from_pydict(columns)
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
        found.append(out.getvalue())
    return found


def one_input(data: bytes) -> None:
    """What a fuzzer calls: packets that another decoder takes, or one line that says why not."""
    try:
        found = packets(data)
    except (ValueError, RowError) as problem:
        found, line = [], str(problem)
    else:
        line = "taken"
    assert line
    assert "\n" not in line
    for packet in found:
        assert UserMessagePacket.decode(packet)[1] == len(packet)


def packets(stream: bytes) -> list[bytes]:
    """The packets that a stream becomes. ValueError, RowError."""
    cutter, decoder = MessageCutter(), StageDecoder(strict=False)
    builder = RowBuilder(bytes(range(16)), 60, {})
    found: list[bytes] = []
    checked = False
    for message in cutter.feed(stream):
        if not checked:
            assert cutter.schema is not None
            decoder.check_schema(cutter.schema)
            checked = True
        for rows in decoder.decode(message):
            queues = [
                Destination(bytes(16), 7, FIELD, False, lambda _: (7, FIELD), True) for _ in rows.queues
            ]
            found += builder.build(
                rows.count,
                rows.columns,
                0,
                queues,
                rows.targets,
                rows.responses,
                rows.response_names,
                rows.admins,
                rows.admin_names,
            )
    return found


def lie(rng: random.Random, stream: bytes) -> bytes:
    """A stream in which some 32-bit numbers became others that a length or an offset may be."""
    data = bytearray(stream)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) // 4) * 4
        value = rng.choice(
            (-1, 0, 1, 7, 13, 40, 4096, 1 << 20, (1 << 31) - 1, -(1 << 31), rng.getrandbits(16))
        )
        struct.pack_into("<i", data, at, value)
    return bytes(data)


def run_random(seconds: float, seed: int) -> int:
    """Mutates until the time is over; returns the number of inputs."""
    rng, corpus = random.Random(seed), seeds()
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(50):
            given = rng.choice(corpus)
            one_input(lie(rng, given) if rng.random() < 0.7 else mutate(rng, given))
        count += 50
    return count


if __name__ == "__main__":
    for index, good in enumerate(seeds()):
        (Path(sys.argv[1]) / f"seed-{index}").write_bytes(good)
