"""Kills drivers, executors and servers at random moments while messages flow, and compares at the end.

A `Job` is a driver process (killjob) with its checkpoints; a `Flow` sends numbered messages meanwhile and
knows which of them the server has taken for sure, and of which no answer came. `carnage` runs both and kills,
and returns how often it did, so that a test cannot pass without kills and batches.
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow.parquet as pq

from tests.spark.conftest import spark_environment, spark_home

PATIENCE = 400.0
"""Seconds after which a driver that gets nowhere is a failure; a start takes a few."""
CLUSTER = "local-cluster[1,2,512]"
"""A master with one executor in a process of its own, which can be killed. Another one takes its place."""
EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-Xss4m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData",
}
"""Settings of such a cluster."""
SIX = {"driver": 2, "executor": 2, "server": 2}
"""The kills of most tests; one of them takes some minutes."""


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
        return begun(self.directory / "checkpoint")

    def rows(self) -> list[dict[str, Any]]:
        """What any reader of Parquet sees, batch after batch."""
        files = sorted((self.directory / "out").glob("batch=*/*.parquet"))
        return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


class Job:
    """A driver in a session of its own, so that it can be killed with all its children. With `cluster`, its
    tasks run in an executor, which can be killed alone. `environment`: further variables of the driver.
    """

    def __init__(
        self,
        directory: Path,
        url: str,
        streams: list[Stream],
        *,
        cluster: bool = False,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.directory = directory
        self.finish = directory / "finish"
        self.streams = streams
        self._file = directory / "job.json"
        self._process: subprocess.Popen[bytes] | None = None
        self.log = directory / "driver.log"
        queries = [stream.described(url) for stream in streams]
        self.master = CLUSTER if cluster else "local[2]"
        self.settings = {"spark.local.dir": str(directory / "scratch"), **(EXECUTORS if cluster else {})}
        job = {"master": self.master, "finish": str(self.finish), "queries": queries}
        self._file.write_text(json.dumps({**job, "settings": self.settings}))
        self.environment = {**os.environ, **spark_environment(), **environment}
        if cluster:  # it writes into the home of Spark
            self.environment["SPARK_HOME"] = str(spark_home(directory / "spark"))

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.killjob", str(self._file)],
                env=self.environment,
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

    def kill_executor(self, check: Callable[[], None]) -> None:
        """SIGKILL to the executor, once there is one, and wait for its end."""
        assert self._process is not None
        deadline = time.monotonic() + PATIENCE
        while not (found := [pid for pid in _session(self._process.pid) if _is_executor(pid)]):
            check()
            assert time.monotonic() < deadline, f"no executor:\n{self.tail()}"
            time.sleep(0.02)
        os.kill(found[0], signal.SIGKILL)
        while _is_executor(found[0]):
            assert time.monotonic() < deadline, "the executor survives SIGKILL"
            time.sleep(0.01)

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
        self.wait_for_the_end()

    def wait_for_the_end(self) -> None:
        """Wait until the driver has ended by itself; it must do so without an error."""
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


@dataclass
class Toll:
    """What `carnage` did: the kills by kind, and how many batches the queries began up to the last one."""

    kills: Counter[str]
    batches: int


def carnage(
    job: Job,
    flow: Flow,
    kills: Mapping[str, int],
    seed: int,
    *,
    least: int = 1,
) -> Toll:
    """Kill drivers, executors and servers as often as `kills` says, in random order at random moments, each
    after `least` to `least` + 2 further batches of each query. Executors need a job with a cluster.

    The job has ended when this returns: behind the last kill it only reads what is there.
    """
    chance = random.Random(seed)
    victims = list(Counter(kills).elements())
    chance.shuffle(victims)
    toll = Toll(Counter(), 0)
    try:
        with flow:
            job.start()
            for left, victim in zip(range(len(victims) - 1, -1, -1), victims, strict=True):
                job.wait_for_batches(chance.randint(least, least + 2), flow.check_alive)
                time.sleep(chance.random() * 0.5)
                toll.batches = sum(stream.batches() for stream in job.streams)
                if victim == "server":
                    flow.target.kill()
                elif victim == "executor":
                    job.kill_executor(flow.check_alive)
                else:
                    job.kill()
                    if left:
                        job.start()
                toll.kills[victim] += 1
        job.ended()
    finally:
        job.kill()
    return toll


def begun(checkpoint: Path) -> int:
    """How many batches a query has begun. Spark deletes what it wrote of the first of them."""
    try:
        names = [entry.name for entry in (checkpoint / "offsets").iterdir()]
    except FileNotFoundError:
        return 0
    return max((int(name) + 1 for name in names if name.isdigit()), default=0)


def _is_executor(pid: int) -> bool:
    """Whether a process runs an executor of Spark; one that has ended does not."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words


def _session(leader: int) -> Iterator[int]:
    """The processes of a session, by /proc."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    yield int(entry.name)
