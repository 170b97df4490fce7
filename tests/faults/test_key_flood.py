"""Session keys of anybody's making, from many sessions at once: what they cost a server process."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from uuid import UUID

from msmq_fast._native.framing import parse
from msmq_fast.packet.user import SecurityHeader
from tests.support.hostile.attacked import attacked
from tests.support.mqqb import wire
from tests.support.processes.servers import Server

STRANGER, HONEST = "127.0.55.66", "127.0.55.1"
SIMPLEBLOB = struct.pack("<BBHII", 1, 2, 0, 0x6610, 0xA400)
UNDECIPHERED = "message: encrypted, and its session key, body or signature is wrong"
SESSIONS, EACH = 16, 6


def session(server: Server, source: str, guid: UUID) -> socket.socket:
    made = socket.create_connection((server.host, server.port("mqqb")), 20, (source, 0))
    made.sendall(wire.establish(guid) + wire.parameters())
    answer = b""
    while len(answer) < 604:
        data = made.recv(4096)
        assert data, "refused"
        answer += data
    return made


def made_up(number: int, source: UUID) -> bytes:
    """A message that says to be encrypted for the advanced provider, with a random session key."""
    header = SecurityHeader(encrypted=True, encryption_key=SIMPLEBLOB + os.urandom(255) + b"\0").encode()
    packet = bytearray(
        wire.message(
            number,
            queue="OS:h\\private$\\q",
            body=os.urandom(32),
            sent_time=int(time.time()),
            source=source,
            security=header,
        )
    )
    struct.pack_into("<III", packet, parse(bytes(packet)).properties_offset + 40, 5, 0x800E, 0x6610)
    return bytes(packet)


def undeciphered(server: Server) -> int:
    (stats,) = server.ok("stats")
    return int(stats["refusals"].get(UNDECIPHERED, 0))


def test_session_keys_of_many_sessions_take_a_bounded_part_of_a_core() -> None:
    """1 % here; each session alone might ask for as many as it likes. What else comes does not wait."""
    more = {
        "MSMQ_FAST_PROTECTION__RSA_BITS": "2048",
        "MSMQ_FAST_LIMITS__KEY_PERCENT": "1",
        "MSMQ_FAST_LIMITS__SESSION_KEYS": "1000000",
    }
    with attacked(queues=("q",), environment=more) as scene, contextlib.ExitStack() as stack:
        server = scene.server
        deadline = time.monotonic() + 60
        while "AES" not in str(server.ok("key", "show")):
            assert time.monotonic() < deadline
        honest = stack.enter_context(session(server, HONEST, UUID(int=1)))
        strangers = [
            stack.enter_context(session(server, STRANGER, UUID(int=100 + n))) for n in range(SESSIONS)
        ]
        began = time.monotonic()
        for number, stranger in enumerate(strangers):
            source = UUID(int=100 + number)
            stranger.sendall(b"".join(made_up(n + 1, source) for n in range(EACH)))
        for number in range(1, 6):
            honest.sendall(
                wire.message(
                    number,
                    queue="OS:h\\private$\\q",
                    recoverable=True,
                    sent_time=int(time.time()),
                    source=UUID(int=1),
                )
            )
            assert honest.recv(4096), "its session acknowledgment"
        assert undeciphered(server) < SESSIONS * EACH, "the others still wait"
        while undeciphered(server) < SESSIONS * EACH:
            assert time.monotonic() < began + 120
            time.sleep(0.05)
        assert time.monotonic() - began > 0.5
        assert all(each.fileno() >= 0 for each in strangers)
        print(scene.check())
