"""How sessions begin on demand, are shared, idle, and end; what the server keeps meanwhile."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.mqqb import frames, wire
from tests.support.mqqb.peer import Peer
from tests.support.processes.servers import Server, sync_shim, until

pytestmark = pytest.mark.long(seconds=8)


def far(peer: Peer, queue: str = "far") -> str:
    return rf"DIRECT=TCP:{peer.address}\private$\{queue}"


@pytest.mark.rule("QB-303", "QB-304", "QB-376")
def test_an_idle_session_ends_and_the_next_message_dials_at_once(
    peer: Peer, start: Callable[..., Server]
) -> None:
    """Line 10: acknowledgments do not count as activity."""
    server = start(peer_port=peer.listen(), idle_timeout=1)
    server.ok("send", far(peer), "--body", "1", "--recoverable")
    line = peer.answer()
    line.message()
    began = time.monotonic()
    packet: bytes | None = b""
    while packet is not None:
        assert time.monotonic() - began < 4
        line.acknowledge()
        try:
            packet = line.packet(0.2)
        except TimeoutError:
            continue
    assert time.monotonic() - began > 0.5
    sent = time.monotonic()
    server.ok("send", far(peer), "--body", "2", "--recoverable")
    assert peer.answer(3).message().body == b"2"
    assert time.monotonic() - sent < 3


@pytest.mark.rule("QB-298", "QB-305", "QB-362")
def test_five_seconds_after_a_failure_it_is_tried_again(peer: Peer, start: Callable[..., Server]) -> None:
    """Line 10, with the interval that Windows has."""
    server = start(peer_port=peer.listen())
    server.ok("send", far(peer), "--body", "x")
    line = peer.accepted()
    line.expect("EC")
    line.close()
    ended = time.monotonic()
    peer.answer(8).message()
    assert 4.5 < time.monotonic() - ended < 6.5


@pytest.mark.rule("QB-299", "QB-302")
@pytest.mark.parametrize("step", [0, 1])
def test_a_handshake_that_stalls_ends(peer: Peer, start: Callable[..., Server], step: int) -> None:
    server = start(limits__handshake_timeout=1)
    line = peer.connect(server.host, server.port("mqqb"))
    began = time.monotonic()
    if step:
        line.send(wire.establish(peer.guid))
        line.expect("EC")
    line.closed(5)
    assert 0.8 < time.monotonic() - began < 3


@pytest.mark.rule("QB-008", "QB-127", "QB-166")
def test_one_connection_serves_queues_and_answers_of_a_peer_that_does_not_listen(
    server: Server, peer: Peer
) -> None:
    """Short cut "one connection for each queue, or each message"."""
    line = peer.dial(server.host, server.port("mqqb"))
    line.say(peer.message("q", admin=peer.queue("acks"), acks=1))
    assert line.message().kind == 2
    for queue in ("first", "second", "first"):
        server.ok("send", far(peer, queue), "--body", queue, "--recoverable")
        found = line.message()
        assert (found.body, found.destination) == (queue.encode(), peer.queue(queue))
    line.acknowledge()
    until(lambda: not sum(queue["messages"] for queue in server.ok("outgoing", "list")))
    assert server.ok("stats")[0]["sessions"] == 1
    server.messages("q")


@pytest.mark.rule("QB-295")
def test_a_server_that_stops_announces_nothing(peer: Peer, start: Callable[..., Server]) -> None:
    server = start("q")
    line = peer.dial(server.host, server.port("mqqb"))
    line.say(peer.message("q"))
    line.acked(1)
    assert server.stop() == 0
    line.closed()


@pytest.mark.rule("QB-106", "QB-117", "QB-280")
def test_nothing_is_acknowledged_before_it_is_on_the_disk(
    peer: Peer, start: Callable[..., Server], tmp_path: Path
) -> None:
    """Short cuts "flags of all ones" and "acknowledged before the sync": the second sync never ends."""
    hanging = tmp_path / "hanging"
    server = start("q")
    server.stop()
    server.environment |= {"LD_PRELOAD": sync_shim(tmp_path), "HANGING_SYNC": str(hanging)}
    server.start()
    line = peer.dial(server.host, server.port("mqqb"))
    line.say(peer.message("q", recoverable=True, body=b"kept"))
    assert line.acked(1)[0] == {1}
    hanging.touch()
    line.say(peer.message("q", recoverable=True, body=b"lost"))
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        try:
            acknowledged, base, flags, *_ = line.ack(0.3)
        except TimeoutError:
            continue
        assert (acknowledged, base, flags) == (2, 0, 0)
    server.kill()
    hanging.unlink()
    server.start()
    assert b"kept" in [base64.b64decode(found["body_b64"]) for found in server.messages("q")]


@pytest.mark.rule("QB-328", "QB-329", "QB-330", "QB-331")
def test_a_message_that_waited_too_long_is_never_sent(peer: Peer, start: Callable[..., Server]) -> None:
    """Short cut "no expiry": TimeToReachQueue of a second while nobody answers."""
    port = peer.listen()
    peer.deaf()
    server = start("acks", peer_port=port, retry_interval=0.5)
    server.ok(
        *("send", far(peer), "--body", "late", "--recoverable", "--ttrq", "1", "--deadletter"),
        *("--admin-queue", r"DIRECT=OS:.\private$\acks", "--ack", "nack-reach"),
    )
    server.ok("send", far(peer), "--body", "patient", "--recoverable")
    (answer,) = until(lambda: server.messages("acks"), what="the answer")
    assert answer["class"] == 0x8002
    (dead,) = server.messages(r".\system$;deadletter")
    assert base64.b64decode(dead["body_b64"]) == b"late"
    peer.listen(port)
    line = peer.answer()
    assert line.message().body == b"patient"
    line.silent(0.3)


@pytest.mark.rule("QB-256", "QB-258", "QB-259", "QB-260")
def test_a_sender_whom_the_queue_refuses_is_refused(server: Server, peer: Peer) -> None:
    """Short cut "an access check that always passes": a sender that no signature proves is anonymous."""
    server.ok("queue", "create", "closed")
    server.ok("queue", "create", "named")
    for who in ("everyone", "anonymous"):
        server.ok("acl", "deny", "closed", "--user", who, "--right", "MQSEC_WRITE_MESSAGE")
    server.ok("acl", "revoke", "named", "--user", "anonymous")
    line = peer.dial(server.host, server.port("mqqb"))
    line.say(peer.message("closed", secure=frames.security()))
    line.say(peer.message("closed"))
    line.say(peer.message("named", secure=frames.security()))
    line.say(peer.message("named", secure=frames.security(peer.guid.bytes_le, kind=2)))
    line.say(peer.message("named"))
    line.acked(5)
    assert server.messages("closed") == []
    assert server.messages("named") == []


@pytest.mark.timeout(300)
@pytest.mark.rule("QB-099", "QB-106", "QB-152")
def test_a_backlog_is_sent_in_order_after_a_kill(peer: Peer, start: Callable[..., Server]) -> None:
    """Short cut "queues in memory": 100,000 messages, a kill, and every one of them in order."""
    port, count = peer.listen(), 100_000
    peer.deaf()
    server = start(peer_port=port, retry_interval=0.5)
    server.ok("send", far(peer), "--body", "x", "--recoverable", "--count", str(count))
    server.kill()
    server.start()
    peer.listen(port)
    line = peer.answer(60)
    line.stream = None
    last = 0
    for _ in range(count):
        number = wire.ordinal(line.expect("MSG", 60))
        assert number > last
        last = number
        if line.heard % 16 == 0:
            line.acknowledge()
    line.silent(0.2)
