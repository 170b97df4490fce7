"""Drivers and servers are killed at random moments; at the end nothing is lost and nothing came twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.spark.killharness import Flow, Job, Stream, carnage
from tests.spark.realserver import RealServer, running

PATIENT = {"numRetries": "300", "retryIntervalMs": "100"}
KEPT = {"startingOffsets": "earliest", **PATIENT}
REMOVED = {"onSourceCommit": "remove", "subscription": "lake", **PATIENT}


def streams(directory: Path, modes: dict[str, dict[str, str]], rows: int) -> list[Stream]:
    """A query for each mode, on a queue of the same name."""
    found = []
    for name, options in modes.items():
        limited = {"maxRowsPerTrigger": str(rows), "includeBody": "true", **options}
        found.append(Stream(name, name, limited, directory / name))
    return found


def compare(server: RealServer, flow: Flow, found: list[Stream]) -> None:
    for stream in found:
        rows = stream.rows()
        ids = Counter(row["message_id"] for row in rows)
        assert max(ids.values()) == 1
        flow.check(stream.queue, [row["body"] for row in rows])
        left = server.count(stream.queue)
        assert left == (0 if stream.options.get("onSourceCommit") else len(rows))


def run(directory: Path, modes: dict[str, dict[str, str]], *, kills: int, servers: int, seed: int) -> None:
    with running() as server:
        for name in modes:
            server.create(name)
        found = streams(directory, modes, 1000)
        flow = Flow(server, list(modes))
        carnage(Job(directory, server.url, found), flow, kills, seed, servers=servers)
        compare(server, flow, found)


@pytest.mark.timeout(900)
@pytest.mark.long(seconds=50)
def test_a_few_kills(tmp_path: Path) -> None:
    """One of the driver and one of the server, with two queries at once."""
    run(tmp_path, {"keep": KEPT, "remove": REMOVED}, kills=1, servers=1, seed=1)


@pytest.mark.long(seconds=400)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", ["keep", "remove"])
def test_many_kills(tmp_path: Path, mode: str) -> None:
    """Twenty-two of the driver and twenty-two of the server."""
    run(tmp_path, {mode: KEPT if mode == "keep" else REMOVED}, kills=22, servers=22, seed=5)
