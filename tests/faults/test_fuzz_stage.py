"""The fuzzer of staged Arrow streams: a moment in `make test`, minutes with sanitizers in long tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults import stage_inputs
from tests.faults.fuzz_native import INSTRUMENTED, ROOT, build, run
from tests.support.fuzzing import seconds

FUZZER = ROOT / "tests" / "faults" / "fuzz_stage.py"
SANITIZERS = (*INSTRUMENTED, "-fsanitize=undefined", "-fsanitize-trap=undefined")
NATIVE = ("arrowcolumn", "stagecodec")


def test_no_finding_in_a_second() -> None:
    assert stage_inputs.run_random(1, seed=1) >= 50


def test_sound_streams_become_packets() -> None:
    for stream in stage_inputs.seeds():
        assert len(stage_inputs.packets(stream)) == 4


def native(directory: Path, changed: str = "", change: tuple[str, str, str] | None = None) -> Path:
    """Builds of both modules with address and undefined-behaviour checks; `change` goes into `changed`."""
    modules = directory / "modules"
    modules.mkdir(parents=True)
    for name in NATIVE:
        place = directory / name
        place.mkdir()
        wanted = change if name == changed else None
        shutil.copy(build(name, place, wanted, flags=SANITIZERS, compiler="clang"), modules)
    return modules


@pytest.mark.needs("clang", modules=["atheris"], rights=["sanitizers"])
@pytest.mark.long(seconds=120, fuzz=seconds())
@pytest.mark.timeout(seconds() + 400)
def test_damaged_streams_under_sanitizers(tmp_path: Path) -> None:
    """MSMQ_FAST_FUZZ_SECONDS says how long."""
    result = run(FUZZER, seconds(), tmp_path / "work", native(tmp_path / "build"))
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    print(result.stderr[-200:])


@pytest.mark.needs("clang", modules=["atheris"], rights=["sanitizers"])
@pytest.mark.long(seconds=120)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "change",
    [
        (
            "arrowcolumn.pyx",
            "if start < 0 or <int64_t>start + size > <int64_t>len(kept[index]):",
            "if start < 0:",
        ),
        ("arrowcolumn.pyx", "if before > (0 if data is None else self._data.shape[0]):", "if False:"),
    ],
    ids=["a view behind its buffer", "offsets behind the data"],
)
def test_a_planted_bounds_bug_is_found(tmp_path: Path, change: tuple[str, str, str]) -> None:
    module = native(tmp_path / "build", "arrowcolumn", change)
    result = run(FUZZER, 120, tmp_path / "work", module)
    assert result.returncode != 0
    assert "AddressSanitizer" in result.stderr
