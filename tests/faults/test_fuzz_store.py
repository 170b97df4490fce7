"""The store's fuzzer: a moment in `make test`, minutes under the address sanitizer in `make test-long`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import fuzz_store
from tests.faults.fuzz_native import INSTRUMENTED, ROOT, build, instrumented, run
from tests.support.fuzzing import seconds

FUZZER = ROOT / "tests" / "faults" / "fuzz_store.py"


def test_no_finding_in_two_seconds() -> None:
    assert fuzz_store.run_random(2, seed=1) >= 1000


def test_good_records_are_good() -> None:
    for data in fuzz_store.seeds():
        fuzz_store.one_input(data)


@pytest.mark.needs(modules=["atheris"])
@pytest.mark.long(seconds=60, fuzz=seconds())
@pytest.mark.timeout(seconds() + 400)
def test_loader_and_decoder_agree_on_damaged_records(tmp_path: Path) -> None:
    """MSMQ_FAST_FUZZ_SECONDS says how long."""
    result = run(FUZZER, seconds(), tmp_path / "work", instrumented("tables", tmp_path / "build"))
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    print(result.stderr[-200:])


@pytest.mark.needs("clang", modules=["atheris"], rights=["sanitizers"])
@pytest.mark.long(seconds=90)
@pytest.mark.timeout(400)
def test_a_planted_bounds_bug_is_found(tmp_path: Path) -> None:
    """A loader that does not look at the size of a position record reads behind it."""
    guard = "size < sizeof(PositionRecord) or size < position_size(record)"
    change = ("tables.pyx", guard, "size < 1")
    module = build("tables", tmp_path, change, flags=INSTRUMENTED, compiler="clang")
    result = run(FUZZER, 60, tmp_path / "work", module)
    assert result.returncode != 0
    assert "AddressSanitizer" in result.stderr or "AssertionError" in result.stdout
