"""Messages that were refused or expired, and counts that are gone: an audit calls neither `ok`."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import session, silver
from msmq_fast.spark.lake.compact import expire_bronze
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.reconcile import reconciliation
from msmq_fast.spark.lake.summary import undelivered
from tests.spark.lake.feeds import DAY
from tests.spark.lake.undelivered import NEXT, Traffic
from tests.support.lakes import contents, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(400)  # two audits


@pytest.fixture(scope="module")
def lake(small: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.create(str(tmp_path_factory.mktemp("undelivered") / "lake"))
    traffic = Traffic()
    write_batch(lake, "events", 0, traffic.rows())
    write_batch(lake, "counters", 0, traffic.told())
    silver.merge(small, lake)
    return lake


@pytest.fixture
def audit(
    lake: Lake, small: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """`msmq-lake audit`, and what it says."""
    monkeypatch.setattr(session, "start", lambda name, **_: small)

    def run(*arguments: str) -> tuple[int, str]:
        code = main(["audit", "--lake", lake.root, *arguments])
        shown = capsys.readouterr()
        return code, shown.out or shown.err

    return run


@pytest.mark.long(seconds=13)
def test_what_was_refused_is_in_the_headline(lake: Lake, audit: Any, tmp_path: Path) -> None:
    told = json.loads(audit("--json")[1])
    assert told["verdict"] == "undelivered"
    assert (told["sent"], told["received"], told["undelivered"], told["discarded"]) == (10, 4, 5, 3)
    assert (told["open"], told["overdue"]) == (1, 1)
    refused = {"arrived": False, "state": "nacked", "reason": "NACK_BAD_DST_Q", "n": 3}
    expired = {"arrived": False, "state": "expired", "reason": "NACK_REACH_QUEUE_TIMEOUT", "n": 2}
    assert told["undelivered_by"] == [refused | {"dead_lettered": 0}, expired | {"dead_lettered": 2}]
    html, text = tmp_path / "report.html", tmp_path / "report.md"
    assert main(["report", "--lake", lake.root, "--html", str(html), "--markdown", str(text)]) == Exit.OK
    figures = (
        "5 messages did not reach their queue: 3 refused (NACK_BAD_DST_Q), 2 expired "
        "(NACK_REACH_QUEUE_TIMEOUT) (2 of them are in dead-letter queues)",
        "1 messages wait at their sender or at a router for longer than the time allowed",
    )
    page = html.read_text()
    assert 'class="verdict good"' not in page
    for figure in figures:
        assert f'<p class="verdict warn"><b>{figure}.</b></p>' in page
        assert f"**{figure}.**" in text.read_text().replace("\\_", "_")
        assert figure in "; ".join(undelivered(told))
    verdicts = {
        row["dest"].rpartition("\\")[2]: row["verdict"]
        for row in lake.dataset("gold/reconciliation").to_table().to_pylist()  # type: ignore[union-attr]
    }
    assert verdicts == {"nosuch": "undelivered", "letters": "ok", "orders": "ok", "away": "undelivered"}


def test_a_destination_is_ok_only_if_its_count_was_compared(small: SparkSession) -> None:
    life: dict[str, Any] = {"day": DAY.date(), "sender": "s", "receiver": "r", "seen_sent": True}
    life |= {"seen_arrived": True, "state": "received", "dead_lettered": False, "local": False}
    life |= {"duplicates": 0, "overdue": False, "proven": True}
    lives = small.createDataFrame([life | {"dest": dest} for dest in ("equal", "differs", "absent", "gone")])
    gaps = small.createDataFrame([], "sender STRING, dest STRING, kind STRING")
    counts = small.createDataFrame(
        [("r", "equal", True), ("r", "differs", False), ("r", "absent", None), ("x", "gone", False)],
        "qm STRING, queue STRING, equal BOOLEAN",
    )
    verdicts = {row.dest: row.verdict for row in reconciliation(lives, gaps, counts).collect()}
    assert verdicts == {"equal": "ok", "differs": "unproven", "absent": "unproven", "gone": "ok"}


@pytest.mark.long(seconds=13)
def test_what_was_compared_once_is_not_audited_again_without_its_counts(lake: Lake, audit: Any) -> None:
    if not lake.days("gold/reconciliation"):
        audit()
    told = json.loads(audit("--json")[1]) | {"audited_now": False}
    expire_bronze(lake, 0, NEXT.date() + timedelta(days=1))
    assert contents(lake, "counters") == []
    for more in ((), ("--all",)):
        assert json.loads(audit("--json", *more)[1]) == told
    code, said = audit("--day", str(DAY.date()))
    assert code == Exit.REFUSED
    assert "deleted the counts" in said

    lake.delete("gold")  # as if it had never been audited
    lake = Lake.open(lake.root)
    code, said = audit()
    assert code == Exit.OK
    assert "unproven" in said
    assert "nothing lost" not in said
    rows = lake.dataset("gold/counters").to_table().to_pylist()  # type: ignore[union-attr]
    assert {(row["queue"], row["equal"]) for row in rows} == {
        ("client\\system$;deadletter", None),
        ("server\\private$\\orders", None),
    }
