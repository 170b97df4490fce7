"""OrderAcks and FinalAcks of strangers, of peers that moved, and of routers on the way."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.session import Session
from msmq_fast.qm.outgoing.resending import SequenceEvent
from tests.mqqb.transactional import DEADXACT, JOURNAL, Sender, Sent, asked, sender
from tests.support.mqqb import wire

__all__ = ["asked", "sender"]

STRANGER = UUID("0bad0001-0000-4000-8000-000000000000")
PEER_ADDRESS, MOVED, AWAY = "10.0.0.8", "10.0.0.9", "10.0.0.66"


def session(sender: Sender, address: str, peer: UUID) -> Session:
    """The session of a peer that calls from an address."""
    opened = sender.endpoint.accept(address, sender.now)
    opened.receive(wire.establish(peer) + wire.parameters(), sender.now)
    opened.data_to_send()
    return opened


def order_ack(sender: Sender, session: Session, sent: Sent, number: int | None = None) -> None:
    number = number or sent.number
    _bring(sender, session, 0xFF, struct.pack("<IIII20x", sent.ordinal, sent.stamp, number, number - 1))


def final_ack(sender: Sender, session: Session, sent: Sent, kind: int) -> None:
    place = struct.pack("<IIII", sent.ordinal, sent.stamp, sent.number, sent.previous)
    identifier = sender.manager.guid.bytes_le + struct.pack("<I", sent.message_id)
    _bring(sender, session, kind, place + identifier)


def _bring(sender: Sender, session: Session, kind: int, body: bytes) -> None:
    packet = wire.message(
        session.number + 1000,
        queue=r"TCP:10.0.0.7\PRIVATE$\order_queue$",
        label="QM Ordering Ack",
        priority=0,
        message_class=kind,
        body=body,
        sent_time=sender.manager.ledger.now_s,
        source=session.peer_guid,
    )
    session.receive(packet, sender.now)
    sender.world.run()
    assert session.alive, session.detail


@pytest.mark.parametrize("guid", [STRANGER, wire.PEER])
def test_an_order_ack_from_elsewhere_removes_nothing(sender: Sender, guid: UUID) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first, second = sender.taken()
    sender.keep(2)
    order_ack(sender, session(sender, AWAY, guid), second)
    assert sender.queue.messages == 2
    assert sender.sequences.counts[SequenceEvent.FOREIGN] == 1
    sender.order(first)
    assert sender.queue.messages == 1
    sender.order(second)
    assert sender.queue.messages == 0


@pytest.mark.parametrize("guid", [STRANGER, wire.PEER])
@pytest.mark.parametrize("kind", [0x4000, 0x8000])
def test_a_final_ack_from_elsewhere_ends_nothing(asked: Sender, guid: UUID, kind: int) -> None:
    sent: Sent = asked.asked  # type: ignore[attr-defined]
    for _ in range(2):  # before its OrderAck and after it
        final_ack(asked, session(asked, AWAY, guid), sent, kind)
        assert asked.queue.messages == 1
        asked.order(sent)
    assert asked.world.bodies(DEADXACT) == asked.world.bodies(JOURNAL) == []
    asked.final(sent)
    assert asked.world.bodies(JOURNAL) == [b"1"]


def test_a_peer_that_moved_acknowledges_from_where_the_messages_went_again(sender: Sender) -> None:
    sender.send(b"1")
    before = sender.connect()
    (sent,) = sender.taken()
    moved = session(sender, MOVED, wire.PEER)
    order_ack(sender, moved, sent)
    assert sender.queue.messages == 1, "it may be anybody"
    # The name of its host leads to the new address: what is sent there is acknowledged from there.
    (link,) = sender.endpoint.transfer.links
    (channel,) = link.queues
    channel.progress(Progress.ESTABLISHED, MOVED, "")
    order_ack(sender, moved, sent)
    assert sender.queue.messages == 1
    sender.session = before
    sender.keep(1)
    assert sender.queue.messages == 0


def test_before_anything_was_sent_since_the_start_the_numbers_count(asked: Sender) -> None:
    sent: Sent = asked.asked  # type: ignore[attr-defined]
    asked.order(sent)
    asked.world.crash()
    asked.restart()
    final_ack(asked, session(asked, MOVED, wire.PEER), sent, 0x4000)
    assert asked.queue.messages == 0
    assert asked.world.bodies(JOURNAL) == [b"1"]


class Configured(Sender):
    """With options of the peers."""

    def __init__(self, **options: object) -> None:
        self.options = options
        super().__init__()

    def peers(self) -> Peers:
        return Peers(self.manager.guid, **self.options)  # type: ignore[arg-type]


def counts(sender: Sender, address: str, guid: UUID) -> bool:
    sender.send(b"1")
    sender.connect()
    (sent,) = sender.taken()
    sender.keep(1)
    order_ack(sender, session(sender, address, guid), sent)
    return sender.queue.messages == 0


def named(address: str, manager: UUID | None) -> bool:
    return address == AWAY or manager == STRANGER


@pytest.mark.parametrize(
    ("options", "address", "guid", "expected"),
    [
        ({"is_router": named}, AWAY, UUID(int=5), True),
        ({"is_router": named}, MOVED, STRANGER, True),
        ({"is_router": named}, MOVED, UUID(int=5), False),
        ({"several_addresses": True}, MOVED, wire.PEER, True),
        ({"several_addresses": True}, MOVED, STRANGER, False),
        ({"pinned": {wire.PEER: frozenset((PEER_ADDRESS, MOVED))}}, MOVED, wire.PEER, True),
        ({"pinned": {STRANGER: frozenset((AWAY,))}}, AWAY, STRANGER, False),
        ({}, PEER_ADDRESS, STRANGER, True),  # all behind one address translator
    ],
)
def test_who_is_believed_besides(
    options: dict[str, object], address: str, guid: UUID, expected: bool
) -> None:
    assert counts(Configured(**options), address, guid) is expected
