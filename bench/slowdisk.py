"""A measurement on a disk of a chosen slowness: `python -m bench.slowdisk MICROSECONDS [MEASUREMENT …]`.

The stores are made on tmpfs (/dev/shm, unless `--dir` names another place), and each sync of the server, and
each write of LMDB's meta page, takes MICROSECONDS: neither the real disk nor its other users count. 100 is
about a fast SSD, 2000 a slow one. What follows goes to `python -m bench`:

    python -m bench.slowdisk 100 mqqb --recoverable --sessions 8
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from bench.generators import GeneratorError

__all__ = ["TMPFS", "environment", "main"]

TMPFS = Path("/dev/shm")  # noqa: S108 - that is what it is there for
_SOURCE = Path(__file__).parent / "native" / "slow_disk.c"


def environment(microseconds: int, directory: Path) -> dict[str, str]:
    """The variables for a server whose disk is so slow; the library is compiled into `directory`.

    Raises GeneratorError when it does not compile.
    """
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / "slow_disk.so"
    built = subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"],
        capture_output=True,
        text=True,
    )
    if built.returncode:
        raise GeneratorError(f"slow_disk.c does not compile:\n{built.stderr}")
    return {"LD_PRELOAD": str(library), "BENCH_DISK_US": str(microseconds)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.slowdisk", description=__doc__)
    parser.add_argument("microseconds", type=int)
    parser.add_argument("measurement", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    build = Path(__file__).parent.parent / "build" / "bench"
    slow = os.environ | environment(given.microseconds, build)
    where = () if "--dir" in given.measurement else ("--dir", str(TMPFS))
    command = [sys.executable, "-m", "bench", *where, *given.measurement]
    return subprocess.run(command, env=slow).returncode


if __name__ == "__main__":
    sys.exit(main())
