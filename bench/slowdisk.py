"""A measurement on a disk of a chosen slowness: `python -m bench.slowdisk MICROSECONDS [MEASUREMENT …]`.

The stores are made on tmpfs (/dev/shm, unless `--dir` names another place), and each sync of the server, and
each write of LMDB's meta page, takes MICROSECONDS: neither the real disk nor its other users count. 100 is
about a fast SSD, 2000 a slow one. With `--spike-us N --spike-every N`, which come before MICROSECONDS, one
sync in so many takes longer, as on disks that others use, too. What follows goes to `python -m bench`:

    python -m bench.slowdisk 100 mqqb --recoverable --sessions 8
    python -m bench.slowdisk --spike-us 20000 --spike-every 500 100 app --lockstep
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.generators import GeneratorError

__all__ = ["TMPFS", "Cut", "Spikes", "environment", "main"]

TMPFS = Path("/dev/shm")  # noqa: S108 - that is what it is there for
_SOURCE = Path(__file__).parent / "native" / "slow_disk.c"


@dataclass(frozen=True, slots=True)
class Spikes:
    """Every `every`-th wait for the disk takes `microseconds`."""

    microseconds: int
    every: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The `write`-th write below `directory` ends at a boundary of sectors, and the process is killed."""

    directory: Path
    write: int
    seed: int = 0


def environment(
    microseconds: int, directory: Path, *, spikes: Spikes | None = None, cut: Cut | None = None
) -> dict[str, str]:
    """The variables for a process whose disk is so slow; the library is compiled into `directory`.

    Raises GeneratorError when it does not compile.
    """
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / "slow_disk.so"
    built = subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o", str(library), str(_SOURCE), "-ldl"],
        capture_output=True,
        text=True,
    )
    if built.returncode:
        raise GeneratorError(f"slow_disk.c does not compile:\n{built.stderr}")
    found = {"LD_PRELOAD": str(library), "BENCH_DISK_US": str(microseconds)}
    if spikes is not None:
        found["BENCH_DISK_SPIKE_US"] = str(spikes.microseconds)
        found["BENCH_DISK_SPIKE_EVERY"] = str(spikes.every)
    if cut is not None:
        found["BENCH_DISK_CUT_IN"] = f"{cut.directory.resolve()}/"
        found["BENCH_DISK_CUT_AT"] = str(cut.write)
        found["BENCH_DISK_CUT_SEED"] = str(cut.seed)
    return found


def main() -> int:
    """Run `python -m bench` on such a disk; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.slowdisk",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--spike-us", type=int, metavar="N", help="microseconds of a spike")
    parser.add_argument("--spike-every", type=int, default=1000, metavar="N", help="syncs (1000)")
    parser.add_argument("microseconds", type=int)
    parser.add_argument("measurement", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    build = Path(__file__).parent.parent / "build" / "bench"
    spikes = Spikes(given.spike_us, given.spike_every) if given.spike_us else None
    slow = os.environ | environment(given.microseconds, build, spikes=spikes)
    where = () if "--dir" in given.measurement else ("--dir", str(TMPFS))
    command = [sys.executable, "-m", "bench", *where, *given.measurement]
    return subprocess.run(command, env=slow).returncode


if __name__ == "__main__":
    sys.exit(main())
