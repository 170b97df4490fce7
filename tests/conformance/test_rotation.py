"""The turns of the long tests in .ci/run: each has one, none is too long, and others do not change them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.conftest import ALWAYS, LONG
from tests.rotation import LARGE, PARTS, TOGETHER, parts, rotated, turn

ROOT = Path(__file__).resolve().parents[2]
MAKE_TEST_S = 600
RESERVE_S = 90


def drawn(seed: int) -> dict[str, float]:
    random = Random(seed)
    return {
        f"tests/{random.randrange(60)}.py::test_{number}": float(random.choice((2, 5, 15, 60, 90, 240, 400)))
        for number in range(300)
    }


def test_every_long_test_of_this_run_has_one_turn_that_fits(request: pytest.FixtureRequest) -> None:
    """Of all that were collected: in `make test`, all there are."""
    tests = request.config.stash[LONG]
    always = {name: takes for name, takes in tests.items() if name.startswith(ALWAYS)}
    shared = {name: takes for name, takes in tests.items() if name not in always}
    dealt = parts(shared)
    assert sorted(name for part in dealt for name in part) == sorted(shared)
    budget = int(re.findall(r"CI_BUDGET_SECONDS:-(\d+)", ROOT.joinpath(".ci/run").read_text())[0])
    longest = max(sum(shared[name] for name in part) for part in dealt)
    conversations = sum(always.values()) / 2  # in two processes
    print(f"{len(shared)} tests, the longest of {PARTS} parts {longest} s; each time {conversations} s")
    assert MAKE_TEST_S + conversations + longest + RESERVE_S <= budget


@pytest.mark.parametrize("seed", range(5))
def test_each_test_is_in_one_part(seed: int) -> None:
    tests = drawn(seed)
    dealt = parts(tests)
    assert len(dealt) == PARTS
    assert sorted(name for part in dealt for name in part) == sorted(tests)
    loads = [sum(tests[name] for name in part) for part in dealt]
    assert max(loads) < 1.3 * sum(loads) / PARTS


def test_short_files_stay_together_and_long_ones_are_divided() -> None:
    tests = {f"tests/short.py::test_{number}": TOGETHER / 4 for number in range(4)}
    tests |= {f"tests/long.py::test_{number}": TOGETHER / 3 for number in range(4)}
    homes = {name: number for number, part in enumerate(parts(tests)) for name in part}
    assert len({homes[name] for name in tests if "short" in name}) == 1
    assert len({homes[name] for name in tests if "long" in name}) == 4


def test_a_new_test_moves_no_longer_one_and_no_short_one() -> None:
    before = drawn(1)
    after = before | {"tests/new.py::test_new": 240.0}
    homes = [
        {name: number for number, part in enumerate(parts(tests)) for name in part}
        for tests in (before, after)
    ]
    files = Counter[str]()
    for name, takes in before.items():
        files[name.partition("::")[0]] += int(takes)

    def size(name: str) -> float:
        whole = files[name.partition("::")[0]]
        return whole if whole <= TOGETHER else before[name]

    moved = {name for name in before if homes[0][name] != homes[1][name]}
    assert all(LARGE <= size(name) <= 240 for name in moved)


def test_each_round_begins_elsewhere() -> None:
    names = list("abcdef")
    rounds = [rotated(names, 3 + PARTS * number) for number in range(3)]
    assert [sorted(found) for found in rounds] == [names] * 3
    assert len({found[0] for found in rounds}) == 3
    assert rotated([], 7) == []


def test_the_turn_is_the_number_of_commits_or_drawn(tmp_path: Path) -> None:
    def git(*arguments: str, at: Path) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=at, check=True, capture_output=True)

    full, shallow, bare = tmp_path / "full", tmp_path / "shallow", tmp_path / "bare"
    for place in (full, bare):
        place.mkdir()
    git("init", "-q", at=full)
    for number in range(3):
        git("commit", "--allow-empty", "-m", str(number), at=full)
    git("clone", "-q", "--depth=1", full.as_uri(), str(shallow), at=tmp_path)
    assert turn(full) == 3
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=full, check=True, capture_output=True, text=True)
    assert turn(shallow) == int(head.stdout[:8], 16)
    assert turn(bare) > 100_000
