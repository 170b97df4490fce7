"""What others notice of reading in bulk: `python -m bench.beside [traffic|growth]`.

`traffic`: programs send and receive recoverable messages at a fixed rate, in windows that alternate between
without and with a reader of another, deep queue, held to the server's `bulk.share`; times run from when a
message was due to its delivery. `growth`: a deep queue whose messages are replaced again and again while it
is read from one end to the other, by a reader that takes what it gets and by one that dawdles; how much the
data file grows meanwhile, after the same load without readers has brought it near its steady size. The
server, the load and the readers share the machine, the readers at the lowest priority: elsewhere they have a
machine of their own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from bench import appload
from bench.appload import AppLoad
from bench.measure import Figures
from bench.report import Check
from bench.server import Server
from msmq_fast.client.bulk.client import BulkClient

__all__ = ["Growth", "Window", "checks", "growth", "ratio", "reading", "traffic"]

READ: Final = "deep"
LIVE: Final = "live"
P99_RATIO: Final = 1.5
GROWTH: Final = 0.1
COLUMNS: Final = "core"
_FEED: Final = 64 << 20  # bytes of events that are kept: what they take is steady before anything is compared
_READY_S: Final = 60


@dataclass(frozen=True, slots=True)
class Window:
    """Milliseconds from when a message was due to its delivery; `reader`: whether one was at work."""

    reader: bool
    in_per_s: float
    p50: float
    p99: float
    read_per_s: float
    server_cores: float


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes of the data file and of its pages in use, at the beginning and at the end of the reading."""

    seconds: float
    turnover: float
    read_rows: int
    file_before: float
    file_after: float
    used_before: float
    used_after: float
    used_most: float

    @property
    def file(self) -> float:
        """By how much the file grew, as a share of what it was."""
        return self.file_after / self.file_before - 1

    @property
    def used(self) -> float:
        """Likewise the pages in use, at their most."""
        return self.used_most / self.used_before - 1


def _read(url: str, queue: str, pause_s: float, reads: Synchronized[int], begun: Event, ended: Event) -> None:
    """In a process of its own: the whole queue, again and again; a pause after each batch.

    It lets the server and the load go first: what is asked is what the server's part of the reading costs.
    """
    os.nice(19)
    with BulkClient(url) as client:
        while not ended.is_set():
            stop = client.bounds([queue]).next
            batches = client.rows(queue, 0, stop, columns=COLUMNS)
            for batch in batches:
                begun.set()
                with reads.get_lock():
                    reads.value += batch.num_rows
                if ended.wait(pause_s) if pause_s else ended.is_set():
                    batches.close()
                    break


class Reader:
    """A process that reads, while it is entered; `rows` so far."""

    def __init__(self, server: Server, queue: str, pause_s: float = 0) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._rows: Synchronized[int] = spawn.Value("q", 0)
        self._begun, self._ended = spawn.Event(), spawn.Event()
        url = f"msmq+bulk://127.0.0.1:{server.admin_port}"
        self._process = spawn.Process(
            target=_read, args=(url, queue, pause_s, self._rows, self._begun, self._ended), daemon=True
        )

    @property
    def rows(self) -> int:
        """What came until now."""
        return self._rows.value

    def start(self) -> None:
        """Returns when the first rows are there. RuntimeError: they do not come."""
        self._process.start()
        if not self._begun.wait(_READY_S):
            raise RuntimeError("the reader got no rows")

    def stop(self) -> None:
        """The process has ended when this returns."""
        self._ended.set()
        self._process.join()

    def check(self) -> None:
        """RuntimeError: it has ended before its time."""
        if not self._process.is_alive():
            raise RuntimeError(f"the reader ended with code {self._process.exitcode}")


@contextmanager
def reading(server: Server, queue: str, *pauses_s: float) -> Iterator[list[Reader]]:
    """Readers of a queue, one for each pause after a batch."""
    readers = [Reader(server, queue, pause) for pause in pauses_s]
    started: list[Reader] = []
    try:
        for reader in readers:
            reader.start()
            started.append(reader)
        yield readers
        for reader in readers:
            reader.check()
    finally:
        for reader in started:
            reader.stop()


def _window(server: Server, load: AppLoad, *, reader: bool) -> Window:
    with reading(server, READ, *[0.0] * reader) as readers:
        before, begun = sum(one.rows for one in readers), time.perf_counter()
        figures: Figures = appload.on_server(load, LIVE)(server)
        rows = sum(one.rows for one in readers) - before
        seconds = time.perf_counter() - begun
    return Window(
        reader,
        figures["in_per_s"],
        figures["end_to_end_p50_us"] / 1e3,
        figures["end_to_end_p99_us"] / 1e3,
        rows / seconds,
        figures["server_cores"],
    )


def traffic(
    directory: Path, *, load: AppLoad, depth: int, windows: int, settings: str = ""
) -> Iterator[Window]:
    """Pairs of windows, without and with a reader, in an order that turns around from pair to pair."""
    with Server(directory, queues=(READ, LIVE), settings=settings) as server:
        appload.fill(server, READ, depth, load.body)
        _window(server, replace(load, seconds=min(load.seconds, 2)), reader=True)  # warms up
        for number in range(windows):
            for reader in (False, True) if number % 2 == 0 else (True, False):
                yield _window(server, load, reader=reader)


def ratio(windows: Sequence[Window]) -> float:
    """The median p99 with a reader by that without."""
    with_reader = [window.p99 for window in windows if window.reader]
    without = [window.p99 for window in windows if not window.reader]
    return statistics.median(with_reader) / statistics.median(without)


def growth(
    directory: Path, *, load: AppLoad, depth: int, seconds: float, settle: float, pause_s: float
) -> Growth:
    """A queue of `depth` messages under `load`: `settle` seconds without readers, then `seconds` with two."""
    settings = f"[store]\nfeed_max_size = {_FEED}\n"
    with Server(directory, queues=(READ,), settings=settings) as server:
        appload.fill(server, READ, depth, load.body)
        appload.on_server(replace(load, level=True, seconds=settle), READ)(server)
        before = server.metrics()
        most = before["msmq_fast_store_used_bytes"]
        ended = threading.Event()

        def look() -> None:
            nonlocal most
            while not ended.wait(1):
                most = max(most, server.metrics()["msmq_fast_store_used_bytes"])

        looking = threading.Thread(target=look)
        with reading(server, READ, 0.0, pause_s) as readers:
            looking.start()
            try:
                under = appload.on_server(replace(load, level=True, seconds=seconds), READ)(server)
            finally:
                ended.set()
                looking.join()
            after = server.metrics()
            rows = sum(reader.rows for reader in readers)
    return Growth(
        seconds,
        under["messages"] / depth,
        rows,
        before["msmq_fast_store_file_bytes"],
        after["msmq_fast_store_file_bytes"],
        before["msmq_fast_store_used_bytes"],
        after["msmq_fast_store_used_bytes"],
        most,
    )


def checks(found: Growth) -> list[Check]:
    """What a long read may cost, and that it was one."""
    return [
        Check("times that every message was replaced", found.turnover, 1, ""),
        Check("growth of the data file", found.file, GROWTH, "", upper=True),
        Check("growth of the pages in use", found.used, GROWTH, "", upper=True),
    ]


def _print_traffic(options: argparse.Namespace) -> bool:
    load = AppLoad(rate=options.rate, body=options.body, window=4096, seconds=options.seconds, max_bytes=0)
    settings = f"[bulk]\nshare = {options.share:g}\n"
    found: list[Window] = []
    windows = traffic(options.dir, load=load, depth=options.depth, windows=options.windows, settings=settings)
    if not options.json:
        print(f"{'reader':8}{'msgs/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'rows read/s':>13}{'server cores':>14}")
    for window in windows:
        found.append(window)
        if not options.json:
            who = "with" if window.reader else "without"
            print(
                f"{who:8}{window.in_per_s:9,.0f}{window.p50:9.3f}{window.p99:9.3f}"
                f"{window.read_per_s:13,.0f}{window.server_cores:14.2f}",
                flush=True,
            )
    check = Check("p99 with a reader by p99 without, medians", ratio(found), P99_RATIO, "", upper=True)
    if options.json:
        print(json.dumps({"windows": [asdict(window) for window in found], "ratio": check.value}, indent=1))
    else:
        print(check)
    return check.passed


def _print_growth(options: argparse.Namespace) -> bool:
    load = AppLoad(rate=options.rate, body=options.body, window=4096, max_bytes=0)
    found = growth(
        options.dir,
        load=load,
        depth=options.depth,
        seconds=options.minutes * 60,
        settle=options.settle,
        pause_s=options.pause,
    )
    wanted = checks(found)
    if options.json:
        print(json.dumps(asdict(found) | {"file_growth": found.file, "used_growth": found.used}, indent=1))
        return all(check.passed for check in wanted)
    mib = 2**20
    print(
        f"{found.seconds:,.0f} s, {found.read_rows:,} rows read, queue replaced {found.turnover:.1f} times\n"
        f"file {found.file_before / mib:,.0f} -> {found.file_after / mib:,.0f} MiB, pages in use "
        f"{found.used_before / mib:,.0f} -> {found.used_after / mib:,.0f} MiB "
        f"(at most {found.used_most / mib:,.0f})"
    )
    print(*wanted, sep="\n")
    return all(check.passed for check in wanted)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures and the verdicts; 1 if one is a miss."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["traffic", "growth"], default="traffic")
    parser.add_argument("--rate", type=float, help="messages a second (traffic 5,000, growth 20,000)")
    parser.add_argument("--body", type=int, default=1024, help="bytes (1024)")
    parser.add_argument("--depth", type=int, default=200_000, help="messages of the queue that is read")
    parser.add_argument("--seconds", type=float, default=10, help="of a window (10)")
    parser.add_argument("--windows", type=int, default=6, help="pairs of windows (6)")
    parser.add_argument("--share", type=float, default=0.5, help="bulk.share of the server (0.5)")
    parser.add_argument("--minutes", type=float, default=10, help="of growth (10)")
    parser.add_argument(
        "--settle",
        type=float,
        default=600,
        help="seconds of load before the readers (600): a new file grows by a fifth until it is steady",
    )
    parser.add_argument(
        "--pause", type=float, default=1, help="of the dawdling reader, seconds after a batch"
    )
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for data directories")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.rate is None:
        options.rate = 5_000 if options.what == "traffic" else 20_000
    passed = _print_traffic(options) if options.what == "traffic" else _print_growth(options)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
