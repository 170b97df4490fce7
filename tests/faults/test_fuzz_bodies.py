"""The fuzzer of the body decoders: a moment in `make test`, minutes guided by coverage in long tests; it
finds bugs that are planted.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.bodies import activex, binary, json
from tests.faults import bodies_inputs
from tests.faults.fuzz_native import ROOT
from tests.support.fuzzing import seconds

FUZZER = ROOT / "tests" / "faults" / "fuzz_bodies.py"


@pytest.mark.parametrize("decoder", bodies_inputs.SEEDS)
def test_no_finding_in_a_moment(decoder: str) -> None:
    assert bodies_inputs.run_random(decoder, 0.5, seed=1) >= 50


@pytest.mark.needs(modules=["atheris"])
@pytest.mark.long(seconds=20, fuzz=seconds())
@pytest.mark.timeout(seconds() + 300)
@pytest.mark.parametrize("decoder", bodies_inputs.SEEDS)
def test_damaged_bodies_for_long(decoder: str, tmp_path: Path) -> None:
    """Ten minutes, unless MSMQ_FAST_FUZZ_SECONDS says otherwise."""
    command = [sys.executable, FUZZER, decoder, "--seconds", str(seconds()), "--work", tmp_path / "work"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds() + 240, check=False)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    print(result.stderr[-400:])


PLANTED: dict[str, tuple[str, Any, str, Any]] = {
    "objects without a bound on depth": ("binary", binary, "MAX_DEPTH", 10**6),
    "an object is expanded each time": (
        "binary",
        binary._Tree,
        "_first",
        lambda self, identifier, place: place,
    ),
    "a date that no datetime holds": (
        "activex",
        activex,
        "_READERS",
        activex._READERS
        | {7: lambda body: activex._EPOCH + timedelta(days=activex._unpack(activex._R8, body))},
    ),
    "lists of any depth": ("json", json, "MAX_DEPTH", 10**6),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, *change = PLANTED[bug]
    monkeypatch.setattr(*change)
    with pytest.raises((AssertionError, ArithmeticError, ValueError, RecursionError)):
        bodies_inputs.run_random(decoder, 20, seed=1)
