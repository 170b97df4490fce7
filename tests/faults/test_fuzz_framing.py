"""The fuzzer runs clean on the parser, and finds each of three bounds bugs planted in a copy of it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.fuzz_framing_build import BUGS, build_copy
from tests.faults.fuzz_native import INSTRUMENTED, ROOT, run
from tests.support.fuzzing import seconds

pytestmark = pytest.mark.needs(modules=["atheris", "coverage"])

FUZZER = ROOT / "tests" / "faults" / "fuzz_framing.py"
FOUND = 77
BRANCHES = 95  # percent of the reference that the corpus must reach


@pytest.mark.long(seconds=60, fuzz=seconds())
@pytest.mark.timeout(seconds() + 400)
def test_no_difference_between_the_native_parser_and_the_reference(tmp_path: Path) -> None:
    """Guided by the branches of both where clang is installed; MSMQ_FAST_FUZZ_SECONDS says how long."""
    work = tmp_path / "work"
    native = None
    if shutil.which("clang") is not None:
        (tmp_path / "build").mkdir()
        native = build_copy(tmp_path / "build", flags=INSTRUMENTED, compiler="clang")
    result = run(FUZZER, seconds(), work, native)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    print(result.stderr[-200:])
    reached = branches(work / "corpus")
    print(f"{reached:.1f} % of the branches of the reference")
    assert reached >= BRANCHES


def branches(corpus: Path) -> float:
    """Percentage of lines and branches of the reference that the inputs reach, measured in a new process."""
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, str(corpus)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return float(result.stdout.split()[-1])


MEASURE = """
import io, pathlib, sys
import coverage
measured = coverage.Coverage(branch=True, include=["*/tests/support/packet/reference.py"], data_file=None)
measured.start()
from tests.faults.fuzz_framing import whole
from tests.support.packet.reference import Refused, reference
for path in pathlib.Path(sys.argv[1]).iterdir():
    data = path.read_bytes()
    for packet in (data, whole(data)):
        try:
            reference(packet)
        except Refused:
            pass
measured.stop()
print(measured.report(file=io.StringIO()))
"""


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bounds_bug_is_found(bug: str, tmp_path: Path) -> None:
    module = build_copy(tmp_path, *BUGS[bug])
    result = run(FUZZER, 120, tmp_path / "work", module)
    assert result.returncode == FOUND, result.stderr[-4000:]
    assert "AssertionError: native" in result.stdout


@pytest.mark.long(seconds=30)
def test_a_copy_without_a_bug_is_clean(tmp_path: Path) -> None:
    """So that what the fuzzer finds in the other copies is the bug and not the copying."""
    right, _ = next(iter(BUGS.values()))
    module = build_copy(tmp_path, right, right)
    result = run(FUZZER, 5, tmp_path / "work", module)
    assert result.returncode == 0, result.stderr[-4000:]
