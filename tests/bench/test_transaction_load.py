"""The transaction generator against a server: what goes in comes out, in transactions of one and of many."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.server import Server
from bench.txload import TxLoad, on_server, to_another_server


@pytest.mark.parametrize(
    ("size", "explicit"),
    [
        (1, True),
        pytest.param(1, False, marks=pytest.mark.long(seconds=5)),
        pytest.param(10, False, marks=pytest.mark.long(seconds=5)),
    ],
)
def test_both_directions_move(tmp_path: Path, size: int, explicit: bool) -> None:
    load = TxLoad(clients=3, size=size, explicit=explicit, seconds=1.5, warmup=0.2)
    with Server(tmp_path) as server:
        figures = on_server(load)(server)
    assert figures["sent_per_s"] > 0
    assert figures["received_per_s"] > 0
    assert figures["in_per_s"] == pytest.approx(size * figures["sent_per_s"], rel=0.01)
    assert figures["transactions_per_s"] == figures["sent_per_s"] + figures["received_per_s"]


@pytest.mark.long(seconds=6)
def test_a_second_server_gets_every_message_once(tmp_path: Path) -> None:
    load = TxLoad(clients=3, size=10, body=100)
    with Server(tmp_path) as server:
        figures = to_another_server(load, 95)(server)
    assert figures["messages"] == 100
    assert 0 < figures["out_per_s"] <= figures["in_per_s"]
    assert figures["target_cpu_us_per_message"] >= 0


def test_a_server_beside_another_runs_the_same_program(tmp_path: Path) -> None:
    first = Server(tmp_path, program=("other", "program"))
    assert Server(tmp_path, beside=first).program == ["other", "program"]
