"""Two hosts on one machine: network namespaces joined by a cable that loses packets. Needs root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.servers import QUICK, Server

LOSS = 50  # of 1000 PGM packets


class Host:
    """One side of the cable: namespace, interface, address."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.interface = f"pgm{number}"
        self.address = f"10.113.0.{number}"
        self.inside = ("ip", "netns", "exec", name)

    def run(self, *command: str, stdin: str | None = None) -> str:
        """Runs a command there; AssertionError with what it said if it fails."""
        return run(*self.inside, *command, stdin=stdin)

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Starts a command there."""
        return subprocess.Popen([*self.inside, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def lose(self, per_mille: int) -> None:
        """So many PGM packets are lost when they arrive, at random."""
        rules = (
            "table ip loss {\n chain incoming {\n  type filter hook input priority 0;\n"
            f"  ip protocol 113 numgen random mod 1000 < {per_mille} counter drop;\n }}\n}}\n"
        )
        self.run("nft", "-f", "-", stdin=rules)

    @property
    def lost(self) -> int:
        """Packets that were lost so far."""
        words = self.run("nft", "list", "table", "ip", "loss").split()
        return int(words[words.index("packets") + 1])

    def server(self, data: Path, **settings: str) -> Server:
        """A server there, with multicast; to be started. `settings` are keys of [pgm]."""
        pgm = {"enabled": "on", "interfaces": self.interface, "rate": "3 MB", **settings}
        made = _Server(
            data,
            host=self.address,
            environment={f"MSMQ_FAST_PGM__{key.upper()}": value for key, value in pgm.items()},
        )
        made.program = (*self.inside, sys.executable, "-m", "msmq_fast")
        return made


class _Server(Server):
    defaults = QUICK


@contextmanager
def hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts that reach each other."""
    pair = Host(f"pgm-a-{os.getpid()}", 1), Host(f"pgm-b-{os.getpid()}", 2)
    first, second = pair
    try:
        for host in pair:
            run("ip", "netns", "add", host.name)
            host.run("ip", "link", "set", "lo", "up")
        run(
            "ip", "link", "add", first.interface, "netns", first.name,
            "type", "veth", "peer", "name", second.interface, "netns", second.name,
        )  # fmt: skip
        for host in pair:
            host.run("ip", "address", "add", f"{host.address}/24", "dev", host.interface)
            host.run("ip", "link", "set", host.interface, "up")
            host.run("ip", "route", "add", "224.0.0.0/4", "dev", host.interface)
        yield pair
    finally:
        for host in pair:
            subprocess.run(["ip", "netns", "delete", host.name], check=False, capture_output=True)


@contextmanager
def captured(host: Host, file: Path) -> Iterator[None]:
    """What crosses the cable, before anything is lost at `host`."""
    program = host.start(
        "dumpcap", "-q", "-i", host.interface, "-B", "256", "-f", "ip proto 113", "-w", str(file)
    )
    deadline = time.monotonic() + 10
    while not (file.exists() and file.stat().st_size):
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < deadline, "dumpcap does not begin"
        time.sleep(0.05)
    try:
        yield
        time.sleep(1)  # what the kernel still holds
    finally:
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=30)


def run(*command: str, stdin: str | None = None) -> str:
    """What a command prints. AssertionError: it fails, or is missing."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=600)
    except FileNotFoundError:
        raise AssertionError(f"{command[0]} is missing: install iproute2, nftables, tshark") from None
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()} (needs root and namespaces)"
    return done.stdout
