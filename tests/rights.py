"""What this machine allows its user: the rights that `@pytest.mark.needs(rights=…)` names."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

__all__ = ["MEANING", "granted"]

MEANING = {
    "root": "the rights of root",
    "ipv6": "the IPv6 loopback address",
    "low ports": "ports below 1024 (root or CAP_NET_BIND_SERVICE)",
    "protected ports": "a system that keeps ports below 1024 for root",
    "net admin": "CAP_NET_ADMIN",
    "network namespace": "a network namespace with capturing (unshare --net --map-root-user)",
    "mount namespace": "a mount namespace of its own (unshare --user --map-root-user --mount)",
    "capture": "capturing on the loopback interface (CAP_NET_RAW)",
    "legacy openssl": "an openssl with its legacy provider",
    "memory deny write execute": "a kernel with PR_SET_MDWE (Linux 6.3)",
    "OpenPGM": "OpenPGM's headers and library (libpgm-dev)",
    "sanitizers": "clang with the run-time library of its sanitizers (libclang-rt-14-dev)",
}
"""Every right, in words."""

_PR_GET_MDWE = 66
_NET_BIND_SERVICE, _NET_ADMIN, _NET_RAW = 10, 12, 13
_CAPTURING = """
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1) + bytes(22))
socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
"""


@functools.cache
def granted(right: str) -> bool:
    """Whether this process and what it starts have it; KeyError for a right that is not in MEANING."""
    match right:
        case "root":
            return os.geteuid() == 0
        case "ipv6":
            return _ipv6()
        case "low ports":
            return _first_unprivileged_port() <= 80 or _capable(_NET_BIND_SERVICE)
        case "protected ports":
            return _first_unprivileged_port() > 80
        case "net admin":
            return _capable(_NET_ADMIN)
        case "network namespace":
            return _succeeds("unshare", "--net", "--map-root-user", sys.executable, "-c", _CAPTURING)
        case "mount namespace":
            mount = "mount -t tmpfs -o size=1m tmpfs /tmp"
            return _succeeds("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount)
        case "capture":
            return _capable(_NET_RAW)
        case "legacy openssl":
            return _succeeds("openssl", "list", "-providers", "-provider", "legacy")
        case "memory deny write execute":
            return ctypes.CDLL(None).prctl(_PR_GET_MDWE, *map(ctypes.c_ulong, (0, 0, 0, 0))) >= 0
        case "OpenPGM":
            source = ("-include", "pgm/pgm.h", "-x", "c", "/dev/null")
            return _succeeds("cc", "-shared", "-I/usr/include/pgm-5.3", *source, "-o", "/dev/null", "-lpgm")
        case "sanitizers":
            flags = ("-fsanitize=address,undefined,fuzzer-no-link", "-shared", "-fPIC")
            return _succeeds("clang", *flags, "-x", "c", "/dev/null", "-o", "/dev/null")
    raise KeyError(right)


def _succeeds(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def _ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def _first_unprivileged_port() -> int:
    return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())


def _capable(number: int) -> bool:
    """Whether the effective capabilities have it."""
    status = Path("/proc/self/status").read_text()
    return bool(int(status.split("CapEff:")[1].split()[0], 16) >> number & 1)
