"""Listening sockets: addresses, permissions, and the one line that says why not."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from msmq_fast.server.net.sockets import ListenError, shown_address, tcp_sockets, udp_sockets, unix_socket


def test_one_port_is_chosen_for_all_addresses() -> None:
    listeners = tcp_sockets(("127.0.0.1", "127.0.0.2"), 0, "MS-MQQB")
    try:
        ports = {listener.getsockname()[1] for listener in listeners}
        assert len(listeners) == 2
        assert len(ports) == 1
        assert shown_address(listeners[1]) == f"127.0.0.2:{ports.pop()}"
    finally:
        for listener in listeners:
            listener.close()


def test_a_taken_port_is_one_clear_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ListenError, match=rf"^MS-MQQB: 127\.0\.0\.1:{port} is taken by another process$"):
            tcp_sockets(("127.0.0.1",), port, "MS-MQQB")
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with pytest.raises(ListenError, match=r"ping: .* is taken by another process"):
            udp_sockets(("127.0.0.1",), port, "ping")


def test_an_address_that_is_not_ours() -> None:
    with pytest.raises(ListenError, match="not an address of this computer"):
        tcp_sockets(("192.0.2.1",), 0, "admin")
    with pytest.raises(ListenError, match=r'"nowhere\.invalid" is not an address'):
        tcp_sockets(("nowhere.invalid",), 0, "admin")


def test_the_socket_file_has_the_permissions_asked_for_and_replaces_a_stale_one(tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    first = unix_socket(path, 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(ListenError, match="is taken by another process"):
        unix_socket(path, 0o600)
    first.close()
    second = unix_socket(path, 0o660)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    second.close()


def test_a_file_in_the_way_of_the_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    path.write_text("precious")
    with pytest.raises(ListenError):
        unix_socket(path, 0o600)
    assert path.read_text() == "precious"
    with pytest.raises(ListenError, match="longer than 107 bytes"):
        unix_socket(tmp_path / ("x" * 120), 0o600)
