"""Transactional streams that a scripted sender brings: the gate, OrderAcks, FinalAcks (lines 7 and 8)."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.support.mqqb import frames
from tests.support.mqqb.frames import DEAD_LETTER, JOURNAL, Ordering, direct, private
from tests.support.mqqb.peer import Line, Peer
from tests.support.processes.servers import Server, until

pytestmark = pytest.mark.long(seconds=4)

STAMP = 0x6740F5A5
ORDER_QUEUE = "\\PRIVATE$\\order_queue$"


@pytest.fixture(scope="module", autouse=True)
def _queues(server: Server) -> None:
    server.ok("queue", "create", "t", "--transactional")
    server.ok("queue", "create", "u", "--transactional")


class Sender:
    """One stream of a peer: sequence id, numbers, and the queue it goes to."""

    def __init__(
        self, peer: Peer, queue: str | frames.Name = "t", ordinal: int = 1, stamp: int = STAMP
    ) -> None:
        self.peer = peer
        self.queue = queue
        self.ordinal = ordinal
        self.stamp = stamp

    def packet(self, number: int, previous: int | None = None, final: bool = False, **fields: Any) -> bytes:
        """A message of the stream; what came before it is the number before, unless told otherwise."""
        before = number - 1 if previous is None else previous
        tx = frames.transaction(self.ordinal, self.stamp, number, before, final=final)
        return self.peer.message(self.queue, tx=tx, body=b"%d" % number, **fields)


def open_line(server: Server, peer: Peer) -> Line:
    return peer.dial(server.host, server.port("mqqb"))


def bodies(server: Server, queue: str = "t") -> list[int]:
    """The numbers in a queue, which is emptied."""
    return [int(base64.b64decode(found["body_b64"])) for found in server.messages(queue)]


def order_ack(line: Line, timeout: float = 5) -> Ordering:
    """The next message, an OrderAck as 2.2.4 wants it; it is acknowledged."""
    found = line.message(timeout)
    assert (found.kind, found.label, found.body_type, len(found.body)) == (
        0x00FF,
        frames.ORDERING_LABEL,
        0,
        36,
    )
    assert found.base_flags & ~0x10 == 0
    assert found.flags & ~(7 << 10) == 1 << 21
    assert (found.reach, found.received, found.acks) == (frames.NEVER, frames.NEVER, 0)
    assert (found.admin, found.response, found.tx) == (frames.Name(), frames.Name(), None)
    said = frames.ordering(found)
    assert said.previous == said.number - 1
    assert found.body[16:] == bytes(20)
    line.acknowledge()
    return said


def final_ack(line: Line, kind: int, timeout: float = 5) -> Ordering:
    """The next FinalAck, as 2.2.5 wants it; OrderAcks before it are passed over."""
    while True:
        found = line.message(timeout)
        line.acknowledge()
        if found.kind != 0x00FF:
            break
    assert (found.kind, found.label, found.body_type, len(found.body)) == (kind, frames.ORDERING_LABEL, 0, 36)
    assert found.base_flags & ~0x10 == 0
    assert found.flags & ~(7 << 10) == 1 << 5 | 1 << 21
    return frames.ordering(found)


@pytest.mark.rule(
    "QB-041", "QB-042", "QB-044", "QB-045", "QB-046", "QB-047", "QB-048", "QB-049", "QB-123", "QB-145"
)
def test_a_burst_is_acknowledged_half_a_second_later(server: Server, peer: Peer) -> None:
    """Line 7, byte for byte."""
    line, stream = open_line(server, peer), Sender(peer)
    for number in range(1, 11):
        line.say(stream.packet(number))
    began = time.monotonic()
    found = line.message()
    assert 0.35 < time.monotonic() - began < 2.5
    assert found.source == UUID(server.ready["guid"])
    assert frames.text_of(found.destination) == f"TCP:{peer.address}{ORDER_QUEUE}"
    assert found.manager == frames.NULL
    packet = frames.order_ack(
        found.number, found.source, direct(f"TCP:{peer.address}{ORDER_QUEUE}"), 1, STAMP, 10, sent=found.sent
    )
    properties = 64 + len(found.destination.content)
    assert found.packet[16:properties] == packet[16:properties]
    assert found.body == packet[-36:] == struct.pack("<IIII20x", 1, STAMP, 10, 9)
    assert bodies(server) == list(range(1, 11))


@pytest.mark.rule("QB-008", "QB-050", "QB-108", "QB-127", "QB-395")
def test_order_acks_count_as_express_messages_of_the_session(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    line.say(stream.packet(1))
    named, headers = line.acked(1)
    while named != {1}:
        named |= line.acked(1)[0]
    assert headers[-1][3:5] == (0, 0)
    assert order_ack(line).number == 1
    line.say(stream.packet(2))
    assert line.acked(2)[1][-1][3:5] == (1, 0)
    bodies(server)


@pytest.mark.rule("QB-122", "QB-147", "QB-314", "QB-315")
def test_every_message_starts_the_half_second_anew(server: Server, peer: Peer) -> None:
    """Also that of a stream of which nothing was acknowledged yet."""
    line, stream = open_line(server, peer), Sender(peer)
    for number in range(1, 7):
        line.say(stream.packet(number))
        line.no_message(0.25)
    began = time.monotonic()
    assert order_ack(line).number == 6
    assert 0.1 < time.monotonic() - began < 2.5
    assert bodies(server) == [1, 2, 3, 4, 5, 6]


@pytest.mark.rule("QB-095")
def test_a_stream_begins_with_a_message_that_nothing_precedes(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    line.say(stream.packet(5, 4))
    line.no_message(0.8)
    line.say(stream.packet(3, 0))
    assert order_ack(line).number == 3
    line.say(stream.packet(5, 3))
    assert order_ack(line).number == 5
    assert bodies(server) == [3, 5]


@pytest.mark.rule("QB-122", "QB-146")
def test_a_stream_that_never_pauses_is_acknowledged_after_ten_seconds(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    began = time.monotonic()
    number, at = 0, None
    while at is None and time.monotonic() - began < 14:
        number += 1
        line.say(stream.packet(number))
        try:
            packet = line.packet(0.1)
        except TimeoutError:
            continue
        assert packet is not None
        if not packet[2] & 8:
            at = time.monotonic() - began
            assert 1 < frames.ordering(frames.read(packet)).number <= number
    assert at is not None
    assert at < 11.5
    bodies(server)


@pytest.mark.rule("QB-121", "QB-267", "QB-268", "QB-270")
def test_what_is_out_of_order_is_dropped_until_the_gap_is_filled(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    for number in (1, 2, 4):
        line.say(stream.packet(number, admin=peer.queue("acks"), acks=frames.NO_REACH))
    assert order_ack(line).number == 2
    line.no_message(0.2)
    for number in (3, 4):
        line.say(stream.packet(number))
    assert order_ack(line).number == 4
    assert bodies(server) == [1, 2, 3, 4]


@pytest.mark.rule("QB-113", "QB-268")
def test_a_gap_that_the_sender_bridges_is_none(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    for number, previous in ((1, 0), (2, 1), (5, 2), (9, 5)):
        line.say(stream.packet(number, previous))
    assert order_ack(line).number == 9
    assert bodies(server) == [1, 2, 5, 9]


@pytest.mark.rule("QB-223", "QB-267", "QB-273")
def test_a_resend_is_acknowledged_again_and_not_kept_again(server: Server, peer: Peer) -> None:
    """Short cut "sequences by session": the resend comes over another connection."""
    line, stream = open_line(server, peer), Sender(peer)
    packets = [stream.packet(number) for number in (1, 2, 3)]
    for packet in packets:
        line.say(packet)
    assert order_ack(line).number == 3
    line.close()
    again = open_line(server, peer)
    for packet in packets[1:]:
        again.say(packet)
    assert order_ack(again).number == 3
    again.say(stream.packet(4))
    assert order_ack(again).number == 4
    assert bodies(server) == [1, 2, 3, 4]


@pytest.mark.rule("QB-269")
def test_a_new_sequence_is_a_greater_one_that_begins_at_its_start(server: Server, peer: Peer) -> None:
    """Short cut "sequence ids as ordinals": ids are compared by time stamp first."""
    line = open_line(server, peer)
    old = Sender(peer, ordinal=9)
    line.say(old.packet(1))
    assert order_ack(line) == Ordering(9, STAMP, 1, 0, frames.NULL, 0)
    for stream, number, previous in (
        (Sender(peer, ordinal=10, stamp=STAMP - 1), 1, 0),  # a greater ordinal, an older stamp
        (Sender(peer, ordinal=8), 1, 0),  # the same stamp, a smaller ordinal
        (Sender(peer, ordinal=10), 5, 4),  # greater, but begun before
    ):
        line.say(stream.packet(number, previous))
        assert order_ack(line) == Ordering(9, STAMP, 1, 0, frames.NULL, 0)
    line.say(Sender(peer, ordinal=1, stamp=STAMP + 1).packet(7, 0))
    assert order_ack(line) == Ordering(1, STAMP + 1, 7, 6, frames.NULL, 0)
    assert bodies(server) == [1, 7]


@pytest.mark.rule("QB-273")
def test_streams_are_told_apart_by_destination_name_and_source(
    server: Server, peer: Peer, peers: Callable[[], Peer]
) -> None:
    """Short cut "two format names for one queue": each name is a stream; case makes no difference."""
    other = peers()
    line, second = open_line(server, peer), open_line(server, other)
    streams = [
        Sender(peer),
        Sender(peer, "u"),
        Sender(peer, direct("TCP:127.0.0.1\\private$\\t")),
        Sender(peer, direct("os:SERVER\\PRIVATE$\\T")),
    ]
    for number in (1, 2):
        for stream in streams[:3]:
            line.say(stream.packet(number))
        second.say(Sender(other).packet(number))
    line.say(streams[3].packet(2))  # a resend of the first stream, written differently
    line.say(streams[3].packet(3))
    assert sorted(order_ack(line).number for _ in range(3)) == [2, 2, 3]
    assert order_ack(second).number == 2
    assert sorted(bodies(server)) == [1, 1, 1, 2, 2, 2, 3]
    assert bodies(server, "u") == [1, 2]


@pytest.mark.rule("QB-043", "QB-054", "QB-399")
def test_a_queue_by_number_is_acknowledged_to_a_queue_by_number(server: Server, peer: Peer) -> None:
    own = UUID(server.ready["guid"])
    number = int(server.ok("queue", "show", "t")[0]["format_name"].rpartition("\\")[2], 16)
    line, stream = open_line(server, peer), Sender(peer, private(number))
    line.say(stream.packet(1, address=own, journal=JOURNAL))
    found = line.message()
    assert (found.destination, found.manager, found.kind) == (private(4), peer.guid, 0x00FF)
    line.acknowledge()
    assert bodies(server) == [1]
    found = line.message()
    assert (found.destination, found.manager, found.kind) == (private(4), peer.guid, 0x4000)


@pytest.mark.rule("QB-051", "QB-052", "QB-053", "QB-055", "QB-056", "QB-058", "QB-361", "QB-397")
@pytest.mark.parametrize("journal", [DEAD_LETTER, JOURNAL])
def test_the_sender_learns_that_its_message_was_read(server: Server, peer: Peer, journal: int) -> None:
    """Line 8; the previous number is that of the header, not the number before."""
    line, stream = open_line(server, peer), Sender(peer)
    line.say(stream.packet(1, journal=journal))
    packet = stream.packet(5, 1, journal=journal)
    line.say(packet)
    line.say(stream.packet(6, 5))
    assert order_ack(line).number == 6
    line.no_message(0.3)
    assert bodies(server) == [1, 5, 6]
    assert final_ack(line, 0x4000) == Ordering(1, STAMP, 1, 0, peer.guid, frames.read(packet).number - 1)
    assert final_ack(line, 0x4000) == Ordering(1, STAMP, 5, 1, peer.guid, frames.read(packet).number)
    line.no_message(0.3)


@pytest.mark.rule("QB-361")
def test_a_final_ack_that_the_header_demands(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    line.say(stream.packet(1, final=True))
    assert order_ack(line).number == 1
    assert bodies(server) == [1]
    assert final_ack(line, 0x4000).number == 1


@pytest.mark.rule("QB-051", "QB-057")
@pytest.mark.parametrize(("end", "kind"), [("purge", 0xC001), ("delete", 0xC000), ("expire", 0xC002)])
def test_the_sender_learns_that_its_message_was_not_read(
    server: Server, peer: Peer, end: str, kind: int
) -> None:
    server.ok("queue", "create", "doomed", "--transactional")
    line, stream = open_line(server, peer), Sender(peer, "doomed")
    line.say(stream.packet(1, journal=DEAD_LETTER, received=3 if end == "expire" else frames.NEVER))
    line.acked(1)
    if end != "expire":
        until(lambda: server.ok("queue", "show", "doomed")[0]["messages"] == 1)
        server.ok("queue", end, "doomed")
    assert final_ack(line, kind, 8).number == 1
    if end != "delete":
        server.ok("queue", "delete", "doomed")


@pytest.mark.rule("QB-051", "QB-057", "QB-357", "QB-360")
def test_the_sender_learns_that_an_application_rejected_its_message(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    line.say(stream.packet(1, journal=DEAD_LETTER, admin=peer.queue("acks"), acks=frames.NO_RECEIVE))
    assert order_ack(line).number == 1
    server.ok("receive", "t", "--reject")
    found = {one.label: one for one in (line.message(), line.message())}
    assert {one.kind for one in found.values()} == {0xC004}
    assert frames.ordering(found[frames.ORDERING_LABEL]).number == 1
    assert found[""].destination == peer.queue("acks")
    line.acknowledge()
    assert bodies(server) == []


@pytest.mark.rule("QB-051", "QB-057", "QB-231", "QB-232", "QB-274")
@pytest.mark.parametrize(("queue", "kind"), [("q", 0x8009), ("nowhere", 0x8000)])
def test_a_refused_message_takes_its_place_in_the_stream(
    server: Server, peer: Peer, queue: str, kind: int
) -> None:
    """FinalAcks are no insecure answers; the stream goes on behind what was refused."""
    line, stream = open_line(server, peer), Sender(peer, queue)
    for number in (1, 2):
        line.say(stream.packet(number, journal=DEAD_LETTER))
    found = [line.message() for _ in range(3)]
    line.acknowledge()
    finals = [frames.ordering(one) for one in found if one.kind == kind]
    assert [final.number for final in finals] == [1, 2]
    (order,) = [frames.ordering(one) for one in found if one.kind == 0x00FF]
    assert order.number == 2
    assert server.messages("q") == []


@pytest.mark.rule("QB-265")
def test_a_stream_goes_on_behind_a_message_that_took_too_long(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    line.say(stream.packet(1, journal=DEAD_LETTER, reach=5, sent=int(time.time()) - 60))
    line.say(stream.packet(2))
    found = [line.message() for _ in range(2)]
    assert sorted(one.kind for one in found) == [0x00FF, 0x8002]
    assert [frames.ordering(one).number for one in found if one.kind == 0x00FF] == [2]
    assert bodies(server) == [2]


@pytest.mark.rule("QB-361")
def test_an_express_message_has_no_final_ack(server: Server, peer: Peer) -> None:
    line = open_line(server, peer)
    line.say(peer.message("q", journal=JOURNAL))
    line.acked(1)
    assert len(server.messages("q")) == 1
    line.no_message(0.4)


@pytest.mark.rule("QB-096", "QB-106", "QB-272")
def test_a_stream_is_known_after_a_kill(peer: Peer, start: Callable[..., Server]) -> None:
    """Short cuts "recoverable and order" and "answered inline": acknowledged after the restart."""
    server = start("t --transactional")
    line, stream = open_line(server, peer), Sender(peer)
    packets = [stream.packet(number) for number in range(1, 6)]
    for packet in packets:
        line.say(packet)
    named: set[int] = set()
    while named != {1, 2, 3, 4, 5}:
        named |= line.acked(5)[0]
    server.kill()
    server.start()
    again = open_line(server, peer)
    again.say(packets[4])
    assert order_ack(again) == Ordering(1, STAMP, 5, 4, frames.NULL, 0)
    again.say(stream.packet(6))
    assert order_ack(again).number == 6
    assert bodies(server) == [1, 2, 3, 4, 5, 6]


@pytest.mark.rule("QB-267")
def test_order_acks_that_nobody_heard_are_repeated_by_a_resend_only(server: Server, peer: Peer) -> None:
    line, stream = open_line(server, peer), Sender(peer)
    line.say(stream.packet(1))
    assert order_ack(line).number == 1
    line.no_message(1.2)
    line.say(stream.packet(1))
    assert order_ack(line).number == 1
    bodies(server)


@pytest.mark.rule("QB-097", "QB-270", "QB-271", "QB-286")
def test_management_shows_what_the_script_did(peer: Peer, start: Callable[..., Server]) -> None:
    """Short cut "management counters invented"; what was rejected is counted across a kill."""
    server = start("t --transactional")

    def shown() -> dict[str, Any]:
        (found,) = server.ok("queue", "show", "t")[0]["incoming"]
        assert isinstance(found, dict)
        return found

    line, stream = open_line(server, peer), Sender(peer)
    for number in (1, 2, 2, 4):
        line.say(stream.packet(number, 3 if number == 4 else None))
    assert order_ack(line).number == 2
    found = shown()
    assert found["format_name"].upper() == r"DIRECT=OS:SERVER\PRIVATE$\T"
    assert (found["sender"], found["sequence_id"]) == (str(peer.guid), STAMP << 32 | 1)
    assert (found["sequence_number"], found["reject_count"]) == (2, 2)
    assert abs(found["last_access"] - time.time()) < 60
    server.kill()
    server.start()
    assert (shown()["sequence_number"], shown()["reject_count"]) == (2, 2)
    line = open_line(server, peer)
    line.say(stream.packet(1))
    assert order_ack(line).number == 2
    assert shown()["reject_count"] == 3
    line.say(stream.packet(3))
    assert order_ack(line).number == 3
    assert (shown()["sequence_number"], shown()["reject_count"]) == (3, 0)
