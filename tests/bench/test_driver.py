"""The driver against a real server, with tiny counts: every kind of measurement gives whole figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import machine
from bench.__main__ import main
from bench.measure import Figures, Measurement, medians
from bench.report import Check, table


@pytest.fixture(autouse=True)
def _no_machine_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring the disk takes seconds; test_generators does it once."""
    known = machine.facts(Path("/"), probe=False)
    monkeypatch.setattr(machine, "facts", lambda directory: known)


def run(directory: Path, *arguments: str) -> dict[str, Any]:
    out = directory / "out.json"
    assert main([*arguments, "--runs", "1", "--dir", str(directory), "--json", str(out)]) == 0
    (measurement,) = json.loads(out.read_text())["measurements"]
    median: dict[str, Any] = measurement["median"]
    assert measurement["command"].split()[3] == arguments[0]
    return median


@pytest.mark.parametrize("kind", ["--recoverable", "--express"])
def test_mqqb_load_on_a_server(tmp_path: Path, kind: str) -> None:
    # Whole windows, so that no express message waits for the acknowledgment timer.
    figures = run(tmp_path, "mqqb", kind, "--sessions", "2", "--count", "2560", "--warmup", "0")
    assert 2560 - 2 * 32 <= figures["messages"] <= 2560
    assert figures["server_rss_anon_mib"] > 1
    if kind == "--recoverable":
        assert figures["messages"] == 2560
        assert figures["fsyncs_per_s"] > 0


@pytest.mark.parametrize("options", [[], ["--lockstep"], ["--lockstep", "--receive"], ["--acknowledge"]])
def test_application_load_on_a_server(tmp_path: Path, options: list[str]) -> None:
    figures = run(tmp_path, "app", "--count", "200", "--warmup", "0", *options)
    assert figures["out_of_order"] == 0
    assert figures["messages"] >= 200
    assert figures["end_to_end_p50_us"] > 0


def test_the_python_client_on_a_server(tmp_path: Path) -> None:
    figures = run(tmp_path, "client", "--count", "200")
    assert figures["in_per_s"] > 0
    assert figures["sync_p50_us"] > 0


def test_a_server_that_does_not_start_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "bad.toml"
    settings.write_text("[server]\nno_such_key = 1\n")
    arguments = ["mqqb", "--count", "1", "--runs", "1", "--dir", str(tmp_path), "--settings", str(settings)]
    assert main(arguments) == 1
    assert "no_such_key" in capsys.readouterr().err


def test_medians_leave_out_what_a_run_lacks() -> None:
    runs: list[Figures] = [{"a": 1.0, "b": 5.0}, {"a": 3.0}, {"a": 2.0, "b": 1.0}]
    assert medians(runs) == {"a": 2.0}


def test_a_check_knows_its_side() -> None:
    assert Check("rate", 100, 100, "msgs/s").passed
    assert not Check("rate", 99, 100, "msgs/s").passed
    assert Check("time", 1.0, 2.0, "ms", upper=True).passed
    assert str(Check("time", 2.0, 2.0, "ms", upper=True)).startswith("MISS")


def test_every_row_of_a_table_shows_its_command() -> None:
    rows = [
        Measurement("one", "python -m bench a", [{"in_per_s": 10.0}]),
        Measurement("two", "python -m bench b", [{"out_per_s": 20.0}]),
    ]
    text = table(rows)
    assert "python -m bench a" in text
    assert "python -m bench b" in text
    assert "–" in text
