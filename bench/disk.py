"""The disk alone: what any durable design must wait for, to stand beside the figures of a server.

`bench/native/disk.c` says what each mode does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.generators import run_generator
from bench.measure import Figures, Measurement, command_line
from bench.report import grid

__all__ = ["MODES", "floor", "run", "table"]

MODES: Final = {
    "append-fdatasync-lone": "append, fdatasync",
    "append-rwf-dsync-lone": "append, RWF_DSYNC",
    "append-direct-lone": "append, O_DIRECT and O_DSYNC, whole pages",
    "scattered-lone": "7 pages in places of their own, fdatasync, a page through O_DSYNC",
    "append-fdatasync-batch": "append, fdatasync",
    "append-rwf-dsync-batch": "append, RWF_DSYNC",
    "append-direct-batch": "append, O_DIRECT and O_DSYNC, whole pages",
    "scattered-batch": "211 pages, one in eight in a place of its own, fdatasync, a page through O_DSYNC",
    "inline-idle": "append, fdatasync on the loop's thread, idle loop",
    "thread-idle": "the same on another thread, which wakes the loop by an eventfd",
    "inline-busy": "append, fdatasync on the loop's thread, busy loop",
    "thread-busy": "the same on another thread; the loop looks every 20 µs",
}
_LONE, _BATCH = "append-fdatasync-lone", "append-fdatasync-batch"
_FLOOR_ROUNDS = 100


def _times(directory: Path, rounds: int, modes: Sequence[str]) -> dict[str, Figures]:
    arguments = ["--dir", str(directory), "--rounds", str(rounds), "--modes", ",".join(modes)]
    found = run_generator("disk", arguments)["modes"]
    return {name: {"bytes": mode["bytes"], **mode["time"]} for name, mode in found.items()}


def floor(directory: Path) -> Figures:
    """A short look: one append with a sync, of one message and of 255, as figures beside those of a run."""
    found = _times(directory, _FLOOR_ROUNDS, (_LONE, _BATCH))
    lone, batch = found[_LONE], found[_BATCH]
    return {
        "disk_lone_p50_us": lone["p50_us"],
        "disk_lone_p99_us": lone["p99_us"],
        "disk_batch_p50_us": batch["p50_us"],
    }


def run(arguments: Sequence[str], directory: Path, *, runs: int, rounds: int) -> list[Measurement]:
    """Every mode that the file system takes; `arguments` repeat it."""
    found = [_times(directory, rounds, tuple(MODES)) for _ in range(runs)]
    names = [name for name in MODES if all(name in times for times in found)]
    return [Measurement(name, command_line(arguments), [times[name] for times in found]) for name in names]


def table(measurements: Sequence[Measurement]) -> str:
    """A row for each mode, medians over the runs."""
    rows = [["", "bytes", "p50 µs", "p99 µs", "p99.9 µs"]]
    for measurement in measurements:
        figures = measurement.figures
        times = [f"{figures[name]:,.0f}" for name in ("bytes", "p50_us", "p99_us", "p999_us")]
        rows.append([MODES[measurement.name], *times])
    return f"{grid(rows)}\nmedians of {len(measurements[0].runs)} runs\n  {measurements[0].command}"
