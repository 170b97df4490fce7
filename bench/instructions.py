"""Instructions per message, which other load does not change: `python -m bench.instructions [CASE …]`.

A whole server runs under callgrind (Debian and Ubuntu: `apt-get install valgrind`), its store on tmpfs. For
each case the generator sends a warm-up, callgrind's counters are set to zero, so many messages follow, and
the counters are read; what the loop and its timers did meanwhile is part of it. `--program` names another
server, such as that of another commit: run both and divide. `--keep DIRECTORY` keeps the profiles for
`callgrind_annotate`.

    python -m bench.instructions express recoverable in-and-out one-at-a-time
    python -m bench.instructions --program "/path/of/another/tree/.venv/bin/python -m msmq_fast"
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench import appload, mqqb
from bench.appload import AppLoad
from bench.measure import Figures
from bench.mqqb import Group, Load
from bench.server import Server, ServerError
from bench.slowdisk import TMPFS

__all__ = ["CASES", "main"]

_SETTINGS = """
[protection]
rsa_bits = "1024"
[store]
map_size = "2 GiB"
[limits]
handshake_timeout = 600
slow_writer_timeout = 600
"""
_TOOLS = ("valgrind", "callgrind_control")


@dataclass(frozen=True, slots=True)
class Case:
    """A load of `count` messages."""

    run: Callable[[Server, int], Figures]
    count: int


def _sessions(recoverable: bool) -> Callable[[Server, int], Figures]:
    def run(server: Server, count: int) -> Figures:
        load = Load((Group(1024, recoverable, sessions=8),), count=count, warmup=0)
        return mqqb.on_server(load)(server)

    return run


def _programs(load: AppLoad) -> Callable[[Server, int], Figures]:
    def run(server: Server, count: int) -> Figures:
        return appload.on_server(replace(load, count=count, warmup=0))(server)

    return run


CASES = {
    "express": Case(_sessions(False), 40_000),
    "recoverable": Case(_sessions(True), 20_000),
    "in-and-out": Case(_programs(AppLoad()), 10_000),
    "one-at-a-time": Case(_programs(AppLoad(lockstep=True)), 500),
}


class Callgrind:
    """A server under callgrind: counts between two moments."""

    def __init__(self, program: list[str], directory: Path, *, parent: Path) -> None:
        self.directory = directory
        command = [
            *("valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"),
            f"--callgrind-out-file={directory}/callgrind.out.%p",
            *program,
        ]
        self.server = Server(parent, settings=_SETTINGS, program=command)

    def settle(self) -> None:
        """Wait until a new server has made its key pairs, which take longer than everything else."""
        used, quiet = -1.0, 0
        while quiet < 4:
            time.sleep(0.5)
            before, used = used, self.server.sample().cpu_s
            quiet = quiet + 1 if used - before < 0.05 else 0

    def control(self, option: str) -> None:
        """Raises ServerError when callgrind does not answer."""
        done = subprocess.run(
            ["callgrind_control", option, str(self.server.pid)], capture_output=True, text=True, timeout=300
        )
        if done.returncode or "Error" in done.stdout + done.stderr:
            raise ServerError(f"callgrind_control {option}: {done.stdout}{done.stderr}")

    def counted(self, case: Case, count: int, name: str) -> float:
        """Instructions of a message in this case."""
        self.control("--instr=on")
        case.run(self.server, max(count // 4, 100))
        self.control("--zero")
        before = set(self.directory.iterdir())
        case.run(self.server, count)
        self.control(f"--dump={name}")
        (dumped,) = set(self.directory.iterdir()) - before
        self.control("--instr=off")
        kept = dumped.rename(self.directory / f"{name}.callgrind")
        return _total(kept) / count


def _total(profile: Path) -> int:
    """The instructions of all threads in a profile."""
    for line in reversed(profile.read_text().splitlines()):
        if line.startswith(("totals:", "summary:")):
            return int(line.split()[1])
    raise ServerError(f"{profile} has no total")


def main() -> int:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("case", nargs="*", choices=[*CASES, []], help=", ".join(CASES))
    parser.add_argument("--program", default=f"{sys.executable} -m msmq_fast", help="the server")
    parser.add_argument("--scale", type=float, default=1, help="times as many messages")
    parser.add_argument("--dir", type=Path, default=TMPFS, help=f"where the store is made ({TMPFS})")
    parser.add_argument("--keep", type=Path, help="directory for the profiles")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"bench.instructions: {missing[0]} is missing: apt-get install valgrind", file=sys.stderr)
        return 2
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="msmq-callgrind-") as directory:
        kept = given.keep or Path(directory)
        kept.mkdir(parents=True, exist_ok=True)
        callgrind = Callgrind(shlex.split(given.program), kept, parent=given.dir)
        server = callgrind.server
        try:
            server.start(timeout=900)
            callgrind.settle()
            for name in given.case or CASES:
                found[name] = callgrind.counted(CASES[name], round(CASES[name].count * given.scale), name)
                if not given.json:
                    print(f"{name:16} {found[name]:12,.0f} instructions a message", flush=True)
            server.stop(check=False, timeout=600)
        finally:
            server.remove()
    if given.json:
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
