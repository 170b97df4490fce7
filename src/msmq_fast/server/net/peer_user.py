"""Finds the user that owns the other end of a local TCP connection, by a query to the kernel (sock_diag)."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Final

__all__ = ["user_of"]

_NETLINK_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY
_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr
_REQUEST: Final = struct.Struct("=BBBBI")  # inet_diag_req_v2 up to the socket
_SOCKET: Final = struct.Struct("!HH16s16s")  # inet_diag_sockid: ports, addresses
_ANY: Final = struct.pack("=III", 0, 0xFFFF_FFFF, 0xFFFF_FFFF)  # interface and cookie of it
_ANSWER: Final = struct.Struct("=BBBB48sIIIII")  # inet_diag_msg: …, expires, rqueue, wqueue, uid, inode


def user_of(own: tuple[str, int], peer: tuple[str, int]) -> int | None:
    """Return the uid of the process whose TCP socket has the address `own` and is connected to `peer`.

    The addresses must not contain an IPv6 zone. Returns None if the kernel knows no such socket, or the
    process has closed it.
    """
    family = socket.AF_INET6 if ":" in own[0] else socket.AF_INET
    addresses = [socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (own, peer)]
    wanted = _SOCKET.pack(own[1], peer[1], *addresses) + _ANY
    request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFF_FFFF) + wanted
    header = _HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, 1, 1, 0)
    with contextlib.suppress(OSError):
        flags = socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        with socket.socket(socket.AF_NETLINK, flags, _NETLINK_SOCK_DIAG) as asking:
            asking.send(header + request)  # the kernel answers before this returns
            answer = asking.recv(4096)
        if _HEADER.unpack_from(answer)[1] == _BY_FAMILY and len(answer) >= _HEADER.size + _ANSWER.size:
            *_, uid, inode = _ANSWER.unpack_from(answer, _HEADER.size)
            if inode:  # a socket that its process has closed already shows as root's
                return int(uid)
    return None
