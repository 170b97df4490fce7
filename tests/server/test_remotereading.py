"""Connections to other computers that are read from."""

from __future__ import annotations

import socket

from msmq_fast.server.rpc.remote_reading import RemoteReading


def test_more_silence_than_the_kernel_can_count_is_watched_all_the_same() -> None:
    reading = object.__new__(RemoteReading)
    reading._keep_alive = 86_400.0
    with socket.socket() as connected:
        reading._watch(connected)
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 32767
