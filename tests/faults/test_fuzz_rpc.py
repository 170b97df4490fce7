"""RPC sessions that are spoiled on their way leave nothing behind and surprise nobody; a mistake is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.requests import RequestIntake
from msmq_fast.rpc.services.openqueues import OpenQueues
from msmq_fast.rpc.services.reads import RemoteRead
from tests.faults.fuzz_native import ROOT, run
from tests.faults.fuzz_rpc import Finding, fuzz
from tests.support.fuzzing import seconds

FUZZER = ROOT / "tests" / "faults" / "fuzz_rpc.py"
SECONDS = seconds(3600)


@pytest.mark.rule("RP-12", "RP-13", "RP-16")
def test_spoiled_sessions_leave_nothing_behind() -> None:
    """The same sessions in every run."""
    tally = fuzz(2, 1)
    assert tally.heard > tally.sessions


@pytest.mark.long(seconds=10, fuzz=SECONDS)
@pytest.mark.timeout(SECONDS + 300)
def test_spoiled_sessions_for_long(tmp_path: Path) -> None:
    """An hour, unless MSMQ_FAST_FUZZ_SECONDS says otherwise."""
    result = run(FUZZER, SECONDS, tmp_path, None)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]


def _nothing(*_: Any) -> None:
    """What a careless author might have written."""


def _surprise(*_: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("place", "name", "wrong"),
    [
        (RequestIntake, "release", _nothing),
        (RemoteRead, "put_back", _nothing),
        (OpenQueues, "release", _nothing),
        (ServerConnection, "_cancel", _surprise),
    ],
)
def test_a_mistake_is_found(
    place: type, name: str, wrong: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, wrong)
    with pytest.raises(Finding):
        fuzz(60, 1)
