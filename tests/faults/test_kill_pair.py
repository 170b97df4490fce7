"""Nothing that A has answered for is lost while both sides are killed at random moments."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.faults.killpair import Account, Pair
from tests.support.processes.pair import free_port

BODY = bytes(range(256)) * 4


def run(count: int, kills: int, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="msmq-") as directory:
        pair = Pair(Path(directory), free_port(), seed)
        account = asyncio.run(pair.run(count, kills, BODY))
        check(pair, account)


def check(pair: Pair, account: Account) -> None:
    summary = (
        f"{account.count} messages, {len(account.kills)} kills, {len(account.received)} received, "
        f"{len(account.repeated)} sent again by the test, {len(account.duplicate_ids())} duplicate ids"
    )
    print(summary)
    assert not account.missing(), (summary, sorted(account.missing())[:20])
    assert account.repeated_numbers() <= account.repeated, summary
    assert not pair.unexplained(account), summary
    assert not account.out_of_order(), (summary, account.out_of_order()[:20])


@pytest.mark.rule("QB-099", "QB-106", "QB-117", "DU-13")
def test_a_few_kills() -> None:
    run(count=4000, kills=2, seed=1)


@pytest.mark.long(seconds=150)
@pytest.mark.timeout(900)
@pytest.mark.rule("QB-099", "QB-106", "QB-117", "DU-13")
def test_ten_kills_of_each_side() -> None:
    run(count=100_000, kills=10, seed=2)
