"""The fuzzer of columns: a moment in `make test`, minutes under the address sanitizer in `make test-long`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults import columns_inputs
from tests.faults.columns_build import instrumented
from tests.faults.fuzz_native import ROOT, run
from tests.support.fuzzing import seconds

FUZZER = ROOT / "tests" / "faults" / "fuzz_columns.py"


def test_no_finding_in_a_second() -> None:
    assert columns_inputs.run_random(1, seed=1) >= 50


def test_sound_inputs_are_sound() -> None:
    for data in columns_inputs.seeds():
        columns_inputs.one_input(data)


@pytest.mark.needs(modules=["atheris"])
@pytest.mark.long(seconds=120, fuzz=seconds())
@pytest.mark.timeout(seconds() + 700)
def test_columns_of_damaged_records(tmp_path: Path) -> None:
    """MSMQ_FAST_FUZZ_SECONDS says how long."""
    native = instrumented(tmp_path / "build") if shutil.which("clang") else None
    result = run(FUZZER, seconds(), tmp_path / "work", native)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    print(result.stderr[-200:])


@pytest.mark.needs("clang", modules=["atheris"], rights=["sanitizers"])
@pytest.mark.long(seconds=300)
@pytest.mark.timeout(900)
def test_a_planted_bounds_bug_is_found(tmp_path: Path) -> None:
    """An encoder that believes the count of a record reads behind it."""
    guard = (
        "if size != sizeof(PackHead) + <size_t>head.entry_size * head.count:\n        return MDB_CORRUPTED"
    )
    change = ("columnevents.pyx", guard, "if False:\n        return MDB_CORRUPTED")
    result = run(FUZZER, 60, tmp_path / "work", instrumented(tmp_path / "build", "columnevents", change))
    assert result.returncode != 0
    assert "AddressSanitizer" in result.stderr or "AssertionError" in result.stdout
