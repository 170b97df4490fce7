"""What /proc says about a running process."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Sample", "disk_bytes", "family_cpu_s", "sample"]

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """Processor seconds since the start, memory in bytes, bytes written to the disk, context switches."""

    cpu_s: float
    rss: int
    rss_anon: int
    threads: int
    written: int
    switches: int


def sample(pid: int) -> Sample:
    """Looks at a process of this user; its finished threads count, its children do not."""
    directory = Path(f"/proc/{pid}")
    fields = (directory / "stat").read_text().rpartition(")")[2].split()
    status: dict[str, int] = {}
    for line in (directory / "status").read_text().splitlines():
        key, _, value = line.partition(":")
        word = value.split()[0] if value.split() else ""
        if word.isdecimal():
            status[key] = int(word)
    io = {}
    for line in (directory / "io").read_text().splitlines():
        key, _, value = line.partition(":")
        io[key] = int(value)
    switches = 0
    for task in (directory / "task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if "ctxt_switches" in line:
                switches += int(line.split()[1])
    return Sample(
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
        rss=status["VmRSS"] * 1024,
        rss_anon=status["RssAnon"] * 1024,
        threads=status["Threads"],
        written=io["write_bytes"],
        switches=switches,
    )


def family_cpu_s(pid: int) -> float:
    """Processor seconds of a process and of everything that it started, what has ended included."""
    parents, seconds = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                seconds[int(entry.name)] = sum(map(int, fields[11:15])) / _TICKS
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds.get(member, 0.0) for member in family)


def disk_bytes(directory: Path) -> int:
    """Bytes that the files below a directory occupy on the disk; holes of sparse files do not count."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())
