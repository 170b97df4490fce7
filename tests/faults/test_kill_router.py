"""Transactional messages through a router arrive exactly once and in order, whoever is killed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.faults.killrouter import Line

BODY = bytes(range(256)) * 2


def run(messages: int, seconds: float, pause: float, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="msmq-") as directory:
        account = asyncio.run(Line(Path(directory), seed).run(messages, seconds, pause, BODY))
    print(account.summary())
    assert account.kills
    account.check()


@pytest.mark.long(seconds=16)
@pytest.mark.rule("QB-110", "QB-121", "QB-208", "QB-234")
def test_a_few_seconds_of_kills() -> None:
    run(4_000, seconds=8.0, pause=2.0, seed=1)


@pytest.mark.long(seconds=400)
@pytest.mark.timeout(1_800)
@pytest.mark.rule("QB-110", "QB-121", "QB-208", "QB-234")
def test_five_minutes_of_kills() -> None:
    run(200_000, seconds=300.0, pause=5.0, seed=2)
