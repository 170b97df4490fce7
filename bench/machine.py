"""What the machine can do, measured where the server's files will lie."""

from __future__ import annotations

import os
import platform
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

__all__ = ["facts", "fdatasync_us", "quantile"]


def quantile(values: list[float], fraction: float) -> float:
    """The value below which `fraction` of the sorted values lie."""
    return values[min(int(fraction * len(values)), len(values) - 1)]


def fdatasync_us(directory: Path, *, rounds: int = 200, size: int = 4096) -> dict[str, float]:
    """Microseconds of a write of `size` bytes with fdatasync, overwriting a file that is already laid out."""
    with tempfile.NamedTemporaryFile(dir=directory, prefix="fdatasync-") as file:
        fd, block = file.fileno(), os.urandom(size)
        for i in range(64):
            os.pwrite(fd, block, i * size)
        os.fsync(fd)
        times = []
        for i in range(rounds):
            start = time.perf_counter()
            os.pwrite(fd, block, i % 64 * size)
            os.fdatasync(fd)
            times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    return {"p50": round(quantile(times, 0.5), 1), "p99": round(quantile(times, 0.99), 1)}


def write_mb_s(directory: Path, *, megabytes: int = 128) -> float:
    """Sequential megabytes a second into a new file, the final fsync included."""
    block = os.urandom(1 << 20)
    with tempfile.NamedTemporaryFile(dir=directory, prefix="write-") as file:
        start = time.perf_counter()
        for _ in range(megabytes):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return round(megabytes * 1.048576 / (time.perf_counter() - start), 1)


def loopback_round_trip_us(*, rounds: int = 2000) -> float:
    """Median microseconds of one byte to another thread over TCP on the loopback and back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := peer.recv(16):
                peer.sendall(data)

    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    times = []
    with listener, socket.create_connection(listener.getsockname()) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(rounds):
            start = time.perf_counter()
            client.sendall(b"x")
            client.recv(16)
            times.append((time.perf_counter() - start) * 1e6)
    thread.join(5)
    times.sort()
    return round(quantile(times, 0.5), 1)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _file_system(directory: Path) -> str:
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return kind
    path = str(directory.resolve())
    for line in mounts:
        _, point, fs, *_ = line.split()
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fs
    return kind


def facts(directory: Path, *, probe: bool = True) -> dict[str, Any]:
    """Processor, cores, kernel, file system, and the measured limits that figures are read against.

    Without `probe` nothing is measured and the limits are zero.
    """
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "file_system": _file_system(directory),
        "fdatasync_us": fdatasync_us(directory) if probe else {"p50": 0.0, "p99": 0.0},
        "write_mb_s": write_mb_s(directory) if probe else 0.0,
        "loopback_round_trip_us": loopback_round_trip_us() if probe else 0.0,
        "load_average": round(os.getloadavg()[0], 2),
    }
