"""The root of a lake and its small files."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.layout import Lake
from tests.support.lakes import contents, write_batch


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"))


def test_only_committed_batches_count(lake: Lake) -> None:
    row = {"qm_guid": "q", "event_time": 0, "feed_seq": 1}
    write_batch(lake, "events", 0, [row])
    write_batch(lake, "events", 1, [row | {"feed_seq": 2}], success=False)
    assert [found["feed_seq"] for found in contents(lake, "events")] == [1]
    assert contents(lake, "messages") == []
    assert [table.name for table in lake.tables()] == ["bronze/events"]
    assert len(lake.table("bronze/events").strays()) == 1


def test_a_directory_with_something_else_is_no_lake(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CommandError, match="neither a lake nor empty") as raised:
        Lake.create(str(tmp_path))
    assert raised.value.code == Exit.USAGE
    with pytest.raises(CommandError, match="no lake at"):
        Lake.open(str(tmp_path))


def test_a_lake_of_a_later_version_is_refused(lake: Lake) -> None:
    lake.write_json("_state/lake.json", {"schema_version": 99})
    with pytest.raises(CommandError, match="schema version 99"):
        Lake.open(lake.root)
    for text in ("{", "[]"):
        Path(lake.path("_state/lake.json")).write_text(text)
        with pytest.raises(CommandError, match="is damaged"):
            Lake.open(lake.root)


def test_a_lake_can_be_named_by_url(tmp_path: Path) -> None:
    lake = Lake.create(f"file://{tmp_path}/lake")
    write_batch(Lake.open(str(tmp_path / "lake")), "events", 0, [{"qm_guid": "q", "event_time": 0}])
    assert len(contents(lake, "events")) == 1
