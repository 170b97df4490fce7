"""Two servers in turn, such as two commits: `python -m bench.compare PROGRAM [CASE …]`.

PROGRAM is the other server, one quoted text such as "/path/of/another/tree/.venv/bin/python -m msmq_fast".
Each pair of runs has one of either, the order changes from pair to pair, and each run has a fresh server and
store. Printed are the medians and the ratio of this server to the other: messages a second, and processor
time a message, of which the least of all runs says most on a machine that does other things, too; that of
both servers in the case `between`, in which a program sends through one server into a second one.
`remote-reads` are two-phase reads by 16 clients over RPC, `srmp` durable posts over 16 connections. With
`--disk-us 100` the disk is simulated, see `bench.slowdisk`; then only processor time and waiting count.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import appload, mqqb, remoteread, srmp, txload
from bench.appload import AppLoad
from bench.measure import Figures
from bench.mqqb import Group, Load
from bench.remoteread import Load as Reads
from bench.server import Server
from bench.slowdisk import TMPFS, environment
from bench.srmp import Posts
from bench.txload import TxLoad

__all__ = ["CASES", "main"]

_RATE, _CPU = "rate", "cpu"
# Messages for each second of a run: about what a server does, and what two do.
_BETWEEN_PER_S = 30_000
_READS_PER_S = 10_000
_POSTS_PER_S = 5_000
_SETTINGS = {"remote-reads": remoteread.SETTINGS, "srmp": srmp.SETTINGS}


def _cases(seconds: float) -> dict[str, Callable[[Server], Figures]]:
    streams = Group(1024, True, sessions=8, transactional=True)
    return {
        "express": mqqb.on_server(Load((Group(1024, False, sessions=8),), seconds=seconds)),
        "recoverable": mqqb.on_server(Load((Group(1024, True, sessions=8),), seconds=seconds)),
        "transactional": mqqb.on_server(Load((streams,), seconds=seconds)),
        "in-and-out": appload.on_server(AppLoad(seconds=seconds)),
        "one-at-a-time": appload.on_server(AppLoad(lockstep=True, seconds=seconds)),
        "remote-reads": remoteread.by_rpc(Reads(clients=16, count=round(seconds * _READS_PER_S))),
        "srmp": srmp.on_server(Posts(round(seconds * _POSTS_PER_S), round(seconds * _POSTS_PER_S / 10))),
        "between": txload.to_another_server(TxLoad(clients=8, size=100), round(seconds * _BETWEEN_PER_S)),
    }


CASES = tuple(_cases(1))


def _figures(
    name: str, run: Callable[[Server], Figures], program: Sequence[str], directory: Path
) -> dict[str, float]:
    with Server(directory, program=program, settings=_SETTINGS.get(name, "")) as server:
        found = run(server)
    rate = found.get("out_per_s", found["in_per_s"])
    cpu = found["server_cpu_us_per_message"] + found.get("target_cpu_us_per_message", 0.0)
    return {_RATE: rate, _CPU: cpu}


def main() -> int:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", help="the other server")
    parser.add_argument("case", nargs="*", help=", ".join(CASES))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of a run (2)")
    parser.add_argument("--dir", type=Path, help="where the stores are made: a real disk")
    parser.add_argument("--disk-us", type=int, help="simulate a disk: microseconds of a sync")
    given = parser.parse_args()
    directory = given.dir or Path(tempfile.gettempdir())
    if given.disk_us is not None:
        os.environ.update(environment(given.disk_us, Path(__file__).parent.parent / "build" / "bench"))
        directory = given.dir or TMPFS
    programs = [[sys.executable, "-m", "msmq_fast"], shlex.split(given.program)]
    cases = _cases(given.seconds)
    print(
        f"{'':16} {'messages/s':>12} {'other':>12} {'ratio':>6} {'cpu µs':>9} {'other':>8} {'ratio':>6} least"
    )
    for name in given.case or cases:
        runs: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for pair in range(given.pairs):
            for which in (0, 1) if pair % 2 else (1, 0):
                runs[which].append(_figures(name, cases[name], programs[which], directory))
        rate, other_rate = (statistics.median(run[_RATE] for run in side) for side in runs)
        cpu, other_cpu = (statistics.median(run[_CPU] for run in side) for side in runs)
        least, other_least = (min(run[_CPU] for run in side) for side in runs)
        print(
            f"{name:16} {rate:12,.0f} {other_rate:12,.0f} {rate / other_rate:6.2f} "
            f"{cpu:9.2f} {other_cpu:8.2f} {cpu / other_cpu:6.2f}  "
            f"{least:.2f} / {other_least:.2f} = {least / other_least:.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
