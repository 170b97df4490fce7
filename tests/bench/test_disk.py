"""The disk alone: every mode gives times, and durable figures have it beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import disk, machine
from bench.__main__ import main


@pytest.fixture(autouse=True)
def _no_machine_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    known = machine.facts(Path("/"), probe=False)
    monkeypatch.setattr(machine, "facts", lambda directory: known)


def test_every_mode_has_its_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    arguments = ["disk", "--rounds", "12", "--runs", "2", "--dir", str(tmp_path), "--json", str(out)]
    assert main(arguments) == 0
    found = {one["name"]: one["median"] for one in json.loads(out.read_text())["measurements"]}
    refused = {"append-direct-lone", "append-direct-batch"}  # by file systems such as an older tmpfs
    assert set(disk.MODES) - refused <= found.keys() <= set(disk.MODES)
    for name, figures in found.items():
        assert figures["count"] == 12
        assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["max_us"]
        assert figures["bytes"] == (306 * 1024 if name.endswith("batch") else 1331)
    shown = capsys.readouterr().out
    assert "python -m bench disk --rounds 12" in shown
    assert disk.MODES["scattered-batch"] in shown
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize(("kind", "beside"), [("--recoverable", True), ("--express", False)])
def test_durable_figures_have_the_disk_beside_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, beside: bool
) -> None:
    out = tmp_path / "out.json"
    arguments = ["mqqb", kind, "--count", "640", "--warmup", "0", "--runs", "1", "--dir", str(tmp_path)]
    assert main([*arguments, "--json", str(out)]) == 0
    (measurement,) = json.loads(out.read_text())["measurements"]
    names = {"disk_lone_p50_us", "disk_lone_p99_us", "disk_batch_p50_us"}
    assert (measurement["median"].keys() & names) == (names if beside else set())
    assert ("disk 1.3 KB ms" in capsys.readouterr().out) == beside
