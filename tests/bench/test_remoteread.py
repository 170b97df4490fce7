"""The generator of remote readers against a server: everything is read, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.remoteread import QUEUE, SETTINGS, Load, by_app, by_rpc, sealed
from bench.server import Server


@pytest.mark.parametrize("recoverable", [True, False])
def test_remote_readers_empty_a_queue(tmp_path: Path, recoverable: bool) -> None:
    load = Load(clients=3, count=192, recoverable=recoverable)
    with Server(tmp_path, queues=(QUEUE,), settings=SETTINGS) as server:
        figures = by_rpc(load)(server)
        assert json.loads(server.run("queue", "show", QUEUE, "--json"))["messages"] == 0
    assert figures["out_per_s"] > 0
    assert figures["read_p99_us"] >= figures["read_p50_us"] > 0


def test_large_messages_sealed_and_in_clear(tmp_path: Path) -> None:
    load = Load(count=4, body=1_000_000, recoverable=False)
    with Server(tmp_path, queues=(QUEUE,), settings=SETTINGS) as server:
        assert by_rpc(load)(server)["mb_per_s"] > 0
    with Server(tmp_path, queues=(QUEUE,), settings=SETTINGS) as server:
        assert sealed(load)(server)["mb_per_s"] > 0
        assert json.loads(server.run("queue", "show", QUEUE, "--json"))["messages"] == 0


@pytest.mark.long(seconds=7)
def test_the_same_reads_by_the_application_protocol(tmp_path: Path) -> None:
    load = Load(clients=2, count=12_800)  # more than are read during the warm-up
    with Server(tmp_path, queues=(QUEUE,), settings=SETTINGS) as server:
        assert by_app(load)(server)["out_per_s"] > 0
