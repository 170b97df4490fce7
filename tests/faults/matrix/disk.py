"""Faults of a real store: SIGKILL of a process, a disk that is full, torn copies of the data file.

`python -m tests.faults.matrix.disk DIRECTORY LOG-SIZE UNIT…` injects them and prints their count as JSON; a
process of its own, since it forks. A LOG-SIZE of 0 is a store without a redo log.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from msmq_fast.store.identity import DATA_NAME
from tests.faults.matrix.account import host_bodies
from tests.faults.matrix.host import Host
from tests.faults.matrix.runner import Ledger, judge_again, judge_here, play, started
from tests.faults.matrix.scenario import Scenario
from tests.faults.matrix.scenarios import SCENARIOS
from tests.support.clocks import StillClock

MOMENTS = ("before", "under way", "after")
SECTOR = 512
START = StillClock().seconds
META_PAGES = 2 * 4096
_SMALL = 8192  # bytes: room for the meta pages, and for nothing else; half of it: for the head of a segment
_MANY = 200
_COPIES = 4  # torn ones of each commit


class Place:
    """Stores of one scenario: each fault begins with a copy of the prepared one."""

    def __init__(self, scenario: Scenario, directory: Path, log_size: int) -> None:
        self.scenario = scenario
        self.log_size = log_size
        self.directory = directory
        self.number = 0
        host = self.host()
        ledger = Ledger()
        play(scenario, host, ledger)  # without a fault: which identifier belongs to which body
        self.bodies = dict(host_bodies(host))
        self.commits = host.commits
        self.done(host)

    def host(self) -> Host:
        self.number += 1
        host = Host(self.directory / str(self.number), log_size=self.log_size, **self.scenario.settings)
        started(self.scenario, host)
        host.commits = 0
        return host

    def reopened(self, ledger: Ledger, clock: float) -> None:
        """Judges what the last process left behind."""
        host = Host(
            self.directory / str(self.number), later=clock, log_size=self.log_size, **self.scenario.settings
        )
        host_bodies(host).update(self.bodies)
        host.run()
        judge_again(self.scenario, host, ledger)
        self.done(host)

    def done(self, host: Host) -> None:
        host.die()
        shutil.rmtree(self.directory / str(self.number))


def kills(place: Place, counts: Counter[str]) -> None:
    """A process is killed at each moment of each commit."""
    for moment in MOMENTS:
        for nth in range(1, _MANY):
            ledger, clock, killed = _child(place, moment, nth)
            if killed:
                counts[f"SIGKILL {moment}"] += 1
            place.reopened(ledger, clock)
            if not killed:
                break


def _child(place: Place, moment: str, nth: int) -> tuple[Ledger, float, bool]:
    """What a forked process told, how far its clock was, and whether it was killed."""
    reading, writing = os.pipe()
    place.number += 1
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            place.number -= 1
            _script(place, moment, nth, writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        lines = told.read().split("\n")[:-1]
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0, f"{place.scenario.unit}, {moment} {nth}: the child failed"
    ledger, clock = Ledger(), 0.0
    for line in lines:
        word, _, rest = line.partition(" ")
        ledger.take(word)
        clock, numbers = float(rest.split()[0]), [int(number) for number in rest.split()[1:]]
        ledger.numbers.sequence, ledger.numbers.message = numbers
    return ledger, clock, killed


def _script(place: Place, moment: str, nth: int, writing: int) -> None:
    host = place.host()
    count = 0

    def at_commit(_number: int, now: str) -> None:
        nonlocal count
        count += now == moment
        if now == moment and count == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def tell(line: str) -> None:
        numbers = (host.manager.ledger.sequence, host.manager.message_ordinals.last)
        os.write(writing, f"{line} {host.clock.seconds - START} {numbers[0]} {numbers[1]}\n".encode())

    host.at_commit = at_commit
    play(place.scenario, host, Ledger(tell=tell))
    host.die()


def full(place: Place, counts: Counter[str]) -> None:
    """No page of the n-th commit can be written; there is room again for the next."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for nth in range(1, place.commits + 1):
            host = place.host()
            ledger = Ledger()
            host.at_commit = _without_room(nth, _SMALL // 2 if place.log_size else _SMALL)
            failed = host.store.writer.statistics()["failed_batches"]
            try:
                play(place.scenario, host, ledger)
                judge_here(place.scenario, host, ledger)
            finally:
                _room(resource.RLIM_INFINITY)
            counts["no space"] += host.store.writer.statistics()["failed_batches"] - failed
            ledger.numbers.take(host)
            host.again()
            judge_again(place.scenario, host, ledger)
            place.done(host)
    finally:
        signal.signal(signal.SIGXFSZ, before)


def _without_room(nth: int, size: int) -> Callable[[int, str], None]:
    def at_commit(number: int, moment: str) -> None:
        if moment == "before" and number == nth - 1:
            _room(size)
        elif moment == "after":  # the next one may be handed over at once
            _room(size if number == nth - 1 else resource.RLIM_INFINITY)

    return at_commit


def _room(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def torn(place: Place, counts: Counter[str], random: Random) -> None:
    """Copies of the store's files in which some sectors of a commit are new and others are not."""
    host = place.host()
    ledger = Ledger()
    images: list[tuple[Files, Files, int, int, bool, float]] = []
    directory = place.directory / str(place.number)
    old = _files(directory)

    def at_commit(_number: int, moment: str) -> None:
        nonlocal old
        if moment == "after":
            new = _files(directory)
            images.append((old, new, ledger.begun, ledger.done, ledger.failed, host.clock.seconds - START))
            old = new

    host.at_commit = at_commit
    play(place.scenario, host, ledger)
    place.done(host)
    for old, new, begun, done, failed, clock in images:
        for _ in range(_COPIES):
            place.number += 1
            store = place.directory / str(place.number)
            (store / "log").mkdir(parents=True)
            for name, data in new.items():
                first = META_PAGES if name == DATA_NAME else 0
                (store / name).write_bytes(_tear(old.get(name, b""), data, first, random))
            place.reopened(Ledger(begun, done, failed), clock)
            counts["torn copy"] += 1


Files = dict[str, bytes]


def _files(directory: Path) -> Files:
    """The data file first: what the log has given to it meanwhile is in both then."""
    names = [DATA_NAME, *(f"log/{path.name}" for path in sorted((directory / "log").glob("segment-*")))]
    return {name: (directory / name).read_bytes() for name in names}


def _tear(old: bytes, new: bytes, first: int, random: Random) -> bytes:
    """Pages are written in any order; the meta pages of the data file when all are there."""
    image = bytearray(old) + bytes(len(new) - len(old))
    share = random.choice((0.1, 0.5, 0.9, 1.0))
    for at in range(first, len(new), SECTOR):
        if image[at : at + SECTOR] != new[at : at + SECTOR] and random.random() < share:
            image[at : at + SECTOR] = new[at : at + SECTOR]
    return bytes(image)


def main() -> None:
    log_size, units = int(sys.argv[2]), sys.argv[3:]
    result: dict[str, Counter[str]] = {}
    for scenario in SCENARIOS:
        if scenario.unit in units:
            place = Place(scenario, Path(sys.argv[1]) / scenario.unit, log_size)
            counts = result[scenario.unit] = Counter()
            kills(place, counts)
            full(place, counts)
            torn(place, counts, Random(scenario.unit))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
