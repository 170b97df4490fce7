"""Archiving what goes on: `python -m bench.follow [--rate 20000] [--minutes 10]`.

A fresh server; programs send recoverable messages to a queue at a fixed rate and receive them at once, and
`msmq-lake archive --follow` keeps events, headers and bodies in a lake: of the queue's journal, which has
what was received (`--kept`: nobody receives, and the messages of the queue are archived). Everything shares
the machine. Prints how far the lake is behind, and at the end whether that stayed bounded, and whether the
lake has every message and every event once.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench import appload
from bench.appload import AppLoad
from bench.measure import Figures
from bench.process import disk_bytes, family_cpu_s
from bench.report import Check
from bench.server import Server
from msmq_fast.client.bulk.client import BulkClient
from msmq_fast.spark.lake.layout import Lake

__all__ = ["Archived", "Result", "Sample", "checks", "follow", "grows"]

QUEUE: Final = "followed"
SUBSCRIPTION: Final = "archive"
LOOK_S: Final = 5.0
BEHIND_S: Final = 60.0
"""What an archive that keeps up is never behind."""
_START_S: Final = 120.0
_END_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Sample:
    """How far the lake is: messages sent and archived, events told and archived; cores that were used."""

    seconds: float
    sent: int
    messages: int
    told: int
    events: int
    behind_s: float
    server_cores: float
    archive_cores: float

    @property
    def lag(self) -> int:
        """Messages that the lake does not have yet."""
        return self.sent - self.messages


@dataclass(frozen=True, slots=True)
class Result:
    """What was sent and told, what the lake has in the end, and the samples on the way.

    `caught_up_s`: from the last message to the moment at which the lake had everything.
    """

    sent: int
    messages: int
    bodies: int
    told: int
    events: int
    caught_up_s: float
    send_p99_ms: float
    lake_mib: float
    samples: list[Sample]


class Archived:
    """What the tables of a lake hold."""

    def __init__(self, root: Path) -> None:
        self._tables = {
            name: Lake(str(root)).table(f"bronze/{name}") for name in ("events", "messages", "bodies")
        }

    def look(self) -> dict[str, int]:
        """Rows of each bronze table, as of now."""
        return {name: sum(file.rows for file in table.files()) for name, table in self._tables.items()}


class _Load:
    """The generator, in a thread; `figures` when it has ended."""

    def __init__(self, server: Server, load: AppLoad) -> None:
        self.figures: Figures = {}
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(server, load))
        self._thread.start()

    def _run(self, server: Server, load: AppLoad) -> None:
        try:
            self.figures = appload.on_server(load, QUEUE)(server)
        except BaseException as error:
            self.error = error

    @property
    def running(self) -> bool:
        """Whether messages are still sent."""
        return self._thread.is_alive()

    def wait(self) -> Figures:
        """What it measured. Raises what ended it."""
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.figures


@contextmanager
def _archiving(
    server: Server, lake: Path, contents: str, interval: str, more: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The archive as a process of its own, ended as a user ends it: with SIGINT."""
    command = [
        *(sys.executable, "-m", "msmq_fast.spark.lake.main", "archive", "--follow", "--json"),
        *("--lake", str(lake), "--url", f"msmq+bulk://127.0.0.1:{server.admin_port}"),
        *("--content", contents, "--subscription", SUBSCRIPTION, "--interval", interval, *more),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            process.wait(60)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise RuntimeError(f"the archive ended with code {process.returncode}")


def _until_begun(process: subprocess.Popen[bytes], lake: Path) -> None:
    """The queries have planned their first batch. RuntimeError: the archive has ended instead."""
    deadline = time.monotonic() + _START_S
    while not list(lake.glob("_state/checkpoints/main/events/offsets/*")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the archive does not start (code {process.poll()})")
        time.sleep(0.2)


class _Watch:
    """Takes samples of a server and of the lake that follows it."""

    def __init__(self, server: Server, lake: Path, archive: int, rate: float) -> None:
        self._server = server
        self._archived = Archived(lake)
        self._archive = archive
        self._rate = rate
        self._begun = self._at = time.monotonic()
        self._cpu = self._used()

    def _used(self) -> tuple[float, float]:
        return self._server.sample().cpu_s, family_cpu_s(self._archive)

    def sample(self) -> Sample:
        """As of now; the cores since the last one."""
        with BulkClient(f"msmq+bulk://127.0.0.1:{self._server.admin_port}") as client:
            queue = client.bounds([QUEUE])
            journal = client.bounds([QUEUE], content="journal")
        has = self._archived.look()
        sent = sum(found.messages for bounds in (queue, journal) for found in bounds.queues)
        told = journal.feed_next - 1
        now, cpu = time.monotonic(), self._used()
        seconds = max(now - self._at, 1e-9)
        behind = max(1 - has["messages"] / sent, 1 - has["events"] / told) * sent if sent else 0.0
        found = Sample(
            now - self._begun,
            sent,
            has["messages"],
            told,
            has["events"],
            max(behind, 0.0) / self._rate,
            (cpu[0] - self._cpu[0]) / seconds,
            (cpu[1] - self._cpu[1]) / seconds,
        )
        self._at, self._cpu = now, cpu
        return found

    def bodies(self) -> int:
        """Rows of bronze/bodies."""
        return self._archived.look()["bodies"]


def follow(
    directory: Path,
    *,
    rate: float,
    seconds: float,
    body: int,
    kept: bool,
    interval: str,
    settings: str = "",
    archive: Sequence[str] = (),
    on_sample: Callable[[Sample], None] = lambda sample: None,
) -> Result:
    """One run on a fresh server and a fresh lake. RuntimeError: the archive ended, or did not catch up.

    `archive`: more arguments of `msmq-lake archive`. `on_sample` hears each sample, every LOOK_S seconds.
    """
    declared = f'{settings}\n[[queues]]\nname = "{QUEUE}"\njournal = {str(not kept).lower()}\n'
    load = AppLoad(
        consume=int(not kept), rate=rate, body=body, window=4096, seconds=seconds, warmup=0, max_bytes=0
    )
    lake = Path(tempfile.mkdtemp(prefix="msmq-bench-lake-", dir=directory))
    contents = "events,messages" if kept else "events,journal"
    samples: list[Sample] = []
    try:
        with (
            Server(directory, queues=(), settings=declared) as server,
            _archiving(server, lake, contents, interval, archive) as process,
        ):
            _until_begun(process, lake)
            watch = _Watch(server, lake, process.pid, rate)
            sending = _Load(server, load)

            def look() -> Sample:
                time.sleep(LOOK_S)
                if process.poll() is not None:
                    raise RuntimeError(f"the archive ended with code {process.returncode}")
                return watch.sample()

            while sending.running:
                samples.append(look())
                on_sample(samples[-1])
            figures, ended = sending.wait(), time.monotonic()
            last = watch.sample()
            while (last.lag or last.events < last.told) and time.monotonic() < ended + _END_S:
                last = look()
            return Result(
                round(figures["answered"]),
                last.messages,
                watch.bodies(),
                last.told,
                last.events,
                time.monotonic() - ended,
                figures["ack_p99_us"] / 1e3,
                disk_bytes(lake) / 2**20,
                samples,
            )
    finally:
        shutil.rmtree(lake, ignore_errors=True)


def grows(samples: Sequence[Sample]) -> float:
    """Seconds by which the lake was further behind in the last third of the run than in the one before."""
    third = max(len(samples) // 3, 1)
    earlier, last = samples[-2 * third : -third] or samples, samples[-third:]
    return statistics.median(s.behind_s for s in last) - statistics.median(s.behind_s for s in earlier)


def checks(found: Result, rate: float) -> list[Check]:
    """What following means."""
    sent_per_s = found.samples[-1].sent / found.samples[-1].seconds
    return [
        Check("messages sent a second", sent_per_s, 0.98 * rate, ""),
        Check("seconds behind, at most", max(s.behind_s for s in found.samples), BEHIND_S, "", upper=True),
        Check("growth of that, last third", grows(found.samples), LOOK_S, "s", upper=True),
        Check("messages that are missing or twice", abs(found.sent - found.messages), 1, "", upper=True),
        Check("bodies that are missing or twice", abs(found.sent - found.bodies), 1, "", upper=True),
        Check("events that are missing or twice", abs(found.told - found.events), 1, "", upper=True),
    ]


def _line(sample: Sample) -> str:
    return (
        f"{sample.seconds:6.0f} s  sent {sample.sent:11,}  behind {sample.lag:9,} messages, "
        f"{sample.told - sample.events:9,} events, {sample.behind_s:5.1f} s  "
        f"cores: server {sample.server_cores:.2f}, archive {sample.archive_cores:.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how far the lake is behind, and the verdicts; 1 if one is a miss."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=20_000, help="messages a second (20,000)")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--body", type=int, default=1024, help="bytes (1024)")
    parser.add_argument("--kept", action="store_true", help="nobody receives; the queue itself is archived")
    parser.add_argument("--interval", default="5 seconds", help="of msmq-lake archive (5 seconds)")
    parser.add_argument("--archive", default="", metavar="ARGUMENTS", help="more of msmq-lake archive's")
    parser.add_argument("--every", type=float, default=30, help="seconds between two lines (30)")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for store and lake")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    shown = 0.0

    def show(sample: Sample) -> None:
        nonlocal shown
        if sample.seconds >= shown + options.every - LOOK_S / 2:
            shown = sample.seconds
            print(_line(sample), file=sys.stderr if options.json else sys.stdout, flush=True)

    found = follow(
        options.dir,
        rate=options.rate,
        seconds=options.minutes * 60,
        body=options.body,
        kept=options.kept,
        interval=options.interval,
        archive=shlex.split(options.archive),
        on_sample=show,
    )
    wanted = checks(found, options.rate)
    if options.json:
        print(json.dumps(asdict(found) | {"checks": [str(check) for check in wanted]}, indent=1))
    else:
        print(
            f"sent {found.sent:,}, archived {found.messages:,} with {found.bodies:,} bodies; "
            f"told {found.told:,} events, archived {found.events:,}; "
            f"all there {found.caught_up_s:.1f} s after the last message\n"
            f"send to acknowledgment p99 {found.send_p99_ms:.1f} ms, lake {found.lake_mib:,.0f} MiB"
        )
        print(*wanted, sep="\n")
    return 0 if all(check.passed for check in wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
