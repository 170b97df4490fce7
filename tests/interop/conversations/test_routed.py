"""Messages that pass through: the server between two scripted queue managers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

import pytest

from tests.support.mqqb import frames
from tests.support.mqqb.frames import private
from tests.support.mqqb.peer import Line, Peer
from tests.support.processes.servers import Server, until

pytestmark = pytest.mark.long(seconds=3)

STAMP = 0x6740F5A5
TARGET = private(0x17)


@pytest.fixture
def router(start: Callable[..., Server]) -> Server:
    return start(router="true")


def dial(server: Server, peer: Peer) -> Line:
    return peer.dial(server.host, server.port("mqqb"))


def with_one_more_hop(packet: bytes) -> bytes:
    """What a router may change: UserHeader.Flags.RC, and BaseHeader.Reserved."""
    return packet[:60] + struct.pack("<I", struct.unpack_from("<I", packet, 60)[0] + 1) + packet[64:]


@pytest.mark.rule("QB-098", "QB-114", "QB-234", "QB-264")
def test_nothing_but_the_hop_count_changes(router: Server, peer: Peer, peers: Callable[[], Peer]) -> None:
    """The router acknowledges to the session only; the stream is none of its business."""
    target = peers()
    there, here = dial(router, target), dial(router, peer)
    packets = [
        peer.message(TARGET, address=target.guid, body=b"express"),
        peer.message(
            TARGET, address=target.guid, body=b"kept", recoverable=True, hops=5, secure=frames.security()
        ),
    ]
    for number in (1, 2):
        tx = frames.transaction(1, STAMP, number, number - 1, identifier=number, final=True)
        packets.append(
            peer.message(TARGET, address=target.guid, tx=tx, journal=3, admin=peer.queue("a"), acks=15)
        )
    for packet in packets:
        here.say(packet)
    named, _ = here.acked(4)
    while named != {1, 2, 3}:
        named |= here.acked(4)[0]
    found = {there.message().packet for _ in packets}
    assert {one[2:] for one in found} == {with_one_more_hop(packet)[2:] for packet in packets}
    there.acknowledge()
    here.no_message(1.0)


@pytest.mark.rule("QB-050", "QB-059")
def test_acknowledgments_find_their_way_back(router: Server, peer: Peer, peers: Callable[[], Peer]) -> None:
    """Short cut "answered inline on the receiving socket": the sender is two hops away."""
    target = peers()
    there, here = dial(router, target), dial(router, peer)
    order = private(4)
    ack = frames.order_ack(target.number(), target.guid, order, 1, STAMP, 2, address=peer.guid)
    there.say(ack)
    found = here.message()
    assert found.packet[2:] == with_one_more_hop(ack)[2:]
    here.acknowledge()
    final = frames.final_ack(
        target.number(), target.guid, order, 0x4000, (1, STAMP, 2, 1), (peer.guid, 9), address=peer.guid
    )
    there.say(final)
    assert here.message().packet[2:] == with_one_more_hop(final)[2:]
    here.acknowledge()


@pytest.mark.rule("QB-057", "QB-234")
def test_after_29_routers_it_is_enough(router: Server, peer: Peer, peers: Callable[[], Peer]) -> None:
    target = peers()
    there, here = dial(router, target), dial(router, peer)
    asked = {"admin": peer.queue("acks"), "acks": frames.NO_REACH, "address": target.guid}
    here.say(peer.message(TARGET, hops=0x1C, **asked))
    assert there.message().flags & 0x1F == 0x1D
    here.say(peer.message(TARGET, hops=0x1D, **asked))
    answer = here.message()
    assert (answer.kind, answer.correlation[16:]) == (0x8005, struct.pack("<I", 2))
    here.acknowledge()
    there.no_message(0.2)
    here.say(
        peer.message(TARGET, hops=0x1D, address=target.guid, tx=frames.transaction(1, STAMP, 1, 0), journal=1)
    )
    final = here.message()
    assert (final.kind, final.label, final.destination) == (0x8005, frames.ORDERING_LABEL, private(4))
    assert frames.ordering(final).number == 1


@pytest.mark.rule("QB-225", "QB-264")
def test_what_waits_for_its_destination_survives_a_kill(
    router: Server, peer: Peer, peers: Callable[[], Peer]
) -> None:
    target = peers()
    here = dial(router, peer)
    packets = [peer.message(TARGET, address=target.guid, recoverable=True, body=b"%d" % n) for n in range(5)]
    for packet in packets:
        here.say(packet)
    named: set[int] = set()
    while named != {1, 2, 3, 4, 5}:
        named |= here.acked(5)[0]
    router.kill()
    router.start()
    there = dial(router, target)
    assert [there.message(15).packet[2:] for _ in packets] == [with_one_more_hop(one)[2:] for one in packets]


@pytest.mark.rule("QB-234")
def test_a_server_that_is_no_router_ends_the_session(
    server: Server, peer: Peer, peers: Callable[[], Peer]
) -> None:
    target = peers()
    line = dial(server, peer)
    line.say(peer.message(TARGET, address=target.guid))
    line.closed()
    assert UUID(server.ready["guid"]) != target.guid


@pytest.mark.rule("QB-168", "QB-365")
def test_a_computer_that_nobody_knows_is_asked_for_again(peer: Peer, start: Callable[..., Server]) -> None:
    """A private name says a GUID and no address; its queue waits until that computer comes by itself."""
    server = start(retry_interval=0.3)
    name = rf"PRIVATE={peer.guid}\0000000a"
    server.ok("send", name, "--body", "x", "--recoverable")

    def state() -> str:
        found: str = server.ok("outgoing", "show", name)[0]["state"]
        return found

    until(lambda: state() == "need_validation", what="the failure")
    found = dial(server, peer).message()
    assert (found.body, found.destination, found.manager) == (b"x", private(0x0A), peer.guid)
