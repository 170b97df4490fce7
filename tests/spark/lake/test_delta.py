"""The Delta tables under a lake: each batch once, whatever is killed, and no reader sees a half change."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet

from msmq_fast.spark.lake.appends import CHECKPOINT_EVERY
from msmq_fast.spark.lake.delta import Conflict, Landed, Mark, Table
from msmq_fast.spark.lake.storage import file_system, normalized
from tests.support.objects import s3_server

S3 = (pytest.mark.long(seconds=5), pytest.mark.needs(modules=("moto",)))
SCHEMA = pa.schema([("number", pa.int64()), ("day", pa.date32())])


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of a server that speaks S3, and its credentials in the environment."""
    with s3_server() as server, pytest.MonkeyPatch.context() as patched:
        for name, value in server.environment.items():
            patched.setenv(name, value)
        yield f"s3://{server.bucket()}"


@pytest.fixture(params=["local", pytest.param("s3", marks=S3)])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path)
    return f"{request.getfixturevalue('bucket')}/{tmp_path.name}"


def table(root: str) -> Table:
    return Table(f"{root}/bronze/things", "bronze/things", ("day",))


def land(root: str, name: str, numbers: list[int], day: str = "2026-03-01") -> Landed:
    """A file as a task of the archive writes it."""
    path = f"day={day}/{name}.parquet"
    files = file_system(normalized(root))
    if "://" not in root:
        files.create_dir(f"bronze/things/day={day}", recursive=True)
    with files.open_output_stream(f"bronze/things/{path}") as stream:
        parquet.write_table(pa.table({"number": pa.array(numbers, pa.int64())}), stream)
        size = stream.tell()
    stats = f'{{"numRecords": {len(numbers)}}}'
    return Landed("bronze/things", path, len(numbers), size, f'{{"day": "{day}"}}', stats)


def numbers(root: str, version: int | None = None) -> list[int]:
    found = table(root).delta(version)
    return [] if found is None else sorted(found.to_pyarrow_table()["number"].to_pylist())


def test_a_batch_counts_once(root: str) -> None:
    things = table(root)
    assert things.files() == []
    assert things.marked("run") is None
    assert things.commit([land(root, "a", [1, 2])], SCHEMA, marks=[Mark("run", 0)])
    assert not things.commit([land(root, "b", [1, 2])], SCHEMA, marks=[Mark("run", 0)])
    assert things.commit([land(root, "c", [3])], SCHEMA, marks=[Mark("run", 1)])
    assert things.commit([land(root, "d", [4])], SCHEMA, marks=[Mark("other", 0)])
    assert things.commit([], SCHEMA, marks=[Mark("run", 2)])  # a batch without rows
    assert numbers(root) == [1, 2, 3, 4]
    assert table(root).marked("run") == 2
    assert [file.rows for file in things.files(day="2026-03-01")] == [1, 1, 2] or len(things.files()) == 3
    assert things.files(day="2026-03-02") == []
    assert [numbers(root, version) for version in (0, 1, 2, 3)] == [[], [1, 2], [1, 2, 3], [1, 2, 3, 4]]


def test_of_two_that_replace_the_same_files_one_fails(root: str) -> None:
    first, second = table(root), table(root)
    first.commit([land(root, "a", [1])], SCHEMA)
    old = second.files()
    first.commit([land(root, "b", [2])], SCHEMA, removed=first.files())
    with pytest.raises(Conflict, match="bronze/things"):
        second.commit([land(root, "c", [3])], SCHEMA, removed=old)
    assert numbers(root) == [2]


def test_two_processes_with_one_mark_commit_once(root: str) -> None:
    first, second = table(root), table(root)
    first.commit([land(root, "a", [1])], SCHEMA, marks=[Mark("run", 0)])
    second.files()
    assert first.commit([land(root, "b", [2])], SCHEMA, marks=[Mark("run", 1)])
    assert not second.commit([land(root, "c", [2])], SCHEMA, marks=[Mark("run", 1)])
    assert numbers(root) == [1, 2]


def test_work_that_another_process_has_done_meanwhile_is_not_added(root: str) -> None:
    """Two merges begin at the same state; the later one saw more, and would add the same rows again."""
    first, second = table(root), table(root)
    first.commit([land(root, "a", [1])], SCHEMA, marks=[Mark("source", 3)])
    seen = {"source": second.marked("source")}
    first.commit([land(root, "b", [2])], SCHEMA, marks=[Mark("source", 4)], seen=seen)
    with pytest.raises(Conflict, match="same work"):
        second.commit([land(root, "c", [2, 3])], SCHEMA, marks=[Mark("source", 5)], seen=seen)
    assert numbers(root) == [1, 2]


def test_appends_go_on_behind_what_others_do(root: str) -> None:
    """Commits of another process, its checkpoints and new columns; marks that it has used count, too."""
    first, second = table(root), table(root)
    for number in range(3):
        assert first.commit([land(root, f"a{number}", [number])], SCHEMA, marks=[Mark("run", number)])
    wider = SCHEMA.append(pa.field("label", pa.string()))
    assert second.commit([land(root, "b", [3])], wider, marks=[Mark("run", 3)])
    assert second.commit([land(root, "c", [4])], wider, marks=[Mark("other", 7)])
    assert not first.commit([land(root, "d", [3])], SCHEMA, marks=[Mark("run", 3)])
    second.commit(
        [land(root, "e", [5])], wider, removed=[file for file in second.files() if "/a0" in file.path]
    )
    second.compact()
    assert first.commit([land(root, "f", [6])], SCHEMA, marks=[Mark("run", 4)])
    assert not first.commit([land(root, "g", [6])], SCHEMA, marks=[Mark("run", 4)])
    assert numbers(root) == [1, 2, 3, 4, 5, 6]
    assert (table(root).marked("run"), table(root).marked("other")) == (4, 7)


def test_many_appends_leave_checkpoints_and_no_other_files(tmp_path: Path) -> None:
    things = table(str(tmp_path))
    landed = land(str(tmp_path), "a", [1])
    for number in range(2 * CHECKPOINT_EVERY + 5):
        assert things.commit([landed] if number == 0 else [], SCHEMA, marks=[Mark("run", number)])
    log = sorted(path.name for path in Path(f"{things.uri}/_delta_log").iterdir())
    assert {path.partition(".")[2] for path in log} == {"", "json", "checkpoint.parquet"}
    checkpoints = [int(path.partition(".")[0]) for path in log if path.endswith("checkpoint.parquet")]
    assert checkpoints == [CHECKPOINT_EVERY - 1, 2 * CHECKPOINT_EVERY - 1]
    assert table(str(tmp_path)).marked("run") == 2 * CHECKPOINT_EVERY + 4
    assert numbers(str(tmp_path)) == [1]


def test_a_table_of_a_newer_protocol_is_left_to_deltalake(tmp_path: Path) -> None:
    things = table(str(tmp_path))
    things.commit([land(str(tmp_path), "a", [1])], SCHEMA)
    DeltaTable(things.uri).alter.add_constraint({"positive": "number > 0"})
    things.commit([land(str(tmp_path), "b", [2])], SCHEMA)
    things.commit([land(str(tmp_path), "c", [3])], SCHEMA)
    said = [entry.get("engineInfo", "") for entry in DeltaTable(things.uri).history(2)]
    assert all(said)
    assert numbers(str(tmp_path)) == [1, 2, 3]


def test_a_table_that_is_made_anew_gets_no_commit_behind_its_end(tmp_path: Path) -> None:
    root = str(tmp_path)
    things = table(root)
    for number in range(3):
        things.commit([land(root, f"a{number}", [number])], SCHEMA, marks=[Mark("run", number)])
    shutil.rmtree(things.uri)
    table(root).commit([land(root, "b", [7])], SCHEMA)
    with contextlib.suppress(Conflict):  # deltalake judges
        things.commit([land(root, "c", [8])], SCHEMA, marks=[Mark("run", 3)])
    log = [int(path.stem) for path in Path(f"{things.uri}/_delta_log").glob("*.json")]
    assert sorted(log) == list(range(len(log)))


def test_a_protocol_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    """Also if deltalake cannot commit the batch that meets the change."""
    root = str(tmp_path)
    things = table(root)
    things.commit([land(root, "a", [1])], SCHEMA, marks=[Mark("run", 1)])
    assert things.commit([land(root, "b", [2])], SCHEMA, marks=[Mark("run", 2)])
    DeltaTable(things.uri).alter.add_constraint({"positive": "number > 0"})
    table(root).commit([], SCHEMA, marks=[Mark("run", 3)])
    assert not things.commit([land(root, "c", [3])], SCHEMA, marks=[Mark("run", 3)])
    assert things.commit([land(root, "d", [4])], SCHEMA, marks=[Mark("run", 4)])
    (newest,) = DeltaTable(things.uri).history(1)
    assert newest.get("engineInfo")
    assert numbers(root) == [1, 2, 4]


def test_writers_and_a_compaction_at_once(root: str) -> None:
    """Three that add and one that merges: a reader finds whole commits only."""
    table(root).commit([land(root, "first", [0, 0])], SCHEMA)
    seen: list[list[int]] = []
    ended = threading.Event()

    def add(name: str) -> None:
        things = table(root)
        for number in range(6):
            things.commit(
                [land(root, f"{name}{number}", [number, number])], SCHEMA, marks=[Mark(name, number)]
            )

    def read() -> None:
        while not ended.is_set():
            seen.append(numbers(root))

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=add, args=(name,)) for name in "xyz"]
    for thread in (reader, *writers):
        thread.start()
    while any(thread.is_alive() for thread in writers):
        table(root).compact()
    for thread in writers:
        thread.join()
    ended.set()
    reader.join()
    assert numbers(root) == sorted([0, 0] + [number for number in range(6) for _ in range(6)])
    assert seen
    assert all(len(found) % 2 == 0 for found in seen)


def test_what_is_new_is_found_behind_a_compaction(root: str) -> None:
    things = table(root)
    things.commit([land(root, "a", [1])], SCHEMA)
    seen = things.since(None)
    assert [file.rows for file in seen.files] == [1]
    assert seen.commits == 1
    assert things.since(seen.version).files == []
    things.commit([land(root, "b", [2])], SCHEMA)
    things.commit([land(root, "c", [3], day="2026-03-02")], SCHEMA)
    fresh = things.since(seen.version)
    assert ([file.rows for file in fresh.files], fresh.commits) == ([1, 1], 2)
    assert things.compact() == 1
    again = things.since(seen.version)  # b is in a larger file now, together with a
    assert sorted(file.rows for file in again.files) == [1, 2]
    assert things.since(again.version).files == []
    assert things.days() == [date(2026, 3, day) for day in (1, 2)]


def test_a_new_column_is_added_and_old_rows_are_null_in_it(root: str) -> None:
    things = table(root)
    things.commit([land(root, "a", [1])], SCHEMA)
    wider = SCHEMA.append(pa.field("label", pa.string()))
    things.commit([land(root, "b", [2])], wider)
    found = DeltaTable(things.uri).to_pyarrow_table()
    assert found["label"].to_pylist() == [None, None]
    comments = {field.name: field.metadata.get("comment") for field in DeltaTable(things.uri).schema().fields}
    assert comments["label"] == "label of the message"


def test_files_that_no_commit_named_are_told_apart(root: str) -> None:
    things = table(root)
    things.commit([land(root, "a", [1])], SCHEMA)
    land(root, "killed", [2])
    things.commit([land(root, "b", [3])], SCHEMA, removed=things.files())
    assert things.strays() == ["day=2026-03-01/killed.parquet"]
    things.vacuum()  # everything is younger than a week
    assert things.strays() == ["day=2026-03-01/killed.parquet"]
    assert numbers(root, 1) == [1]


KILLED = """
import os, signal, sys
from tests.spark.lake import test_delta as here
from msmq_fast.spark.lake.delta import Mark
root, step, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
things = here.table(root)
if things.marked("run") is not None and things.marked("run") >= number:
    sys.exit(0)
files = [here.land(root, f"{os.getpid()}-{part}", [number]) for part in range(2)]
if step == "before":
    os.kill(os.getpid(), signal.SIGKILL)
assert things.commit(files, here.SCHEMA, marks=[Mark("run", number)])
if step == "after":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long(seconds=30)
def test_a_kill_at_each_step_loses_nothing_and_doubles_nothing(root: str) -> None:
    """The driver of a batch dies before and after its commit, and is started again."""
    for number in range(3):
        for step in ("before", "after", "end"):
            done = subprocess.run(
                [sys.executable, "-c", KILLED, root, step, str(number)],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
                check=False,
                timeout=100,
            )
            expected = 0 if step == "end" else -signal.SIGKILL
            assert done.returncode == expected
    assert numbers(root) == [0, 0, 1, 1, 2, 2]
    assert len(table(root).strays()) == 6


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("s3://bucket/lake/", "s3://bucket/lake"),
        ("s3a://bucket/lake", "s3://bucket/lake"),
        ("abfss://c@account/lake", "abfss://c@account/lake"),
        ("file:///data/lake", "/data/lake"),
    ],
)
def test_roots(given: str, expected: str) -> None:
    assert normalized(given) == expected


@pytest.mark.parametrize("given", ["ftp://host/lake", "s3:/bucket/lake", "http://host/lake"])
def test_what_cannot_hold_a_lake(given: str) -> None:
    with pytest.raises(ValueError, match=r"a lake is|names a bucket"):
        normalized(given)
