"""pytest in a network of its own, whose traffic is captured; to be run under `unshare --net`."""

from __future__ import annotations

import fcntl
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

_SIOCSIFFLAGS, _UP = 0x8914, 0x1
NOT_ALLOWED = 77


def bring_up_loopback() -> None:
    """A new network namespace has a loopback interface that is down. OSError: no right to change it."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _UP) + bytes(22))


def main(file: str, *arguments: str) -> int:
    """Runs pytest with the arguments; its exit code, or NOT_ALLOWED where nothing can be captured."""
    try:
        bring_up_loopback()
    except OSError as problem:
        print(problem)
        return NOT_ALLOWED
    path = Path(file)
    with subprocess.Popen(["dumpcap", "-q", "-i", "lo", "-B", "256", "-w", file]) as dumpcap:
        deadline = time.monotonic() + 10
        while not (path.exists() and path.stat().st_size):
            if dumpcap.poll() is not None or time.monotonic() > deadline:
                dumpcap.kill()
                return NOT_ALLOWED
            time.sleep(0.05)
        code = subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode
        time.sleep(1)
        dumpcap.send_signal(signal.SIGINT)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
