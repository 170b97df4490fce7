"""Builds libmqrt and its C suite, and runs cases of the suite against a server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "contrib" / "mqrt"
SUITE = Path(__file__).with_name("suite")
_SUITE_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", f"-I{LIBRARY / 'include'}")
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}


@dataclass(frozen=True)
class Build:
    """A directory with the library and the program of the suite."""

    directory: Path

    @property
    def suite(self) -> Path:
        return self.directory / "suite"

    def environment(self, endpoint: str, **more: str) -> dict[str, str]:
        """The environment of a program that uses this library."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("MSMQ_FAST_")}
        return {
            **own,
            **_OPTIONS,
            "LD_LIBRARY_PATH": str(self.directory),
            "MSMQ_FAST_ENDPOINT": endpoint,
            **more,
        }

    def cases(self) -> list[str]:
        """The names of the cases that need a server and nothing else."""
        return _run([str(self.suite), "list"]).split()

    def run(self, endpoint: str, names: Sequence[str], **more: str) -> str:
        """Run cases, which must pass; what they print."""
        done = subprocess.run(
            [self.suite, *names],
            env=self.environment(endpoint, **more),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-6000:]
        return done.stdout


def build(directory: Path, sanitizers: str = "", suite: bool = True, flags: str = "-O1 -g") -> Build:
    """Build the library into `directory`, with the sanitizers of the compiler if they are named."""
    make = ["make", "-s", "-j2", "-C", str(LIBRARY), f"BUILD={directory}", f"CFLAGS={flags} -Werror"]
    checked = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"] if sanitizers else []
    _run([*make, f"SANITIZE={sanitizers}"] if sanitizers else make)
    if suite:
        sources = sorted(map(str, SUITE.glob("*.c")))
        link = [f"-L{directory}", "-lmqrt", f"-Wl,-rpath,{directory}", "-pthread"]
        _run(["cc", *_SUITE_FLAGS, *flags.split(), *checked, *sources, *link, "-o", str(directory / "suite")])
    return Build(directory)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
