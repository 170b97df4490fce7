"""Opens listening sockets. If a port cannot be opened, the error says why in one line."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from pathlib import Path
from typing import Final

__all__ = ["BACKLOG", "DENIED", "ListenError", "shown_address", "tcp_sockets", "udp_sockets", "unix_socket"]

BACKLOG = 512  # connections that wait to be accepted
DENIED: Final = (errno.EACCES, errno.EPERM, errno.EADDRINUSE)
"""Error codes with which an optional port is left out: the server runs without it."""


class ListenError(Exception):
    """A listener cannot be opened; the text is one line for people. `errno` is the error code of the system
    if the port cannot be bound.
    """

    def __init__(self, text: str, errno: int = 0) -> None:
        super().__init__(text)
        self.errno = errno


def tcp_sockets(hosts: tuple[str, ...], port: int, what: str) -> list[socket.socket]:
    """Return one listening TCP socket per address of `hosts`. If `port` is 0, the system chooses one port for
    all of them.

    An IPv6 wildcard is left out on a machine without IPv6. Raises ListenError.
    """
    return _open(hosts, port, what, socket.SOCK_STREAM)


def udp_sockets(hosts: tuple[str, ...], port: int, what: str) -> list[socket.socket]:
    """Return one bound UDP socket per address of `hosts`. Raises ListenError."""
    return _open(hosts, port, what, socket.SOCK_DGRAM)


def _open(hosts: tuple[str, ...], port: int, what: str, kind: socket.SocketKind) -> list[socket.socket]:
    opened: list[socket.socket] = []
    try:
        for host in hosts:
            for family, address in _addresses(host, what, kind):
                chosen = opened[0].getsockname()[1] if opened and port == 0 else port
                listener = _bind(family, address, chosen, what, kind, optional=len(hosts) > 1)
                if listener is not None:
                    opened.append(listener)
    except BaseException:
        for listener in opened:
            listener.close()
        raise
    if not opened:
        raise ListenError(f"{what}: no address of {', '.join(hosts)} can be used")
    return opened


def _addresses(host: str, what: str, kind: socket.SocketKind) -> list[tuple[socket.AddressFamily, str]]:
    try:
        found = socket.getaddrinfo(host, 0, type=kind, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        text = f'{what}: "{host}" is not an address of this computer: {error.strerror}'
        raise ListenError(text, errno.EADDRNOTAVAIL) from None
    addresses = [(socket.AddressFamily(family), str(address[0])) for family, _, _, _, address in found]
    return list(dict.fromkeys(addresses))


def _bind(
    family: socket.AddressFamily,
    address: str,
    port: int,
    what: str,
    kind: socket.SocketKind,
    *,
    optional: bool,
) -> socket.socket | None:
    try:
        listener = socket.socket(family, kind)
    except OSError as error:
        if family == socket.AF_INET6 and optional and error.errno == errno.EAFNOSUPPORT:
            return None
        raise ListenError(f"{what}: {error.strerror}") from None
    try:
        if kind == socket.SOCK_STREAM:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        if kind == socket.SOCK_STREAM:
            listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if family == socket.AF_INET6 and optional and error.errno == errno.EADDRNOTAVAIL:
            return None
        raise ListenError(f"{what}: {_reason(error, address, port)}", error.errno or 0) from None
    return listener


def _reason(error: OSError, address: str, port: int) -> str:
    shown = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"{shown} is taken by another process"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{shown} is refused: ports below 1024 need root or CAP_NET_BIND_SERVICE"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{address} is not an address of this computer"
    return f"{shown}: {error.strerror or error}"


def unix_socket(path: Path, mode: int) -> socket.socket:
    """Return a listening Unix socket with the permissions `mode`.

    A socket file that an earlier process has left, and at which no server listens, is replaced. Raises
    ListenError.
    """
    what = "programs"
    text = os.fspath(path)
    if len(os.fsencode(text)) > 107:
        raise ListenError(f"{what}: the socket path {text} is longer than 107 bytes")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        # The file must never be there with wider permissions than asked for, not even for a moment.
        before = os.umask(0o777 & ~mode)
        try:
            listener.bind(text)
        finally:
            os.umask(before)
        path.chmod(mode)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        reason = (
            "is taken by another process" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        )
        raise ListenError(f"{what}: {text}: {reason}") from None
    return listener


def _remove_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return  # bind() reports what prevents it
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def shown_address(listener: socket.socket) -> str:
    """Return the address of a listening socket as text: HOST:PORT, [HOST]:PORT or the path of a Unix
    socket.
    """
    if listener.family == socket.AF_UNIX:
        return str(listener.getsockname())
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{host}:{port}"
