"""The crash matrix (MS-MQDMPR inventory, 8.6): every durability unit, every kind of fault, and after each the
invariants I1 … I8. How many faults were injected is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from msmq_fast.store.schema import Table
from tests.faults.matrix import memory
from tests.faults.matrix.account import check
from tests.faults.matrix.host import LOG_SIZE, Host
from tests.faults.matrix.runner import Ledger, judge_again, judge_here, play, started
from tests.faults.matrix.scenario import Scenario
from tests.faults.matrix.scenarios import SCENARIOS
from tests.faults.matrix.scenarios_messages import ENQUEUE, RECEIVE

ROOT = Path(__file__).parent.parent.parent.parent


def tell(capsys: pytest.CaptureFixture[str], unit: str, counts: Counter[str]) -> None:
    with capsys.disabled():
        lived = counts.pop("lived through", 0)
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        if lived:
            kinds += f"; {lived} lived through"
        print(f"\n{unit}: {counts.total()} faults injected ({kinds})", end=" ")


def on_disk(directory: Path, log_size: int, *units: str) -> dict[str, Counter[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.matrix.disk", str(directory), str(log_size), *units],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return {unit: Counter(counts) for unit, counts in json.loads(done.stdout).items()}


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(one, id=one.unit) for one in SCENARIOS],
)
@pytest.mark.rule("DU-01", "DU-02", "DU-03", "DU-04", "DU-05", "DU-06", "DU-07", "DU-08", "DU-09", "DU-10")
@pytest.mark.rule("DU-11", "DU-12", "DU-13", "DU-14", "DU-15", "DU-16", "DU-17", "DU-18", "DU-19")
def test_each_call_commit_and_moment(scenario: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    """The store is in memory: the n-th call raises, the n-th commit finds no room, the process dies before,
    during and after the n-th commit, for every n.
    """
    counts: Counter[str] = Counter()
    memory.inject(scenario, counts)
    tell(capsys, scenario.unit, counts)
    assert counts["call"] >= 6
    assert counts["full"] == counts["killed under way"] == counts["killed after"] > 0


@pytest.mark.rule("DU-01", "KV-G3")
def test_killed_processes_full_disks_and_torn_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the redo log; the next test is about all units, also without it."""
    for unit, counts in on_disk(tmp_path, LOG_SIZE, "DU-01").items():
        tell(capsys, f"{unit} on disk", counts)
        assert len(counts) == 5


@pytest.mark.parametrize("log_size", [0, LOG_SIZE])
@pytest.mark.long(seconds=180)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "unit",
    [one.unit for one in SCENARIOS],
)
def test_every_unit_on_disk(
    unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], log_size: int
) -> None:
    """Processes that are killed with SIGKILL before, during and after each commit, before they hear of it; a
    limit of the file size that is in force during one commit; data files in which a commit stands in part.
    """
    counts = on_disk(tmp_path, log_size, unit)[unit]
    tell(capsys, f"{unit} on disk", counts)
    assert len(counts) == 5


def test_every_unit_is_in_the_matrix() -> None:
    units = [scenario.unit for scenario in SCENARIOS]
    assert sorted(units) == [*(f"DU-{number:02}" for number in range(1, 20)), "LEASE"]


# ---- the judges see what they should see


def played(scenario: Scenario) -> tuple[Host, Ledger]:
    host = started(scenario, Host(**scenario.settings))
    ledger = Ledger()
    play(scenario, host, ledger)
    judge_here(scenario, host, ledger)
    return host, ledger


def test_what_was_acknowledged_and_is_not_there_is_noticed() -> None:
    host = started(ENQUEUE, Host())
    with pytest.raises(AssertionError, match="is none of"):
        judge_again(ENQUEUE, host, Ledger(begun=1, done=1))


@pytest.mark.parametrize(
    ("table", "which", "what"),
    [(Table.CONTENT, 0, "."), (Table.POSITION, -1, "is none of"), (Table.POSITION, 0, "is none of")],
)
def test_a_record_that_is_missing_is_noticed(table: Table, which: int, what: str) -> None:
    host, ledger = played(RECEIVE)
    records = host.memory.tables.tables[table]
    del records[sorted(records)[which]]
    with pytest.raises((AssertionError, ValueError), match=what):
        judge_here(RECEIVE, host, ledger)


def test_wrong_accounts_and_used_numbers_are_noticed() -> None:
    host, ledger = played(RECEIVE)
    host.manager.ledger.bytes += 1
    with pytest.raises(AssertionError, match="I6"):
        check(host)
    host.manager.ledger.bytes -= 1
    ledger.numbers.take(host)
    host.manager.ledger.sequence -= 1
    with pytest.raises(AssertionError, match="I5"):
        ledger.numbers.check(host)
