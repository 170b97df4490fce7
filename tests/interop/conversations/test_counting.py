"""SessionAcks and SessionHeaders: what they count, when they come, what they let the other side forget."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.support.mqqb import wire
from tests.support.mqqb.peer import Line, Peer
from tests.support.processes.servers import Server, until

pytestmark = pytest.mark.long(seconds=2)


def open_line(server: Server, peer: Peer, **parameters: int) -> Line:
    return peer.dial(server.host, server.port("mqqb"), **parameters)


def far(peer: Peer, queue: str = "far") -> str:
    return rf"DIRECT=TCP:{peer.address}\private$\{queue}"


def messages(server: Server, queue: str = "q") -> list[int]:
    """The MessageIDs in a queue of the server, which is emptied."""
    return [int(str(found["message_id"]).split("\\")[1]) for found in server.messages(queue)]


@pytest.mark.rule("QB-060", "QB-107", "QB-115", "QB-120")
def test_a_burst_is_acknowledged_before_the_window_is_full(server: Server, peer: Peer) -> None:
    """Line 4: within AckTimeout/2 and before 64."""
    line = open_line(server, peer, ack=20_000)
    for half in (32, 64):
        for _ in range(32):
            line.say(peer.message("q"))
        _, headers = line.acked(half, 5)
        assert all(header[1:] == (0, 0, 0, 0, 64) for header in headers)
        assert [header[0] for header in headers] == sorted({header[0] for header in headers})
    assert len(messages(server)) == 64


@pytest.mark.rule("QB-008", "QB-127", "QB-202", "QB-226", "QB-293", "QB-337")
def test_answers_come_on_the_same_connection_and_are_counted(server: Server, peer: Peer) -> None:
    """Lines 4 and 9: the peer listens nowhere; what the server sends raises its own counts."""
    line = open_line(server, peer)
    for number in range(1, 6):
        line.say(peer.message("q", admin=peer.queue("acks"), acks=1, recoverable=number > 2))
    answers = [line.message() for _ in range(5)]
    assert [answer.kind for answer in answers] == [2] * 5
    assert [answer.delivery for answer in answers] == [0, 0, 1, 1, 1]
    line.acknowledge()
    line.say(peer.message("q"))
    _, headers = line.acked(6)
    assert headers[-1][3:5] == (5, 3)
    assert len(messages(server)) == 6
    line.silent(0.2)


@pytest.mark.rule("QB-011", "QB-061", "QB-262")
@pytest.mark.parametrize("inside", [False, True])
def test_a_header_in_a_message_acknowledges_as_a_packet_of_its_own(
    server: Server, peer: Peer, inside: bool
) -> None:
    """Line 5, and the next message in the same segment: PacketSize counts the header or does not."""
    line = open_line(server, peer)
    server.ok("send", far(peer), "--body", "x", "--recoverable")
    line.message()
    line.sent += 1
    header = wire.header(1, 1, 1, sent=1)
    line.send(peer.message("q", session=header, header_inside=inside) + peer.message("q"))
    until(lambda: not server.ok("outgoing", "show", far(peer))[0]["messages"], what="the acknowledgment")
    assert len(messages(server)) == 2


@pytest.mark.rule("QB-011", "QB-337", "QB-374")
def test_the_server_puts_headers_into_its_messages(server: Server, peer: Peer) -> None:
    """Line 5: when three quarters of its timer are over; outside PacketSize, with all counts of then."""
    line = open_line(server, peer)
    for _ in range(40):
        line.say(peer.message("q"))
        time.sleep(0.04)
        line.say(peer.message("q", admin=peer.queue("acks"), acks=1))
        answer = line.message()
        if answer.session is not None:
            assert answer.size == len(answer.packet) - 16
            acknowledged, base, flags, sent, recoverable, window = answer.session
            assert (base, flags, sent, recoverable, window) == (0, 0, line.heard, 0, 64)
            assert acknowledged in (line.sent - 1, line.sent)
            break
        line.acknowledge()
    else:
        raise AssertionError("no message carried a header")
    line.say(peer.message("q"))
    line.acked(line.sent)
    messages(server)


@pytest.mark.rule("QB-108", "QB-199", "QB-279", "QB-280")
def test_recoverable_messages_are_named_by_base_and_bits(server: Server, peer: Peer) -> None:
    """Line 6: the base is the lowest that is kept and not yet acknowledged, bit 0 stands for it."""
    line = open_line(server, peer)
    for recoverable in (False, True, False, True, True):
        line.say(peer.message("q", recoverable=recoverable))
    named, headers = line.acked(5)
    while named != {1, 2, 3}:
        more, again = line.acked(5)
        named |= more
        headers += again
    assert [header[1] for header in headers if header[2]] == sorted(
        {header[1] for header in headers if header[2]}
    )
    assert all(header[2] & 1 for header in headers if header[1])
    line.say(peer.message("q", recoverable=True))
    assert line.ack()[:3] == (6, 4, 1)
    messages(server)


@pytest.mark.rule("QB-117", "QB-276")
def test_more_than_32_recoverable_messages_take_several_headers(server: Server, peer: Peer) -> None:
    line = open_line(server, peer)
    line.send(b"".join(peer.message("q", recoverable=True) for _ in range(64)))
    named: set[int] = set()
    while len(named) < 64:
        _, base, flags, *_ = line.ack()
        fresh = {base + bit for bit in range(32) if flags >> bit & 1}
        assert not fresh & named
        assert not fresh or base == max(named, default=0) + 1
        named |= fresh
    assert named == set(range(1, 65))
    assert len(messages(server)) == 64


@pytest.mark.rule("QB-118", "QB-198", "QB-199", "QB-298", "QB-327", "QB-334", "QB-335")
def test_the_server_keeps_what_no_bit_names_and_sends_it_again(
    peer: Peer, start: Callable[..., Server]
) -> None:
    """Line 6 the other way round: base 3, bits 0 and 2, so only the fourth is left."""
    server = start(peer_port=peer.listen(), retry_interval=0.2)
    for body in "12345":
        server.ok("send", far(peer), "--body", body, "--recoverable")
    line = peer.answer()
    first = [line.message() for _ in range(5)]
    assert [found.body for found in first] == [b"1", b"2", b"3", b"4", b"5"]
    numbers = [found.number for found in first]
    assert numbers == sorted(set(numbers))
    line.acknowledge(base_ack=3, flags=0b101)
    until(lambda: server.ok("outgoing", "show", far(peer))[0]["messages"] == 1, what="the acknowledgment")
    line.close()
    line = peer.answer()
    again = line.message()
    assert (again.body, again.number) == (b"4", first[3].number)
    assert again.packet == first[3].packet
    line.silent(0.3)
    line.acknowledge()
    until(lambda: not server.ok("outgoing", "show", far(peer))[0]["messages"], what="the acknowledgment")


@pytest.mark.rule("QB-116", "QB-197")
def test_an_express_message_is_forgotten_by_the_count_alone(peer: Peer, start: Callable[..., Server]) -> None:
    server = start(peer_port=peer.listen(), retry_interval=0.2)
    server.ok("send", far(peer), "--body", "x", "--count", "3")
    line = peer.answer()
    for _ in range(3):
        line.message()
    line.acknowledge(ack=2)
    until(lambda: server.ok("outgoing", "show", far(peer))[0]["messages"] == 1, what="the acknowledgment")
    line.close()
    line = peer.answer()
    line.message()
    line.silent(0.2)


@pytest.mark.rule("QB-104", "QB-323")
def test_a_peer_that_acknowledges_nothing_gets_one_window(peer: Peer, start: Callable[..., Server]) -> None:
    """Short cut "no send window": 64 messages, then 1 for each that is acknowledged; later 1 at a time."""
    server = start(peer_port=peer.listen())
    server.ok("send", far(peer), "--body", "x", "--count", "200")
    line = peer.answer()
    for _ in range(64):
        line.message()
    line.silent(0.3)
    line.acknowledge(ack=10)
    for _ in range(10):
        line.message()
    line.silent(0.2)
    line.acknowledge(window=1)
    for _ in range(5):
        line.message()
        line.silent(0.1)
        line.acknowledge(window=1)


@pytest.mark.rule("QB-104", "QB-323")
def test_the_window_of_the_handshake_binds(peer: Peer, start: Callable[..., Server]) -> None:
    server = start(peer_port=peer.listen())
    server.ok("send", far(peer), "--body", "x", "--count", "20")
    line = peer.answer(window=4)
    for _ in range(4):
        line.message()
    line.silent(0.3)
    line.acknowledge(window=4)
    for _ in range(4):
        line.message()
    line.silent(0.1)


@pytest.mark.rule("QB-202")
@pytest.mark.parametrize("fields", [{"sent": 3}, {"sent": 1}, {"sent": 2, "recoverable": 2}])
def test_a_false_count_ends_the_session_and_what_came_before_is_kept(
    server: Server, peer: Peer, fields: dict[str, int]
) -> None:
    """Short cut "ignore the counts"."""
    line = open_line(server, peer)
    line.say(peer.message("q"))
    line.say(peer.message("q", recoverable=True))
    line.acked(2)
    line.acknowledge(**fields)
    while (packet := line.packet()) is not None:
        assert wire.kind(packet) == "ACK"
    assert len(messages(server)) == 2


@pytest.mark.rule("QB-202")
def test_a_message_with_a_false_count_is_delivered_before_the_end(server: Server, peer: Peer) -> None:
    line = open_line(server, peer)
    line.send(peer.message("q", session=wire.header(sent=7)))
    line.closed()
    assert len(messages(server)) == 1


@pytest.mark.rule("QB-224", "QB-226")
def test_a_message_that_comes_again_is_counted_and_not_kept_twice(server: Server, peer: Peer) -> None:
    """Short cut "duplicates by session": also on another connection."""
    packet = peer.message("q", recoverable=True)
    line = open_line(server, peer)
    line.say(packet)
    line.say(packet)
    named, _ = line.acked(2)
    while named != {1, 2}:
        named |= line.acked(2)[0]
    other = open_line(server, peer)
    other.say(packet)
    assert other.acked(1)[1][-1][0] == 1
    assert len(messages(server)) == 1


@pytest.mark.rule("QB-136")
def test_counts_begin_anew_with_each_session(server: Server, peer: Peer) -> None:
    for _ in range(2):
        line = open_line(server, peer)
        line.say(peer.message("q", recoverable=True))
        assert line.acked(1) == ({1}, [(1, 1, 1, 0, 0, 64)])
        line.close()
    assert len(messages(server)) == 2
