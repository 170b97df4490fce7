"""Kills drivers and servers at random moments while messages flow, and compares at the end.

A `Job` is a driver process (killjob) with its checkpoints; a `Flow` sends numbered messages meanwhile and
knows which of them the server has taken for sure and of which nobody heard. `carnage` runs both and kills.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from tests.spark.conftest import spark_environment

PATIENCE = 400.0
"""Seconds after which a driver that gets nowhere is a failure; a start takes a few."""


class Target(Protocol):
    """A queue manager that is sent to and killed."""

    url: str

    def send(self, queue: str, bodies: list[bytes]) -> bool:
        """Send; False when it is not known whether the messages came to be."""

    def kill(self) -> None:
        """SIGKILL, and start again on the same port."""

    def count(self, queue: str) -> int:
        """Messages in a queue."""


@dataclass
class Stream:
    """One query of the job and the queue that it reads; `rows()` gives what came out of it."""

    name: str
    queue: str
    options: dict[str, str]
    directory: Path
    kind: str = "parquet"
    extra: dict[str, Any] = field(default_factory=dict)

    def described(self, url: str) -> dict[str, Any]:
        options = {"url": url, "subscribe": self.queue, **self.options}
        return {
            "kind": self.kind,
            "name": self.name,
            "options": options,
            "directory": str(self.directory),
            **self.extra,
        }

    def batches(self) -> int:
        """Batches that were begun, by the checkpoint."""
        return _entries(self.directory / "checkpoint" / "offsets")

    def rows(self) -> list[dict[str, Any]]:
        """What any reader of Parquet sees, batch after batch."""
        files = sorted((self.directory / "out").glob("batch=*/*.parquet"))
        return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


class Job:
    """A driver in a session of its own, so that it can be killed with all its children."""

    def __init__(self, directory: Path, url: str, streams: list[Stream], **settings: Any) -> None:
        self.directory = directory
        self.finish = directory / "finish"
        self.streams = streams
        self._file = directory / "job.json"
        self._process: subprocess.Popen[bytes] | None = None
        self.log = directory / "driver.log"
        queries = [stream.described(url) for stream in streams]
        settings = {"spark.local.dir": str(directory / "scratch"), **settings}
        job = {"master": "local[2]", "finish": str(self.finish), "queries": queries, "settings": settings}
        self._file.write_text(json.dumps(job))

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.killjob", str(self._file)],
                env={**os.environ, **spark_environment()},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait_for_batches(self, more: int, check: Callable[[], None]) -> None:
        """Until each query has begun `more` batches from now, or one of them ended. `check` raises when
        nothing more can come.
        """
        assert self._process is not None
        goals = [stream.batches() + more for stream in self.streams]
        deadline = time.monotonic() + PATIENCE
        while any(stream.batches() < goal for stream, goal in zip(self.streams, goals, strict=True)):
            check()
            assert self._process.poll() is None, f"the driver ended:\n{self.tail()}"
            assert time.monotonic() < deadline, f"no {more} batches in {PATIENCE} s:\n{self.tail()}"
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL to every process of its session: Java, the planners and the workers."""
        if self._process is None:
            return
        self._process.kill()
        for pid in _session(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(30)
        self._process = None

    def ended(self) -> None:
        """Let it read what is there and end; it must do so without an error."""
        self.finish.touch()
        if self._process is None or self._process.poll() is not None:
            self.kill()
            self.start()
        assert self._process is not None
        try:
            code = self._process.wait(PATIENCE)
        finally:
            self.kill()
        assert code == 0, self.tail()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-8000:]


@dataclass
class Flow:
    """Messages on their way into queues, numbered in their bodies, until it is stopped."""

    target: Target
    queues: list[str]
    chunk: int = 20
    pause: float = 0.1
    sent: dict[str, list[bytes]] = field(default_factory=dict)
    unknown: dict[str, set[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Flow:
        self._stop = threading.Event()
        self.sent = {queue: [] for queue in self.queues}
        self.unknown = {queue: set() for queue in self.queues}
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        self.check_alive()

    def _run(self) -> None:
        number = 0
        try:
            while not self._stop.wait(self.pause):
                for queue in self.queues:
                    bodies = [b"%s %d" % (queue.encode(), number + n) for n in range(self.chunk)]
                    if self.target.send(queue, bodies):
                        self.sent[queue] += bodies
                    else:
                        self.unknown[queue].update(bodies)
                number += self.chunk
        except BaseException as error:
            self._failure = error

    def check_alive(self) -> None:
        """Raises what ended the sending: without messages there are no batches."""
        if self._failure is not None:
            raise self._failure

    def check(self, queue: str, rows: list[bytes], *, ordered: bool = True) -> None:
        """Nothing lost, nothing twice, nothing invented, and in the order in which it was sent."""
        twice = [body for body, times in Counter(rows).items() if times > 1]
        assert not twice, f"{len(twice)} of {queue} came twice, such as {twice[:3]}"
        lost = set(self.sent[queue]) - set(rows)
        assert not lost, f"{len(lost)} of {len(self.sent[queue])} of {queue} are lost: {sorted(lost)[:3]}"
        assert set(rows) <= set(self.sent[queue]) | self.unknown[queue]
        if ordered:
            numbers = [int(body.split()[-1]) for body in rows]
            assert numbers == sorted(numbers)


def carnage(
    job: Job,
    flow: Flow,
    kills: int,
    seed: int,
    *,
    servers: int = 0,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Kill the driver `kills` times and the server `servers` times, in random order at random moments.

    The job has ended when this returns: behind the last kill it only reads what is there.
    """
    chance = random.Random(seed)
    victims = ["driver"] * kills + ["server"] * servers
    chance.shuffle(victims)
    try:
        with flow:
            job.start()
            for left, victim in zip(range(len(victims) - 1, -1, -1), victims, strict=True):
                job.wait_for_batches(chance.randint(1, 3), flow.check_alive)
                time.sleep(chance.random() * 0.5)
                if victim == "server":
                    flow.target.kill()
                else:
                    job.kill()
                    between()
                    if left:
                        job.start()
        job.ended()
    finally:
        job.kill()


def _entries(directory: Path) -> int:
    try:
        return sum(1 for entry in directory.iterdir() if entry.name.isdigit())
    except FileNotFoundError:
        return 0


def _session(leader: int) -> Iterator[int]:
    """The processes of a session, by /proc."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    yield int(entry.name)
