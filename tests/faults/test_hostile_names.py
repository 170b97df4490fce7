"""The matrix of hostile names once against a real server, beside the witness, and a restart behind it."""

from __future__ import annotations

import socket
import threading
import time
from uuid import UUID

import pytest

from tests.support.hostile.attacked import attacked
from tests.support.hostile.names import FATES, FIELDS, NAMES, cell
from tests.support.mqqb import wire
from tests.support.processes.servers import Server

HOST = "127.0.50.1"
CONFIG = "[mqqb]\nrouter = true\nreport_messages = true\ninsecure_nacks = true\n"
ELSEWHERE = UUID(int=0x77)


def drained(line: socket.socket, ended: threading.Event) -> None:
    """Read until the server closes the connection."""
    try:
        while line.recv(1 << 16):
            pass
    except OSError:
        pass
    ended.set()


def queues(server: Server) -> list[str]:
    shown = server.ok("queue", "list") + server.ok("outgoing", "list")
    return sorted(row["name"] for row in shown)


@pytest.mark.long(seconds=60)
def test_hostile_names_harm_nothing_and_a_restart_brings_back_the_same_queues() -> None:
    with attacked(CONFIG, host=HOST, queues=("inbox", "last", "stream --transactional")) as scene:
        server = scene.server
        with socket.create_connection((HOST, server.port("mqqb"))) as line:
            ended = threading.Event()
            threading.Thread(target=drained, args=(line, ended), daemon=True).start()
            line.sendall(wire.establish() + wire.parameters())
            number = 0
            for fate in FATES:
                for field in FIELDS:
                    for name in NAMES.values():
                        number += 1
                        line.sendall(cell(field, name, fate, number, int(time.time()), ELSEWHERE))
                line.sendall(wire.message(10_000 + number, queue=f"TCP:{HOST}\\private$\\last"))
                server.ok("receive", "last", "--timeout", "60")
                if fate == "purged":
                    server.ok("queue", "purge", "inbox")
                else:
                    server.run("receive", "inbox", "--count", "1000", "--timeout", "0", "--json")
            assert not ended.is_set()
        print(scene.check())
        before = queues(server)
        assert len(before) > 10
        assert server.stop(timeout=30) == 0
        server.start()
        assert queues(server) == before
        assert "not loaded" not in server.log.read_text()
