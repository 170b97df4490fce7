"""A port that is free on the addresses of three servers in a row."""

from __future__ import annotations

import socket
from contextlib import ExitStack

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


def free_port() -> int:
    """A port that is free on all addresses."""
    for _ in range(50):
        with ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in HOSTS]
            sockets[0].bind((HOSTS[0], 0))
            port: int = sockets[0].getsockname()[1]
            try:
                for other, host in zip(sockets[1:], HOSTS[1:], strict=True):
                    other.bind((host, port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free on all addresses")
