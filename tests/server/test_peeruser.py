"""Whose a connection within this machine is."""

from __future__ import annotations

import os
import socket

import pytest

from msmq_fast.server.net.peer_user import user_of


@pytest.mark.parametrize(
    ("host", "family"),
    [
        ("127.0.0.1", socket.AF_INET),
        pytest.param("::1", socket.AF_INET6, marks=pytest.mark.needs(rights=["ipv6"])),
    ],
)
def test_the_kernel_tells_who_made_a_connection(host: str, family: socket.AddressFamily) -> None:
    listener = socket.create_server((host, 0), family=family)
    with listener, socket.create_connection(listener.getsockname()[:2]) as client:
        server, _ = listener.accept()
        with server:
            assert user_of(client.getsockname()[:2], server.getsockname()[:2]) == os.getuid()
            ends = client.getsockname()[:2], server.getsockname()[:2]
            client.shutdown(socket.SHUT_WR)
            assert user_of(*ends) == os.getuid()
            client.close()  # the kernel still knows the connection, and says that it is root's
            assert user_of(*ends) is None
            assert user_of(ends[0], ends[0]) is None


def test_where_the_kernel_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> socket.socket:
        raise PermissionError("no netlink here")

    monkeypatch.setattr(socket, "socket", refused)
    assert user_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
