"""The measurement of an archive that follows: its verdicts, and one short run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.follow import Archived, Result, Sample, checks, follow, grows
from msmq_fast.spark.lake.layout import Lake
from tests.support.lakes import write_batch


def sample(seconds: float, behind_s: float, sent: int = 0) -> Sample:
    return Sample(seconds, sent, 0, 0, 0, behind_s, 0, 0)


def test_only_committed_batches_are_archived(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    archived = Archived(tmp_path / "lake")
    assert archived.look() == {"events": 0, "messages": 0, "bodies": 0}
    event = {"qm_guid": "q", "event_time": 0}
    write_batch(lake, "events", 0, [event] * 5)
    write_batch(lake, "events", 1, [event] * 7, success=False)
    write_batch(lake, "messages", 0, [{"message_id": "m"}] * 2)
    assert archived.look() == {"events": 5, "messages": 2, "bodies": 0}
    write_batch(lake, "events", 1, [event] * 7)
    assert archived.look()["events"] == 12


def test_what_grows_is_the_last_third() -> None:
    steady = [sample(5.0 * n, behind) for n, behind in enumerate([20, 9, 6, 5, 6, 5, 6, 5, 6])]
    assert abs(grows(steady)) <= 1
    falling_back = [sample(5.0 * n, 2.0 * n) for n in range(9)]
    assert grows(falling_back) == pytest.approx(6)
    assert grows([sample(5, 3)]) == 0


def test_verdicts() -> None:
    samples = [sample(5.0 * n, 5, sent=500 * n) for n in range(1, 7)]
    good = Result(3000, 3000, 3000, 9000, 9000, 4.0, 1.0, 1.0, samples)
    assert all(check.passed for check in checks(good, rate=100))
    assert not checks(good, rate=200)[0].passed  # the sender did not keep its rate
    bad = Result(3000, 3001, 2999, 9000, 8999, 4.0, 1.0, 1.0, [*samples, sample(35, 61, sent=3500)])
    assert [check.passed for check in checks(bad, rate=100)] == [True, False, False, False, False, False]


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kept", [False, True])
def test_a_short_run_has_everything(tmp_path: Path, kept: bool) -> None:
    found = follow(tmp_path, rate=500, seconds=6, body=100, kept=kept, interval="1 second")
    assert found.sent == found.messages == found.bodies == found.samples[-1].sent > 2000
    assert found.told == found.events >= found.sent * (1 if kept else 3)
    assert list(tmp_path.iterdir()) == []
