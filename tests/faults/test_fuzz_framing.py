"""The fuzzer runs clean on the parser, and finds each of three bounds bugs planted in a copy of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.fuzz_framing_build import BUGS, build_copy

ROOT = Path(__file__).parents[2]
FUZZER = ROOT / "tests" / "faults" / "fuzz_framing.py"
FOUND = 77


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=300)


@pytest.mark.long(seconds=40)
def test_no_difference_between_the_native_parser_and_the_reference(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    result = fuzz("--seconds", "30", "--work", str(tmp_path))
    assert result.returncode == 0, result.stderr[-4000:]


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bounds_bug_is_found(bug: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    module = build_copy(tmp_path, *BUGS[bug])
    result = fuzz("--seconds", "120", "--work", str(tmp_path / "work"), "--native", str(module))
    assert result.returncode == FOUND, result.stderr[-4000:]
    assert "AssertionError: native" in result.stdout


@pytest.mark.long(seconds=30)
def test_a_copy_without_a_bug_is_clean(tmp_path: Path) -> None:
    """So that what the fuzzer finds in the other copies is the bug and not the copying."""
    pytest.importorskip("atheris")
    right, _ = next(iter(BUGS.values()))
    module = build_copy(tmp_path, right, right)
    result = fuzz("--seconds", "5", "--work", str(tmp_path / "work"), "--native", str(module))
    assert result.returncode == 0, result.stderr[-4000:]
