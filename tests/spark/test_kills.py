"""Drivers, executors and servers are killed at random moments; at the end nothing is lost and nothing came
twice.

What the queries write is compared with what was sent: every body has a number of its own. Parquet files and
Delta tables are read with pyarrow and deltalake, without this package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.spark.killharness import SIX, Flow, Job, Stream, carnage
from tests.spark.realserver import RealServer, running
from tests.support.objects import S3, s3_server

PATIENT = {"numRetries": "300", "retryIntervalMs": "100"}
KEPT = {"startingOffsets": "earliest", **PATIENT}
REMOVED = {"onSourceCommit": "remove", "subscription": "lake", **PATIENT}
MODES = {"keep": KEPT, "remove": REMOVED}


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


@pytest.mark.timeout(900)
@pytest.mark.long(seconds=50)
def test_a_few_kills(tmp_path: Path) -> None:
    """One of the driver and one of the server, with two queries at once."""
    with running() as server:
        for name in MODES:
            server.create(name)
        found = streams(tmp_path, MODES, 1000)
        flow = Flow(server, list(MODES))
        carnage(Job(tmp_path, server.url, found), flow, {"driver": 1, "server": 1}, seed=1)
        compare(server, flow, found)


@dataclass
class IntoDelta(Stream):
    """A query that writes each batch into the Delta table at `root`."""

    kind: str = "delta"
    root: str = ""

    def table(self, s3: S3) -> list[dict[str, object]]:
        """The rows of the table, by their arrival."""
        found = DeltaTable(self.root, storage_options=s3.environment)
        return sorted(found.to_pyarrow_table().to_pylist(), key=lambda row: row["arrival_seq"])


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.mark.needs(modules=("moto",))
@pytest.mark.long(seconds=200)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("mode", "place", "seed"),
    [("keep", "local", 5), ("keep", "s3", 6), ("remove", "local", 7), ("remove", "s3", 8)],
)
def test_six_kills_while_a_query_writes_a_delta_table(
    s3: S3, tmp_path: Path, mode: str, place: str, seed: int
) -> None:
    root = f"s3://{s3.bucket()}/rows" if place == "s3" else str(tmp_path / "rows")
    options = {"maxRowsPerTrigger": "100", "includeBody": "true", **MODES[mode]}
    with running() as server:
        server.create("orders")
        stream = IntoDelta("rows", "orders", options, tmp_path / "query", extra={"table": root}, root=root)
        flow = Flow(server, ["orders"], chunk=5)
        job = Job(tmp_path, server.url, [stream], cluster=True, environment=s3.environment)
        toll = carnage(job, flow, SIX, seed, least=2)
        rows = stream.table(s3)
        left = server.count("orders")
    assert (toll.kills, toll.batches >= 12) == (SIX, True)
    assert max(Counter(row["message_id"] for row in rows).values()) == 1
    flow.check("orders", [row["body"] for row in rows])
    assert left == (0 if mode == "remove" else len(rows))
    print(f"{mode} {place}: {toll.kills}, {toll.batches} batches between them, {len(rows)} messages once")
