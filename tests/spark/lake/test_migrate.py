"""Lakes of earlier releases, as Delta tables: equal row by row, whatever interrupts the command."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import migrate as module
from msmq_fast.spark.lake.checkpoints import Checkpoints
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.migrate import migrate
from tests.spark.lake.feeds import DAY, Pair
from tests.spark.lake.oldlakes import OldLake
from tests.support.lakes import contents

MESSAGE = {"qm_guid": "q", "queue": "orders", "arrived_time": DAY, "label": "x", "body_sha256": "h"}


def events(number: int) -> list[dict[str, Any]]:
    return Pair(3).rows()[number::3]


def fill(lake: OldLake) -> None:
    """What an archive, an audit and another archive without bodies left."""
    run = "main-events-1"
    for number in range(3):
        lake.batch("events", run, number, events(number))
    lake.batch("events", run, 3, events(0), success=False)
    for number in range(2):
        row = MESSAGE | {"message_id": f"m{number}", "arrived_time": DAY + timedelta(days=number)}
        lake.batch("messages", "main-messages-2", number, [row])
        lake.batch("messages", "bare-messages-3-headers", number, [row | {"message_id": f"b{number}"}])
    lake.batch("bodies", "main-messages-2", 0, [{"body_sha256": "h", "body": b"x"}])
    lake.batch("counters", "main", 0, Pair(3).told(DAY + timedelta(days=1)))
    for qm in ("a", "b"):
        rows = [row for row in Pair(3).rows() if row["qm_guid"] == Pair(3).managers["ab".index(qm)].guid]
        guid = rows[0]["qm_guid"]
        lake.day("silver/events", f"day={DAY.date()}/qm={guid}", rows)
    lake.day("silver/lifecycle", f"day={DAY.date()}", [{"message_id": "m0", "state": "lost"}])
    lake.day("gold/reconciliation", f"day={DAY.date()}", [{"verdict": "ok", "sent": 1}])
    other = f"day={DAY.date() + timedelta(days=1)}"
    lake.day("gold/reconciliation", other, [{"verdict": "lost", "sent": 2, "discarded": 1}])
    lake.note("_state/silver.json", {run: 2})
    for content, name in (("events", run), ("messages", "main-messages-2")):
        lake.note(f"_state/runs/main-{content}.json", {"run": name})
        (lake.root / f"_state/checkpoints/main/{content}/offsets").mkdir(parents=True)
        (lake.root / f"_state/checkpoints/main/{content}/metadata").write_text("{}")


def by_key(rows: list[dict[str, Any]]) -> list[str]:
    """Rows for a comparison: the columns that have a value, without those that the new tables add."""
    left_out = ("day", "qm", "body_kept", "schema_version")
    found = []
    for row in rows:
        known = {name: value for name, value in row.items() if value is not None and name not in left_out}
        found.append(json.dumps(known, sort_keys=True, default=datetime.isoformat))
    return sorted(found)


def check(lake: Lake) -> None:
    assert by_key(contents(lake, "events")) == by_key(Pair(3).rows())
    assert by_key(lake.dataset("silver/events").to_table().to_pylist()) == by_key(Pair(3).rows())
    kept = {row["message_id"]: row["body_kept"] for row in contents(lake, "messages")}
    assert kept == {"m0": True, "m1": True, "b0": False, "b1": False}
    assert {row["label"] for row in contents(lake, "messages")} == {"x"}
    assert contents(lake, "bodies") == [{"body_sha256": "h", "body": b"x"}]
    assert by_key(contents(lake, "counters")) == by_key(Pair(3).told(DAY + timedelta(days=1)))
    found = lake.dataset("gold/reconciliation").to_table().to_pylist()
    assert sorted((row["verdict"], row["sent"], row["discarded"]) for row in found) == [
        ("lost", 2, 1),
        ("ok", 1, None),
    ]
    assert len(lake.days("gold/reconciliation")) == 2
    assert not list(Path(lake.root).rglob("run=*"))
    assert not list(Path(lake.root).rglob("part-*"))
    assert lake.names("_state/runs") == []


@pytest.mark.parametrize("old_names", [False, True])
def test_a_lake_is_equal_row_by_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old_names: bool
) -> None:
    fill(OldLake(tmp_path / "lake", old_names=old_names))
    root = str(tmp_path / "lake")
    assert main(["migrate", "--lake", root]) == Exit.OK
    assert "4 of bronze/messages" in capsys.readouterr().out
    lake = Lake.open(root)
    check(lake)
    # The archive goes on: batch 2 is there, batch 3 is not.
    run = Checkpoints(lake, "main").run("events")
    assert lake.table("bronze/events").marked(run) == 2
    assert lake.table("bronze/messages").marked(Checkpoints(lake, "main").run("messages")) == 1
    events_table = lake.table("bronze/events").delta()
    assert events_table is not None
    assert lake.table("silver/events").marked("bronze/events") == events_table.version()
    assert main(["migrate", "--lake", root]) == Exit.OK
    assert "nothing to migrate" in capsys.readouterr().out


@pytest.mark.parametrize("step", range(9))
def test_a_migration_that_is_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    fill(OldLake(tmp_path / "lake"))
    lake = Lake(str(tmp_path / "lake"))
    left = [step]

    def stopping(name: str) -> Any:
        whole = getattr(module, name)

        def call(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            found = whole(*arguments)
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return found

        return call

    with monkeypatch.context() as patched:
        for name in ("_migrated", "_take_over_runs"):
            patched.setattr(module, name, stopping(name))
        with pytest.raises(KeyboardInterrupt):
            migrate(lake)
    with pytest.raises(CommandError, match="migrate"):
        Lake.open(lake.root)
    migrate(Lake(lake.root))
    check(Lake.open(lake.root))


def test_what_an_earlier_release_left_unfinished_is_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = OldLake(tmp_path / "lake")
    lake.note("_state/swap.json", {})
    assert main(["migrate", "--lake", str(lake.root)]) == Exit.FAILURE
    assert "earlier release was interrupted" in capsys.readouterr().err
    assert main(["migrate", "--lake", str(tmp_path / "nothing")]) == Exit.NOT_FOUND
