"""SRMP over HTTP: `python -m bench.srmp [--runs 3]`.

Recoverable messages of 1 KiB over 16 connections that are kept alive, one request under way on each: an
answer says that the message is on the disk. One more run, whose figures do not count, tells in which part of
the server its processor time goes (`bench.sampled`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import machine, report
from bench.generators import GeneratorError
from bench.measure import Figures, ServerWatch, medians
from bench.report import Check
from bench.server import Server, ServerError

__all__ = ["SETTINGS", "Posts", "main", "on_server"]

QUEUE: Final = "bench"
SETTINGS: Final = "[listen.http]\nport = 0\n"
WANTED: Final = 3_000.0
SAMPLED = (sys.executable, "-m", "bench.sampled")
_SHOWN: Final = (
    ("in_per_s", "messages/s", ",.0f", 1.0),
    ("p50_us", "p50 ms", ",.2f", 1e-3),
    ("p99_us", "p99 ms", ",.2f", 1e-3),
    ("server_cores", "server cores", ".2f", 1.0),
    ("server_cpu_us_per_message", "µs/message", ",.0f", 1.0),
    ("generator_cores", "client cores", ".2f", 1.0),
    ("fsyncs_per_s", "fsync/s", ",.0f", 1.0),
)


@dataclass(frozen=True, slots=True)
class Posts:
    """Messages over so many connections; those of the warm-up do not count."""

    count: int = 30_000
    warmup: int = 3_000
    connections: int = 16
    size: int = 1024
    express: bool = False


def on_server(posts: Posts) -> Callable[[Server], Figures]:
    """A run for `bench.compare`."""
    return lambda server: load(server, posts)


def load(server: Server, posts: Posts, on_event: object = None) -> Figures:
    """One run of the client against a server; what it and the server say."""
    address = server.listening["http"].partition(",")[0]
    watch = ServerWatch(server)
    command = [sys.executable, "-m", "bench.srmpload", address, "--queue", QUEUE]
    command += ["--count", str(posts.count), "--warmup", str(posts.warmup)]
    command += ["--connections", str(posts.connections), "--size", str(posts.size)]
    command += ["--express"] if posts.express else []
    found: Figures = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        for line in client.stdout:
            answer = json.loads(line)
            watch.on_event(answer.pop("event"))
            if callable(on_event):
                on_event()
            found |= answer
    if client.returncode:
        raise GeneratorError(f"bench.srmpload ended with {client.returncode}")
    arrived = server.metrics()
    return found | watch.figures(found["in_per_s"]) | {"arrived": _in_queue(arrived)}


def _in_queue(metrics: dict[str, float]) -> float:
    return metrics.get("msmq_fast_messages_in_total", 0.0)


def shares(posts: Posts, directory: Path) -> dict[str, float]:
    """Share of the server's processor time by part, in one run of its own."""
    with tempfile.NamedTemporaryFile(prefix="msmq-bench-parts-") as file:
        program = (*SAMPLED, file.name)
        with Server(directory, queues=(QUEUE,), settings=SETTINGS, program=program) as server:
            load(server, posts, lambda: os.kill(server.pid, signal.SIGUSR1))
            deadline = time.monotonic() + 10
            while not (text := Path(file.name).read_text()) and time.monotonic() < deadline:
                time.sleep(0.05)
    counts = json.loads(text)
    total = sum(counts.values())
    return {part: count / total for part, count in sorted(counts.items(), key=lambda each: -each[1])}


def _line(figures: Figures) -> str:
    shown = ((key, heading, form, factor) for key, heading, form, factor in _SHOWN if key in figures)
    return ", ".join(
        f"{format(figures[key] * factor, form)} {heading}" for key, heading, form, factor in shown
    )


def main(arguments: Sequence[str]) -> int:
    """0, or 1 where the figure misses what is wanted, or something failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.srmp", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs, each on a fresh server and store (3)")
    parser.add_argument("--count", type=int, default=30_000, help="messages of a run (30000)")
    parser.add_argument("--connections", type=int, default=16, help="connections (16)")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a body (1024)")
    parser.add_argument("--express", action="store_true", help="without <durable/>")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="a real disk")
    options = parser.parse_args(arguments)
    posts = Posts(options.count, options.count // 10, options.connections, options.size, options.express)
    try:
        runs = []
        for number in range(1, options.runs + 1):
            with Server(options.dir, queues=(QUEUE,), settings=SETTINGS) as server:
                runs.append(load(server, posts))
            print(f"  run {number} of {options.runs}: {_line(runs[-1])}", file=sys.stderr)
        parts = shares(posts, options.dir)
    except (GeneratorError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(report.facts_line(machine.facts(options.dir)))
    found = medians(runs)
    print(_line(found))
    print("server time: " + ", ".join(f"{part} {share:.0%}" for part, share in parts.items()))
    check = Check("SRMP in", found["in_per_s"], WANTED, "messages/s")
    print(report.verdicts([check]))
    return int(not check.passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
