"""Drivers and servers are killed while a stream writes into a queue: all of it arrives, once and in order."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.spark.killharness import Flow, Job, Stream, carnage
from tests.spark.realserver import running

PATIENT = {"numRetries": "300", "retryIntervalMs": "100"}


def run(directory: Path, *, kills: int, servers: int, seed: int) -> None:
    """Messages flow into `from`; a stream, which sees one part of that queue at a time, writes to `to`."""
    with running() as server:
        server.create("from")
        server.create("to")
        reading = {"startingOffsets": "earliest", "maxRowsPerTrigger": "500", **PATIENT}
        writing = {"url": server.url, "queue": "to", "writerId": "pipe", "delivery": "recoverable", **PATIENT}
        stream = Stream("pipe", "from", reading, directory / "pipe", "sink", {"sink": writing})
        flow = Flow(server, ["from"])
        carnage(Job(directory, server.url, [stream]), flow, kills, seed, servers=servers)
        written = server.count("to")
        with server.receiving("to") as opened, opened.subscribe(acknowledge=False) as messages:
            found = [bytes(message.body) for message in islice(messages, written)]
        assert written == server.count("from") > 0
        flow.check("from", found)


@pytest.mark.long(seconds=25)
@pytest.mark.timeout(900)
def test_two_kills_while_a_stream_writes(tmp_path: Path) -> None:
    run(tmp_path, kills=1, servers=1, seed=3)


@pytest.mark.long(seconds=400)
@pytest.mark.timeout(1800)
def test_many_kills_while_a_stream_writes(tmp_path: Path) -> None:
    """Twenty-two of the driver and twenty-two of the server."""
    run(tmp_path, kills=22, servers=22, seed=7)
