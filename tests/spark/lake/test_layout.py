"""Directories that change as a whole: batches, swaps that a kill interrupts, one writer at a time."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from msmq_fast.cli.exits import CommandError, Exit
from msmq_fast.spark.lake.layout import Batch, Lake, Swap
from tests.spark.lake.lakes import write_batch


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"))


def put(lake: Lake, path: str, text: str) -> None:
    file = Path(lake.path(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_only_complete_batches_count(lake: Lake) -> None:
    for number in (0, 1, 10):
        write_batch(lake, "events", number, [], run="a")
    write_batch(lake, "events", 2, [], run="a", success=False)
    (Path(lake.path("bronze/events/run=a")) / ".stray").mkdir()
    assert [(batch.run, batch.number) for batch in lake.batches("events")] == [("a", 0), ("a", 1), ("a", 10)]
    assert lake.torn("events") == ["bronze/events/run=a/batch=0000000002"]
    assert lake.batches("messages") == []
    assert isinstance(lake.batches("events")[0], Batch)


@pytest.mark.parametrize("steps", range(6))
def test_a_swap_that_is_killed_anywhere_is_finished_by_the_next_one(
    lake: Lake, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        put(lake, f"silver/{name}/file", "old")
        put(lake, f"_staging/x/{name}/file", "new")
    put(lake, "bronze/gone/file", "old")
    left = [steps]
    lake.write_json("_state/x.json", 0)  # the directory is there before the first note

    def counted(method: str) -> Callable[..., object]:
        original = getattr(Lake, method)

        def call(self: Lake, *arguments: object) -> object:
            if left[0] == 0:
                raise InterruptedError("killed")
            left[0] -= 1
            return original(self, *arguments)

        return call

    swap = Swap(["bronze/gone"], [("_staging/x/a", "silver/a"), ("_staging/x/b", "silver/b")])
    with monkeypatch.context() as patched, contextlib.suppress(InterruptedError):
        for method in ("delete", "write_json"):
            patched.setattr(Lake, method, counted(method))
        lake.swap(swap, then=("_state/done.json", 1))
    again = Lake.open(lake.root)
    with again.exclusive("test"):
        pass
    files = {name: Path(lake.path(f"silver/{name}/file")).read_text() for name in ("a", "b")}
    noted = steps > 0  # the first step is the note itself
    assert files == ({"a": "new", "b": "new"} if noted else {"a": "old", "b": "old"})
    assert lake.exists("bronze/gone") is not noted
    assert again.read_json("_state/done.json") == (1 if noted else None)
    assert not lake.exists("_state/swap.json")


def test_two_writers_exclude_each_other_and_a_dead_one_nobody(lake: Lake) -> None:
    other = "import os,sys,time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", other], stdout=subprocess.PIPE) as process:
        holder = {"what": "audit", "pid": process.pid, "host": os.uname().nodename}
        lake.write_json("_state/lock.json", holder)
        with (
            pytest.raises(CommandError, match=f"msmq-lake audit. \\(process {process.pid}"),
            lake.exclusive("x"),
        ):
            pass
        process.kill()
    with lake.exclusive("x"):
        assert json.loads(Path(lake.path("_state/lock.json")).read_text())["what"] == "x"
    assert not lake.exists("_state/lock.json")


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
    put(lake, "_state/lake.json", "{")
    with pytest.raises(CommandError, match="is damaged"):
        Lake.open(lake.root)


def test_a_lake_can_be_named_by_url(tmp_path: Path) -> None:
    lake = Lake.create(f"file://{tmp_path}/lake")
    write_batch(Lake.open(str(tmp_path / "lake")), "events", 0, [])
    assert lake.batches("events")[0].path == f"file://{tmp_path}/lake/bronze/events/run=test/batch=0000000000"
