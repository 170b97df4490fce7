"""Administration acknowledgments, field by field, and their absence."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.support.mqqb import frames
from tests.support.mqqb.frames import NEVER, NO_REACH, NO_RECEIVE, REACH, RECEIVE, Name
from tests.support.mqqb.peer import Line, Peer
from tests.support.processes.servers import Server, until

pytestmark = pytest.mark.long(seconds=2)

BODY = b"what was said"


def ask(server: Server, peer: Peer, queue: str = "q", **fields: Any) -> tuple[Line, frames.Message]:
    """One message that asks for acknowledgments, on the peer's only session."""
    line = peer.lines[0] if peer.lines else peer.dial(server.host, server.port("mqqb"))
    fields.setdefault("admin", peer.queue("acks"))
    packet = peer.message(queue, body=BODY, label="subject", **fields)
    line.say(packet)
    return line, frames.read(packet)


def check(
    server: Server, answer: frames.Message, original: frames.Message, kind: int, body: bytes = b""
) -> None:
    """What holds for every acknowledgment (3.1.7.15)."""
    assert answer.kind == kind
    assert answer.source == UUID(server.ready["guid"])
    assert answer.correlation == original.source.bytes_le + struct.pack("<I", original.number)
    assert answer.response == original.destination
    assert answer.delivery == original.delivery
    assert 600 <= answer.reach <= 86_400  # it does not wait for ever in a queue that a stranger named
    assert answer.received == NEVER
    assert (answer.acks, answer.admin, answer.flags >> 8 & 3) == (0, Name(), 0)
    assert answer.tx is None
    assert answer.body == body
    assert abs(answer.sent - time.time()) < 60


@pytest.mark.rule("QB-293", "QB-386", "QB-387", "QB-388", "QB-389", "QB-390", "QB-391", "QB-392")
@pytest.mark.parametrize("recoverable", [False, True])
def test_arrival_at_an_administration_queue_by_direct_name(
    server: Server, peer: Peer, recoverable: bool
) -> None:
    """Line 9."""
    line, original = ask(server, peer, acks=REACH, recoverable=recoverable)
    answer = line.message()
    check(server, answer, original, 0x0002)
    assert (answer.destination, answer.manager) == (peer.queue("acks"), frames.NULL)
    line.acknowledge()
    server.messages("q")
    line.no_message(0.2)


@pytest.mark.rule("QB-386")
@pytest.mark.parametrize("kind", [2, 6])
def test_arrival_at_an_administration_queue_by_number(
    server: Server, peer: Peer, peers: Callable[[], Peer], kind: int
) -> None:
    """A private queue of the sender's host, or of another host; both are known by their sessions only."""
    other = peers()
    line = other.dial(server.host, server.port("mqqb"))
    admin = frames.private(0x21, 2) if kind == 2 else frames.private(0x21, 6, other.guid)
    own, original = ask(server, peer, acks=REACH, admin=admin)
    answer = (own if kind == 2 else line).message()
    check(server, answer, original, 0x0002)
    assert (answer.destination, answer.manager) == (frames.private(0x21), (peer if kind == 2 else other).guid)
    server.messages("q")


@pytest.mark.rule("QB-386")
def test_arrival_at_an_administration_queue_of_the_destination(server: Server, peer: Peer) -> None:
    server.ok("queue", "create", "answers")
    name = server.ok("queue", "show", "answers")[0]["format_name"]
    line, original = ask(server, peer, acks=REACH, admin=frames.private(int(name.rpartition("\\")[2], 16), 3))
    line.acked(1)
    (found,) = until(lambda: server.messages("answers"), what="the answer")
    assert found["class"] == 0x0002
    assert bytes.fromhex(found["correlation_id"]) == original.source.bytes_le + struct.pack(
        "<I", original.number
    )
    server.messages("q")


@pytest.mark.rule("QB-359", "QB-357", "QB-358")
@pytest.mark.parametrize("recoverable", [False, True])
def test_receiving(server: Server, peer: Peer, recoverable: bool) -> None:
    line, original = ask(server, peer, acks=RECEIVE, recoverable=recoverable)
    line.acked(1)
    line.no_message(0.1)
    assert len(server.messages("q")) == 1
    check(server, line.message(), original, 0x4000)


@pytest.mark.rule("QB-360", "QB-391")
@pytest.mark.parametrize(("end", "kind"), [("purge", 0xC001), ("delete", 0xC000), ("expire", 0xC002)])
def test_not_being_received(server: Server, peer: Peer, end: str, kind: int) -> None:
    server.ok("queue", "create", "doomed")
    line, original = ask(server, peer, "doomed", acks=NO_RECEIVE, received=3 if end == "expire" else NEVER)
    line.acked(1)
    if end != "expire":
        server.ok("queue", end, "doomed")
    check(server, line.message(), original, kind, BODY)
    if end != "delete":
        server.ok("queue", "delete", "doomed")


@pytest.mark.rule("QB-233", "QB-265", "QB-391")
def test_not_arriving(server: Server, peer: Peer) -> None:
    server.ok("queue", "create", "strict", "--transactional")
    line, original = ask(server, peer, "strict", acks=NO_REACH)
    check(server, line.message(), original, 0x800A, BODY)
    line, original = ask(server, peer, acks=NO_REACH, reach=5, sent=int(time.time()) - 60)
    check(server, line.message(), original, 0x8002, BODY)
    assert server.messages("q") == server.messages("strict") == []


@pytest.mark.rule("QB-283")
def test_a_full_queue(server: Server, peer: Peer) -> None:
    server.ok("queue", "create", "small", "--quota", "1")
    line = peer.dial(server.host, server.port("mqqb"))
    line.say(peer.message("small", body=bytes(700)))
    packet = peer.message("small", body=BODY * 50, admin=peer.queue("acks"), acks=NO_REACH)
    line.say(packet)
    check(server, line.message(), frames.read(packet), 0x8003, BODY * 50)
    assert len(server.messages("small")) == 1


ENCRYPTED = 0x20
INSECURE = {
    0x8000: ("nowhere", {}),
    0x8004: ("closed", {"secure": frames.security()}),
    0x8006: ("q", {"secure": frames.security(signature=b"s" * 128)}),
    0x8007: ("q", {"secure": frames.security(flags=ENCRYPTED), "privacy": 3}),
}
"""Classes that tell a stranger too much, and what leads to them."""


def closed_to_everybody(server: Server) -> Server:
    """A server with a queue that takes nothing."""
    server.ok("queue", "create", "closed")
    for who in ("everyone", "anonymous"):
        server.ok("acl", "deny", "closed", "--user", who, "--right", "MQSEC_WRITE_MESSAGE")
    return server


@pytest.mark.rule("QB-083", "QB-231", "QB-241", "QB-260", "QB-384", "QB-403")
def test_insecure_answers_are_silence(peer: Peer, start: Callable[..., Server]) -> None:
    """Line 12; the messages are acknowledged as any others."""
    server = closed_to_everybody(start("q"))
    line = peer.dial(server.host, server.port("mqqb"))
    for queue, fields in INSECURE.values():
        line.say(peer.message(queue, admin=peer.queue("acks"), acks=15, recoverable=True, **fields))
    named: set[int] = set()
    while named != {1, 2, 3, 4}:
        named |= line.acked(4)[0]
    line.no_message(0.4)
    assert server.messages("q") == server.messages("closed") == []


@pytest.mark.rule("QB-231", "QB-241", "QB-260", "QB-384", "QB-403")
def test_insecure_answers_where_they_are_allowed(peer: Peer, start: Callable[..., Server]) -> None:
    server = closed_to_everybody(start("q", insecure_nacks="true"))
    for kind, (queue, fields) in INSECURE.items():
        line, original = ask(server, peer, queue, acks=NO_REACH, recoverable=True, **fields)
        check(server, line.message(), original, kind, b"" if kind == 0x8007 else BODY)
        line.acknowledge()
    assert server.messages("q") == server.messages("closed") == []


@pytest.mark.rule("QB-383")
def test_nothing_is_answered_where_nothing_was_asked(server: Server, peer: Peer) -> None:
    line = peer.dial(server.host, server.port("mqqb"))
    line.say(peer.message("q", acks=15))  # no queue for the answers
    line.say(peer.message("q", admin=peer.queue("acks")))  # a queue, and no wish
    line.acked(2)
    assert len(server.messages("q")) == 2
    line.no_message(0.3)
