"""Which long tests have their turn in continuous integration.

All of `make test-long` takes hours, so each landing runs one of PARTS parts of it. The parts depend on the
names of the tests and on the seconds that their marks say, and on nothing else:

1. The tests of a file that together take at most TOGETHER seconds stay together, since they share what they
   start. Otherwise each is for itself.
2. What takes LARGE seconds or more is dealt by size, the longest first, each to the part that has least.
3. Everything else goes where the checksum of its name says.

A landing that adds or removes a test therefore moves at most those tests that are LARGE and not longer than
that one; all others keep their turns.
"""

from __future__ import annotations

import subprocess
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["PARTS", "parts", "rotated", "turn"]

PARTS = 36
TOGETHER = 300.0
LARGE = 15.0


def parts(tests: Mapping[str, float], count: int = PARTS) -> list[list[str]]:
    """The names of the tests of each part, in the order of `tests`, whose values are seconds."""
    units = _units(tests)
    seconds = {name: sum(tests[test] for test in unit) for name, unit in units.items()}
    placed: list[list[str]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for name in sorted(units, key=lambda name: (-seconds[name], name)):
        small = zlib.crc32(name.encode()) % count
        part = small if seconds[name] < LARGE else loads.index(min(loads))
        loads[part] += seconds[name]
        placed[part] += units[name]
    order = {test: number for number, test in enumerate(tests)}
    return [sorted(part, key=order.__getitem__) for part in placed]


def _units(tests: Mapping[str, float]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    units: dict[str, list[str]] = {}
    for file, members in files.items():
        if sum(tests[test] for test in members) <= TOGETHER:
            units[file] = members
        else:
            units.update({test: [test] for test in members})
    return units


def rotated(names: Iterable[str], turn: int, count: int = PARTS) -> list[str]:
    """The tests of a part in the order of this turn.

    Each round begins further on: what a slow machine has no time for is not the same each time.
    """
    found = list(names)
    if not found:
        return found
    at = turn // count * 7 % len(found)
    return found[at:] + found[:at]


def turn(root: Path) -> int:
    """The number of this landing: how many commits there are.

    A shallow clone does not know that, and a copy without history neither: there the turn is drawn by the
    name of the commit, or by the hour.
    """

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "HEAD")
    if not commit:
        return int(time.time()) // 3600
    if git("rev-parse", "--is-shallow-repository") == "true":
        return int(commit[:8], 16)
    return int(git("rev-list", "--count", "HEAD"))


if __name__ == "__main__":
    print(turn(Path.cwd()))
