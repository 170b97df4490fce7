"""One measurement: what is run, how often, and the medians of what came out."""

from __future__ import annotations

import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.process import Sample
from bench.server import Server

__all__ = ["Figures", "Measurement", "ServerWatch", "command_line", "measure", "medians"]

Figures = dict[str, float]

# A commit of LMDB is one fdatasync of the data and one O_DSYNC write of the meta page; it is counted once.
_SYNC_COUNTER = "msmq_fast_store_commits_total"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The outcome: the command that repeats it, the figures of every run and their medians."""

    name: str
    command: str
    runs: list[Figures]

    @property
    def figures(self) -> Figures:
        """The median of each figure over the runs."""
        return medians(self.runs)

    def as_json(self) -> dict[str, Any]:
        """The form that is written to files."""
        return {"name": self.name, "command": self.command, "median": self.figures, "runs": self.runs}


def medians(runs: Sequence[Figures]) -> Figures:
    """The median of each figure that every run has."""
    names = [name for name in runs[0] if all(name in run for run in runs)]
    return {name: statistics.median(run[name] for run in runs) for name in names}


def command_line(arguments: Sequence[str]) -> str:
    """`python -m bench …` as one types it."""
    return shlex.join(["python", "-m", "bench", *arguments])


class ServerWatch:
    """What the server used between the events "start" and "stop" of a generator."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._before: tuple[Sample, Figures, float] | None = None
        self._after: tuple[Sample, Figures, float] | None = None

    def on_event(self, event: str) -> None:
        """Samples the process; the metrics page is read outside the sampled processor time."""
        if event == "start":
            metrics = self._server.metrics()
            self._before = (self._server.sample(), metrics, time.perf_counter())
        elif event == "stop":
            seen = self._server.sample()
            self._after = (seen, self._server.metrics(), time.perf_counter())

    def figures(self, per_s: float) -> Figures:
        """Processor time per message, cores, memory, syncs; `per_s` is the messages a second, in or out."""
        if self._before is None or self._after is None:
            return {}
        (before, metrics_before, begin), (after, metrics_after, end) = self._before, self._after
        elapsed = end - begin
        cores = (after.cpu_s - before.cpu_s) / elapsed
        found = {
            "server_cores": cores,
            "server_rss_mib": after.rss / 2**20,
            "server_rss_anon_mib": after.rss_anon / 2**20,
            "switches_per_s": (after.switches - before.switches) / elapsed,
        }
        if per_s:
            found["server_cpu_us_per_message"] = cores * 1e6 / per_s
            found["disk_bytes_per_message"] = (after.written - before.written) / elapsed / per_s
        if _SYNC_COUNTER in metrics_after:
            syncs = metrics_after[_SYNC_COUNTER] - metrics_before.get(_SYNC_COUNTER, 0.0)
            found["fsyncs_per_s"] = syncs / elapsed
            if syncs:
                found["messages_per_fsync"] = per_s * elapsed / syncs
        return found


def measure(
    name: str,
    arguments: Sequence[str],
    run: Callable[[Server], Figures],
    *,
    directory: Path,
    runs: int,
    settings: str = "",
    queues: Sequence[str] = ("bench",),
    before_run: Callable[[Path], Figures],
) -> Measurement:
    """Runs on a fresh server and a fresh store each time, and says on stderr how it goes.

    What `before_run` finds in the directory of the stores stands beside the figures of that run.
    """
    results: list[Figures] = []
    for number in range(1, runs + 1):
        limits = before_run(directory)
        with Server(directory, queues=queues, settings=settings) as server:
            results.append(run(server) | limits)
        print(f"  {name}: run {number} of {runs}", file=sys.stderr)
    return Measurement(name, command_line(arguments), results)
