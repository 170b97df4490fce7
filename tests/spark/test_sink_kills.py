"""Drivers, executors and servers are killed while a stream writes into a queue: all of it arrives, once, in
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest

from tests.spark.killharness import SIX, Flow, Job, Stream, Toll, carnage
from tests.spark.realserver import running

PATIENT = {"numRetries": "300", "retryIntervalMs": "100"}


def run(directory: Path, kills: Mapping[str, int], *, seed: int, rows: int, chunk: int) -> Toll:
    """Messages flow into `from`; a stream, which sees one part of that queue at a time, writes to `to`."""
    with running() as server:
        server.create("from")
        server.create("to")
        reading = {"startingOffsets": "earliest", "maxRowsPerTrigger": str(rows), **PATIENT}
        writing = {"url": server.url, "queue": "to", "writerId": "pipe", "delivery": "recoverable", **PATIENT}
        stream = Stream("pipe", "from", reading, directory / "pipe", "sink", {"sink": writing})
        flow = Flow(server, ["from"], chunk=chunk)
        job = Job(directory, server.url, [stream], cluster="executor" in kills)
        toll = carnage(job, flow, kills, seed, least=2)
        written = server.count("to")
        with server.receiving("to") as opened, opened.subscribe(acknowledge=False) as messages:
            found = [bytes(message.body) for message in islice(messages, written)]
        assert written == server.count("from") > 0
        flow.check("from", found)
        print(f"sink: {toll.kills}, {toll.batches} batches between them, {written} messages once, in order")
        return toll


@pytest.mark.long(seconds=25)
@pytest.mark.timeout(900)
def test_two_kills_while_a_stream_writes(tmp_path: Path) -> None:
    run(tmp_path, {"driver": 1, "server": 1}, seed=3, rows=500, chunk=20)


@pytest.mark.long(seconds=200)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [7, 8])
def test_six_kills_while_a_stream_writes(tmp_path: Path, seed: int) -> None:
    toll = run(tmp_path, SIX, seed=seed, rows=100, chunk=5)
    assert (toll.kills, toll.batches >= 12) == (SIX, True)
