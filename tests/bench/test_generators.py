"""The native generators against the null sinks: everything is acknowledged, the figures are well formed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench import appload, mqqb
from bench.__main__ import main
from bench.appload import AppLoad
from bench.generators import GeneratorError, run_generator
from bench.mqqb import Group, Load
from bench.packets import user_message
from bench.server import Server

TARGET = "TCP:127.0.0.1\\private$\\bench"


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize(
    ("body", "sessions", "window", "count"),
    [(0, 1, 1, 50), (1024, 1, 64, 100_000), (1024, 8, 64, 20_000), (65536, 3, 16, 500), (1 << 20, 2, 4, 40)],
)
def test_every_message_is_acknowledged_once(
    recoverable: bool, body: int, sessions: int, window: int, count: int
) -> None:
    # 100,000 on one session carry the 16-bit sequence numbers of the wire over their end.
    load = Load((Group(body, recoverable, sessions, window),), warmup=0, count=count)
    (figures,) = mqqb.on_null_sink(load, 1)
    assert figures["messages"] == count
    assert (
        0 < figures["ack_p50_us"] <= figures["ack_p99_us"] <= figures["ack_p999_us"] <= figures["ack_max_us"]
    )


def test_a_paced_session_keeps_its_rate() -> None:
    load = Load((Group(256, True, 1, rate=500),), warmup=0, seconds=1)
    (figures,) = mqqb.on_null_sink(load, 1)
    assert 400 <= figures["messages"] <= 510


def test_a_port_without_a_listener_is_an_error(tmp_path: Path) -> None:
    packet = tmp_path / "packet"
    packet.write_bytes(user_message(TARGET, bytes(16), recoverable=False))
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(GeneratorError, match="connect"):
        run_generator(
            "mqqb_load",
            ["--connect", f"127.0.0.1:{port}", "--count", "1", "--group", f"packet={packet}"],
        )


def test_a_peer_that_closes_the_session_is_an_error(tmp_path: Path) -> None:
    packet = tmp_path / "packet"
    packet.write_bytes(user_message(TARGET, bytes(16), recoverable=False))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closing = threading.Thread(target=lambda: listener.accept()[0].close())
        closing.start()
        arguments = ["--connect", f"127.0.0.1:{listener.getsockname()[1]}", "--count", "1"]
        with pytest.raises(GeneratorError, match="closed"):
            run_generator("mqqb_load", [*arguments, "--group", f"packet={packet}"])
        closing.join()


def test_a_file_that_is_no_packet_is_refused(tmp_path: Path) -> None:
    packet = tmp_path / "packet"
    packet.write_bytes(b"x" * 100)
    with pytest.raises(GeneratorError, match="is not one packet"):
        run_generator(
            "mqqb_load", ["--connect", "127.0.0.1:1", "--count", "1", "--group", f"packet={packet}"]
        )


@pytest.mark.parametrize(
    "load",
    [
        AppLoad(),
        AppLoad(batch=16, window=64, acknowledge=True),
        AppLoad(lockstep=True, body=16),
        AppLoad(lockstep=True, receive=True),
        AppLoad(produce=4, consume=0),
        AppLoad(body=0, backlog=100),
        AppLoad(body=100_000, recoverable=False),
    ],
    ids=lambda load: str(load)[8:60],
)
def test_what_goes_in_over_the_application_protocol_comes_out_in_order(load: AppLoad) -> None:
    counted = AppLoad(**{name: getattr(load, name) for name in load.__slots__} | {"count": 960, "warmup": 0})
    (figures,) = appload.on_null_sink(counted, 1)
    assert figures["messages"] >= 960
    assert figures["out_of_order"] == 0
    assert figures["in_per_s"] > 0
    if load.consume:
        assert figures["out_per_s"] > 0
    if load.consume and load.body >= 16:
        assert 0 < figures["end_to_end_p50_us"] <= figures["end_to_end_p99_us"]


def test_the_json_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    arguments = ["mqqb", "--null", "--express", "--count", "1000", "--warmup", "0", "--runs", "3"]
    assert main([*arguments, "--json", str(out), "--dir", str(tmp_path)]) == 0
    document = json.loads(out.read_text())
    (measurement,) = document["measurements"]
    assert measurement["command"].startswith("python -m bench mqqb --null --express")
    assert len(measurement["runs"]) == 3
    median = sorted(run["in_per_s"] for run in measurement["runs"])[1]
    assert measurement["median"]["in_per_s"] == median
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["fdatasync_us"]["p50"] > 0
    table = capsys.readouterr().out
    assert measurement["command"] in table
    assert "ack p50 ms" in table


def test_help_names_the_measurements() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "bench", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    ).stdout
    for word in ("mqqb", "mix", "app", "client", "deep", "disk", "machine", "peers", "targets"):
        assert word in shown


def test_transactional_streams_are_read_back_to_the_last_order_ack(tmp_path: Path) -> None:
    load = Load((Group(256, True, 3, transactional=True),), warmup=0, count=3_000)
    with Server(tmp_path) as server:
        figures = mqqb.on_server(load)(server)
        stored = json.loads(server.run("queue", "show", "bench-stream", "--json"))
    assert figures["messages"] == stored["messages"] == 3_000
    assert figures["order_acks"] >= 3
    assert sum(stream["sequence_number"] for stream in stored["incoming"]) == 3_000
