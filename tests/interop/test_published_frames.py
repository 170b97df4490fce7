"""The published packets of MS-MQQB section 4 against a server process."""

from __future__ import annotations

import base64
import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, data_directory, until

pytestmark = pytest.mark.smoke

VECTORS = Path(__file__).parent / "vectors" / "mqqb-section4.json"
SERVER_GUID = (
    "43cd8907-394c-8f11-4445-9078909ea0fc"  # of the queue manager that the published client asks for
)
PACKET_SIZE = 2224
BODY = "a" * 1000
WINDOW = 64


@pytest.fixture(scope="module")
def frames() -> dict[str, bytes]:
    published = json.loads(VECTORS.read_text(encoding="utf-8"))
    return {frame["name"].split("_")[0]: bytes.fromhex(frame["hex"]) for frame in published}


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, environment={"MSMQ_FAST_SERVER__GUID": SERVER_GUID}).start()
        try:
            yield running
        finally:
            running.kill()


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        assert chunk, f"closed after {len(data)} of {size} bytes"
        data += chunk
    return data


def open_session(server: Server, frames: dict[str, bytes]) -> socket.socket:
    connection = socket.create_connection((server.host, server.port("mqqb")), timeout=10)
    connection.sendall(frames["frame3"])
    answer = receive(connection, 572)
    assert answer[:4] == b"\x10\x00\x0b\x00"
    assert answer[4:8] == b"LIOR"
    assert answer[20:52] == frames["frame3"][20:52]
    assert answer[60:] == b"\x5a" * 512
    connection.sendall(frames["frame5"])
    parameters = receive(connection, 32)
    assert parameters[20:28] == frames["frame5"][20:28]  # the proposed time-outs are taken over
    return connection


def whole_message(frame: bytes, sent_time: int, ordinal: int = 2286) -> bytes:
    """Frame 7 with the part of its body that was not printed, which goes on as it began, and its padding.

    Where SentTime stands, print has the text "LIOR", a day in 2013: a time takes its place, since the message
    would be too old for its TimeToReachQueue. `ordinal` is 2286 in print.
    """
    packet = bytearray(frame + b"a\0" * ((PACKET_SIZE - 2 - len(frame)) // 2) + b"\0\0")
    assert len(packet) == PACKET_SIZE
    packet[52:60] = struct.pack("<II", sent_time, ordinal)
    return bytes(packet)


@pytest.mark.rule("QB-063", "QB-067", "QB-068", "QB-069")
def test_the_ping_request_is_answered(server: Server, frames: dict[str, bytes]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.sendto(frames["frame1"], (server.host, server.port("ping")))
        answer, _ = client.recvfrom(100)
    assert len(answer) == 24
    flags, signature, cookie = struct.unpack_from("<HHI", answer)
    assert signature == 0x5548
    assert cookie == 4
    assert flags & 2 == 0  # not refused
    assert flags & 1 == frames["frame1"][0] & 1
    assert answer[8:] == frames["frame2"][8:]


@pytest.mark.rule("QB-281", "QB-372", "QB-263")
def test_the_message_is_delivered_acknowledged_and_shown(server: Server, frames: dict[str, bytes]) -> None:
    """The host part `a04bm02` is not ours, and `q` was created as a private queue."""
    server.ok("queue", "create", "q")
    now = int(time.time())
    with open_session(server, frames) as connection:
        connection.sendall(whole_message(frames["frame7"], now))
        (shown,) = until(lambda: server.messages("q"), what="the delivery")
        assert shown["label"] == "mqsender label"
        assert base64.b64decode(shown["body_b64"]).decode("utf-16-le") == BODY
        assert (shown["body_size"], shown["body_type"], shown["delivery"]) == (2000, 8, "express")
        assert shown["message_id"] == "{557358d1-9150-9595-4997-b6e611ea26c6}\\2286"
        assert shown["destination_queue"].lower() == "direct=os:a04bm02\\q"
        assert shown["sent_time"] == now
        assert shown["authenticated"] is False
        # The published AckTimeout lets a lone express message wait for a minute; we do not.
        acknowledgment = receive(connection, 36)
        assert acknowledgment[:20] == b"\x10\0" + frames["frame8"][2:20]
        assert struct.unpack_from("<H", acknowledgment, 20)[0] == 1
        for ordinal in range(2287, 2287 + WINDOW // 2 - 1):
            connection.sendall(whole_message(frames["frame7"], now, ordinal))
        while struct.unpack_from("<H", acknowledgment, 20)[0] < WINDOW // 2:
            acknowledgment = receive(connection, 36)
        assert len(server.messages("q")) == WINDOW // 2 - 1


@pytest.mark.rule("QB-265")
def test_the_message_as_printed_is_too_old(server: Server, frames: dict[str, bytes]) -> None:
    server.ok("queue", "create", "q")
    printed = int.from_bytes(b"LIOR", "little")
    with open_session(server, frames) as connection:
        connection.sendall(whole_message(frames["frame7"], printed))
        until(lambda: server.ok("stats")[0]["refusals"], what="the refusal")
    assert server.ok("stats")[0]["refusals"] == {"message: time to reach queue passed": 1}
    assert server.messages("q") == []
