"""Strangers who bring messages under the name of another queue manager, against two real servers; the witness
is beside the one that receives."""

from __future__ import annotations

import base64
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import UUID

import pytest

from tests.support.hostile.attacked import attacked
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, data_directory, until

SENDER, RECEIVER, STRANGER = "127.0.52.6", "127.0.52.7", "127.0.52.66"
STRANGE = UUID("0bad0002-0000-4000-8000-000000000000")


class Pair:
    """A server that sends, one that receives, and strangers with an address of their own."""

    def __init__(self, sender: Server, receiver: Server) -> None:
        self.sender = sender
        self.receiver = receiver
        self.guid = UUID(receiver_of_ping(sender))
        self._sockets: list[socket.socket] = []

    def send(self, queue: str, *bodies: str, **flags: str) -> None:
        name = f"DIRECT=TCP:{RECEIVER}\\private$\\{queue}"
        for body in bodies:
            self.sender.ok("send", name, "--body", body, "--recoverable")

    def waiting(self) -> int:
        """Messages in the outgoing queues of the sender."""
        return sum(queue["messages"] for queue in self.sender.ok("outgoing", "list"))

    def arrived(self, queue: str) -> list[str]:
        shown = self.receiver.run("receive", queue, "--peek", "--json", "--count", "100")
        assert shown.returncode in (0, 4), shown
        return [message["body"] for message in map(json_line, shown.stdout.splitlines())]

    def stranger(self, guid: UUID = STRANGE) -> socket.socket:
        """An open session with the receiver under a GUID; what comes on it is read and dropped."""
        opened = socket.create_connection(
            (RECEIVER, self.receiver.port("mqqb")), timeout=20, source_address=(STRANGER, 0)
        )
        self._sockets.append(opened)
        opened.sendall(wire.establish(guid) + wire.parameters())
        answer = opened.recv(604, socket.MSG_WAITALL)
        assert len(answer) == 604, "the session was refused"
        assert not answer[18] & 0x10
        threading.Thread(target=_drained, args=(opened,), daemon=True).start()
        return opened

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def _drained(opened: socket.socket) -> None:
    try:
        while opened.recv(65_536):
            pass
    except OSError:
        pass


def json_line(line: bytes) -> dict[str, str]:

    found = json.loads(line)
    return {"body": base64.b64decode(found["body_b64"]).decode(), "id": found["message_id"]}


def receiver_of_ping(server: Server) -> str:
    """What the ping port of a server tells everybody: its GUID."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind((STRANGER, 0))
        asking.settimeout(10)
        asking.sendto(struct.pack("<HHI16s", 0, 0x5548, 7, bytes(16)), (server.host, server.port("ping")))
        return str(UUID(bytes_le=asking.recv(100)[8:24]))


@pytest.fixture
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        scene = stack.enter_context(
            attacked("", "--name", "RECEIVER", host=RECEIVER, queues=("orders", "junk"))
        )
        receiver = scene.server
        sender = Server(
            stack.enter_context(data_directory()),
            "--name",
            "SENDER",
            host=SENDER,
            environment={
                "MSMQ_FAST_MQQB__PEER_PORT": str(receiver.port("mqqb")),
                "MSMQ_FAST_MQQB__PEER_PING_PORT": str(receiver.port("ping")),
                "MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.2",
            },
        )
        stack.callback(sender.kill)
        sender.start()
        running = Pair(sender, receiver)
        stack.callback(running.close)
        yield running
        print(scene.check())
        assert sender.stop() == 0


def test_identifiers_that_a_stranger_used_before_drop_nothing(pair: Pair) -> None:
    pair.send("orders", "first")
    until(lambda: pair.arrived("orders") == ["first"], what="the first message")
    shown = pair.receiver.run("receive", "orders", "--peek", "--json").stdout
    last = int(json_line(shown)["id"].split("\\")[1])
    opened = pair.stranger()
    now = int(time.time())
    for number in range(last + 1, last + 1_001):
        opened.sendall(
            wire.message(
                number,
                queue="OS:host\\private$\\junk",
                recoverable=True,
                body=b"",
                sent_time=now,
                source=pair.guid,
            )
        )
    until(
        lambda: pair.receiver.ok("queue", "show", "junk")[0]["messages"] == 1_000,
        timeout=60,
        what="the messages of the stranger",
    )
    bodies = [f"real {number}" for number in range(10)]
    pair.send("orders", *bodies)
    until(lambda: not pair.waiting(), timeout=60, what="acknowledgments for the sender")
    assert pair.arrived("orders") == ["first", *bodies]
    assert "message: duplicate" not in pair.receiver.ok("stats")[0]["refusals"]


def test_a_stranger_who_holds_a_session_under_its_guid_locks_out_nobody(pair: Pair) -> None:
    pair.stranger(pair.guid)
    pair.send("orders", "one")
    until(lambda: not pair.waiting(), what="the acknowledgment")
    assert pair.arrived("orders") == ["one"]
    # Nor does one who comes while the sender is there, with whatever it says of the sender's streams.
    opened = pair.stranger(pair.guid)
    pair.receiver.ok("queue", "create", "exact", "--transactional")
    forged = struct.pack("<IIIII", 0, 0xFFFFFFFF, 0xFFFFFFFF, 1, 0)
    opened.sendall(
        wire.message(
            7,
            queue="OS:host\\private$\\exact",
            body=b"forged",
            transaction=forged,
            sent_time=int(time.time()),
            source=pair.guid,
        )
    )
    until(lambda: pair.arrived("exact") == ["forged"], what="the message of the stranger")
    name = f"DIRECT=TCP:{RECEIVER}\\private$\\exact"
    for body in ("first", "second"):
        pair.sender.ok("send", name, "--body", body, "--xact")
    until(lambda: not pair.waiting(), what="the OrderAcks")
    assert pair.arrived("exact") == ["forged", "first", "second"]
    assert pair.receiver.ok("stats")[0]["refusals"]["session: peer presents the GUID of another live peer"]
