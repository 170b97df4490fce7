"""The fuzzer runs clean on RPC framing, and finds each of three bounds bugs planted in a copy of it."""

from pathlib import Path

import pytest

from tests.faults.fuzz_native import ROOT, build, instrumented, run
from tests.support.fuzzing import seconds

pytestmark = pytest.mark.needs(modules=["atheris"])

FUZZER = ROOT / "tests" / "faults" / "fuzz_rpcframing.py"
FOUND = 77

# what stands in rpcframing.pyx, and what a careless author might have written
BUGS = {
    "the token may be longer than the PDU": ("            if room < body:\n", "            if room < 0:\n"),
    "an object UUID is not asked for its bytes": (
        "            if <Py_ssize_t>self.length < body:\n",
        "            if self.length < STUB_HEADER:\n",
    ),
    "the last fragment is padded once too often": (
        "pad = -last & (align - 1) if sec != NULL else 0",
        "pad = -last & (align - 1)",
    ),
}


@pytest.mark.long(seconds=60, fuzz=seconds())
@pytest.mark.timeout(seconds() + 400)
def test_no_difference_between_native_framing_and_the_reference(tmp_path: Path) -> None:
    """Guided by the branches of both where clang is installed; MSMQ_FAST_FUZZ_SECONDS says how long."""
    result = run(FUZZER, seconds(), tmp_path / "work", instrumented("rpcframing", tmp_path / "build"))
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bounds_bug_is_found(bug: str, tmp_path: Path) -> None:
    right, wrong = BUGS[bug]
    module = build("rpcframing", tmp_path, ("rpcframing.pyx", right, wrong))
    result = run(FUZZER, 120, tmp_path / "work", module)
    assert result.returncode == FOUND, result.stderr[-4000:]
    assert "AssertionError: native" in result.stdout
