"""Directories that change as a whole: batches, swaps that a kill interrupts, one writer at a time."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.protocol.exits import CommandError, Exit
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


def test_bodies_that_a_killed_replay_has_left_go(lake: Lake) -> None:
    put(lake, "_state/replays/x.json", "{}")
    put(lake, "_state/replays/x.rows/part-0.parquet", "bodies")
    with lake.exclusive("verify"):
        pass
    assert lake.names("_state/replays") == ["x.json"]


def holder(**more: Any) -> dict[str, Any]:
    """What the file of a claim says of the first process of this machine, which never ends."""
    return {"what": "archive", "pid": 1, "host": os.uname().nodename, **more}


def test_one_archive_of_a_name_at_a_time(lake: Lake) -> None:
    path = "_state/archives/main.json"
    lake.write_json(path, holder())
    with pytest.raises(CommandError, match=r"an archive named 'main' .*process 1 on .*--name") as raised:
        lake.archiving("main").__enter__()
    assert raised.value.code == Exit.IN_USE
    with lake.archiving("other"):
        assert json.loads(Path(lake.path("_state/archives/other.json")).read_text())["pid"] == os.getpid()
    assert lake.names("_state/archives") == ["main.json"]


def test_a_number_that_another_process_had_is_nobody(lake: Lake) -> None:
    path = "_state/archives/main.json"
    lake.write_json(path, holder(began="another boot 17"))
    with lake.archiving("main"):
        pass
    # On another host: as long as it says that it is there.
    lake.write_json(path, holder(host="elsewhere", seen=time.time() - 30))
    with pytest.raises(CommandError, match="elsewhere"):
        lake.archiving("main").__enter__()
    lake.write_json(path, holder(host="elsewhere", seen=time.time() - 3600))
    with lake.archiving("main"):
        pass
    lake.write_json("_state/lock.json", holder(host="elsewhere"))
    with pytest.raises(CommandError, match="elsewhere"), lake.exclusive("x"):
        pass


def test_of_two_that_come_at_the_same_moment_one_gets_it(lake: Lake) -> None:
    """Processes, since threads of one are one holder. All look before the first one writes, if they may."""
    program = (
        "import sys, time\n"
        "from msmq_fast.spark.lake.layout import Lake\n"
        "from msmq_fast.protocol.exits import CommandError\n"
        "read = Lake.read_json\n"
        "def slow(lake, path):\n"
        "    found = read(lake, path)\n"
        "    time.sleep(0.2)\n"
        "    return found\n"
        "lake = Lake(sys.argv[1])\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "Lake.read_json = slow\n"
        "try:\n"
        "    with lake.archiving('main'):\n"
        "        print('mine', flush=True)\n"
        "        sys.stdin.readline()\n"
        "except CommandError:\n"
        "    print('refused', flush=True)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, lake.root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for _ in range(2)
    ]
    answers = []
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
    for process in processes:
        assert process.stdout is not None
        answers.append(process.stdout.readline())
    for process in processes:
        process.communicate("end\n", timeout=10)
    assert sorted(answers) == ["mine\n", "refused\n"]


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
