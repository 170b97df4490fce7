"""The recipes behind docs/project/performance.md: the simulated disk, instructions, two servers in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import compare, instructions
from bench.slowdisk import Spikes, environment

ROOT = Path(__file__).parents[2]

SYNCS = """
import mmap, os, sys, time
def took(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
plain = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
folder = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
inside = os.open(os.path.basename(sys.argv[1]), os.O_RDWR | os.O_DSYNC, dir_fd=folder)
os.ftruncate(plain, 4096)
meta = os.open(sys.argv[1], os.O_RDWR | os.O_DSYNC)
mapped = mmap.mmap(plain, 4096)
slow = [lambda: os.fsync(plain), lambda: os.fdatasync(plain), mapped.flush, lambda: os.pwrite(meta, b"x", 0),
        lambda: os.write(meta, b"x"), lambda: os.pwritev(plain, [b"x"], 0, os.RWF_DSYNC),
        lambda: os.pwrite(inside, b"x", 0)]
quick = min(took(lambda: os.pwrite(plain, b"x", 0)) for _ in range(5))
print([took(work) >= 0.05 for work in slow], quick < 0.05)
"""


@pytest.mark.needs("cc")
def test_the_simulated_disk_is_slow_where_a_disk_would_be(tmp_path: Path) -> None:
    slow = os.environ | environment(50_000, tmp_path)
    said = subprocess.run(
        [sys.executable, "-c", SYNCS, str(tmp_path / "file")],
        env=slow,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{[True] * 7} True\n"


SPIKES = """
import json, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
times = []
for _ in range(9):
    began = time.perf_counter()
    os.fdatasync(file)
    times.append(time.perf_counter() - began >= 0.1)
print(json.dumps(times))
"""


@pytest.mark.needs("cc")
def test_one_sync_in_so_many_is_a_spike(tmp_path: Path) -> None:
    slow = os.environ | environment(0, tmp_path, spikes=Spikes(100_000, every=3))
    said = subprocess.run(
        [sys.executable, "-c", SPIKES, str(tmp_path / "file")],
        env=slow,
        capture_output=True,
        text=True,
        check=True,
    )
    slow_ones = json.loads(said.stdout)
    assert slow_ones[2::3] == [True] * 3
    assert slow_ones.count(True) < 9  # the others are slow only when the machine is


def test_without_valgrind_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["instructions", "express"])
    assert instructions.main() == 2
    assert capsys.readouterr().err == "bench.instructions: valgrind is missing: apt-get install valgrind\n"


@pytest.mark.long(seconds=90)
@pytest.mark.timeout(900)
@pytest.mark.needs("valgrind", "callgrind_control")
def test_instructions_repeat() -> None:
    """Twice the same case in one server: what differs is what timers do meanwhile."""
    command = [sys.executable, "-m", "bench.instructions", "recoverable", "recoverable", "--scale", "0.5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, second = (float(line.split()[1].replace(",", "")) for line in done.stdout.splitlines())
    assert 1_000 < first < 100_000
    assert 0.9 < first / second < 1.1


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(900)
@pytest.mark.needs("valgrind", "callgrind_control")
def test_instructions_of_two_servers_add_up() -> None:
    command = [sys.executable, "-m", "bench.instructions", "transactional", "between"]
    done = subprocess.run(
        [*command, "--scale", "0.1", "--json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert list(found) == ["transactional", "between", "between-sending", "between-receiving"]
    assert all(1_000 < figure < 1_000_000 for figure in found.values())
    assert found["between"] == pytest.approx(found["between-sending"] + found["between-receiving"])


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(300)
def test_a_server_compared_with_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = f"{sys.executable} -m msmq_fast"
    cases = ["express", "transactional", "one-at-a-time", "remote-reads", "srmp", "between"]
    monkeypatch.setattr(sys, "argv", ["compare", own, *cases, "--pairs", "1", "--seconds", "0.3"])
    assert compare.main() == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["messages/s", "other", "ratio"]
    assert [row.split()[0] for row in rows] == cases
    assert all(0.2 < float(row.split()[3]) < 5 for row in rows)
