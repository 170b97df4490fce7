"""Instructions per message, which other load does not change: `python -m bench.instructions [CASE …]`.

A whole server runs under callgrind (Debian and Ubuntu: `apt-get install valgrind`), its store on tmpfs. For
each case the generator sends a warm-up, callgrind's counters are set to zero, so many messages follow, and
the counters are read; what the loop and its timers did meanwhile is part of it. `--program` names another
server, such as that of another commit: run both and divide. `--keep DIRECTORY` keeps the profiles for
`callgrind_annotate`. The case `between` has two servers, of which a program sends through the first into the
second: printed are both together, then the sending and the receiving one.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import appload, mqqb, remoteread, srmp, txload
from bench.appload import AppLoad
from bench.mqqb import Group, Load
from bench.remoteread import Load as Reads
from bench.server import Server, ServerError
from bench.slowdisk import TMPFS
from bench.srmp import Posts
from bench.txload import TxLoad

__all__ = ["CASES", "main"]

_SETTINGS = """
[protection]
rsa_bits = "1024"
[store]
map_size = "2 GiB"
[rpc]
allow_unauthenticated = true
[listen.http]
port = 0
[limits]
handshake_timeout = 600
slow_writer_timeout = 600
"""
_TOOLS = ("valgrind", "callgrind_control")
_PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Case:
    """A load of `count` messages, and what each server that takes part is called in the figures."""

    run: Callable[[Sequence[Server], int], object]
    count: int
    parts: tuple[str, ...] = ("",)


def _sessions(recoverable: bool, *, transactional: bool = False) -> Case:
    group = Group(1024, recoverable, sessions=8, transactional=transactional)

    def run(servers: Sequence[Server], count: int) -> object:
        return mqqb.on_server(Load((group,), count=count, warmup=0))(servers[0])

    return Case(run, 20_000 if recoverable else 40_000)


def _programs(load: AppLoad, count: int) -> Case:
    def run(servers: Sequence[Server], count: int) -> object:
        return appload.on_server(replace(load, count=count, warmup=0))(servers[0])

    return Case(run, count)


def _remote_reads(servers: Sequence[Server], count: int) -> object:
    """Reads of two phases; the messages are sent in batches before, which costs little beside them."""
    return remoteread.by_rpc(Reads(clients=16, count=count))(servers[0])


def _posts(servers: Sequence[Server], count: int) -> object:
    return srmp.on_server(Posts(count, warmup=0))(servers[0])


def _between(servers: Sequence[Server], count: int) -> None:
    """Asks how far it is only when both servers are idle: an answer takes as much as many messages."""
    sending, receiving = servers
    before = txload.arrived(receiving)
    txload.send_across(sending, receiving, TxLoad(clients=8, size=100), count)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        _idle(servers)
        came = txload.arrived(receiving) - before
        if came >= count:
            return
        if time.monotonic() > deadline:
            raise ServerError(f"{count} messages were sent, {came:.0f} arrived")


def _idle(servers: Sequence[Server]) -> None:
    """Return when no server has done anything for two seconds."""
    used, quiet = -1.0, 0
    while quiet < 4:
        time.sleep(0.5)
        before, used = used, sum(server.sample().cpu_s for server in servers)
        quiet = quiet + 1 if used - before < 0.05 * len(servers) else 0


CASES = {
    "express": _sessions(False),
    "recoverable": _sessions(True),
    "transactional": _sessions(True, transactional=True),
    "in-and-out": _programs(AppLoad(), 10_000),
    "one-at-a-time": _programs(AppLoad(lockstep=True), 500),
    "remote-reads": Case(_remote_reads, 4_000),
    "srmp": Case(_posts, 3_000),
    "between": Case(_between, 10_000, ("-sending", "-receiving")),
}


class Callgrind:
    """Servers under callgrind: counts between two moments. The first case for two starts the second."""

    def __init__(self, program: list[str], directory: Path, *, parent: Path) -> None:
        self.directory = directory
        command = [
            *("valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"),
            f"--callgrind-out-file={directory}/callgrind.out.%p",
            *program,
        ]
        self._all = [Server(parent, settings=_SETTINGS, program=command)]
        self._running: list[Server] = []

    def _servers(self, number: int) -> list[Server]:
        """The first servers; a new one has made its key pairs, which take longer than everything else."""
        while len(self._running) < number:
            if len(self._all) == len(self._running):
                first = self._all[0]
                self._all.append(Server(first.parent, queues=(), settings=_SETTINGS, beside=first))
            server = self._all[len(self._running)]
            server.start(timeout=900)
            self._running.append(server)
            _idle([server])
        return self._running[:number]

    def counted(self, case: Case, count: int, name: str) -> dict[str, float]:
        """Instructions of a message: of all servers together, then of each if there are several."""
        servers = self._servers(len(case.parts))
        self._control(servers, "--instr=on")
        case.run(servers, max(count // 4, 100))
        self._control(servers, "--zero")
        case.run(servers, count)
        found = {}
        for server, part in zip(servers, case.parts, strict=True):
            before = set(self.directory.iterdir())
            self._control([server], f"--dump={name}")
            (dumped,) = set(self.directory.iterdir()) - before
            kept = dumped.rename(self.directory / f"{name}{part}.callgrind")
            found[f"{name}{part}"] = _total(kept) / count
        self._control(servers, "--instr=off")
        return {name: sum(found.values())} | found

    def _control(self, servers: Sequence[Server], option: str) -> None:
        """Raises ServerError when callgrind does not answer."""
        for server in servers:
            done = subprocess.run(
                ["callgrind_control", option, str(server.pid)], capture_output=True, text=True, timeout=300
            )
            if done.returncode or "Error" in done.stdout + done.stderr:
                raise ServerError(f"callgrind_control {option}: {done.stdout}{done.stderr}")

    def stop(self) -> None:
        """Stop the servers, and remove what they wrote."""
        try:
            for server in self._running:
                server.stop(check=False, timeout=600)
        finally:
            for server in self._all:
                server.remove()


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
        try:
            for name in given.case or CASES:
                counted = callgrind.counted(CASES[name], round(CASES[name].count * given.scale), name)
                found |= counted
                for part, figure in counted.items() if not given.json else ():
                    print(f"{part:17} {figure:12,.0f} instructions a message", flush=True)
        finally:
            callgrind.stop()
    if given.json:
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
