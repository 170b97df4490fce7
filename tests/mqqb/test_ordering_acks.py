"""Which messages are OrderAcks and FinalAcks, and how far an OrderAck reaches."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.packet import Message
from msmq_fast.packet.acks import FinalAck, OrderAck, order_queue
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.outgoing.resending import Messenger
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.mqqb.streams import acknowledged, host_with_queue, tx
from tests.mqqb.transactional import DEADXACT, NAME, Sender, sender
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host

__all__ = ["sender"]

LABEL = "QM Ordering Ack"
ORDER = struct.pack("<IIII20x", 3, 9, 12, 11)


class Sequences:
    """Keeps the acknowledgments that it is given."""

    def __init__(self) -> None:
        self.given: list[OrderAck | FinalAck] = []

    def order_ack(self, ack: OrderAck, now: float, messenger: Messenger) -> None:
        self.given.append(ack)

    def final_ack(self, ack: FinalAck, now: float, messenger: Messenger) -> None:
        self.given.append(ack)


@pytest.mark.rule("QB-158", "QB-159", "QB-300")
@pytest.mark.parametrize("queue", ["order_queue$", "q"])
@pytest.mark.parametrize("label", [LABEL, "QM ordering ack", ""])
@pytest.mark.parametrize("kind", [0x00FF, 0x0002, 0x3FFF, 0x4000, 0x8000])
def test_queue_label_and_class_together_make_an_acknowledgment(queue: str, label: str, kind: int) -> None:
    sequences = Sequences()
    host = Host(hooks=Hooks(sequences=sequences))  # type: ignore[arg-type]
    host.add("order_queue$")
    packet = wire.message(1, queue=f"OS:h\\private$\\{queue}", body=ORDER, label=label, message_class=kind)
    host.opened().receive(packet, 101.0)
    is_one = queue == "order_queue$" and label == LABEL and (kind == 0xFF or kind >= 0x4000)
    assert [type(ack) for ack in sequences.given] == [OrderAck if kind == 0xFF else FinalAck] * is_one
    assert host.messages(queue) == [1] * (not is_one)


@pytest.mark.rule("QB-158", "QB-159")
def test_acknowledgments_come_by_the_number_of_the_order_queue_too() -> None:
    sequences = Sequences()
    host = Host(hooks=Hooks(sequences=sequences))  # type: ignore[arg-type]
    order, final = OrderAck(3, 9, 12), FinalAck(3, 9, 12, 11, OWN, 55, MessageClass.NACK_Q_PURGED)
    session = host.opened()
    for number, ack in enumerate((order, final), 1):
        message = ack.message(order_queue(OWN), wire.PEER)
        message.message_id = number
        session.receive(message.to_packet(), 101.0)
    assert sequences.given == [order, final]
    assert host.refusals == []


@pytest.mark.rule("QB-123")
def test_an_order_ack_reaches_as_far_as_messages_are_stored() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(2), 100.0)
    host.commit()
    session.receive(tx(3), 100.0)
    host.advance(1)
    assert acknowledged(host) == [(7, 1, 2)]
    host.commit()
    host.advance(1)
    assert acknowledged(host) == [(7, 1, 3)]


@pytest.mark.rule("QB-235", "QB-266")
@pytest.mark.parametrize("address", [wire.NULL, OWN])
@pytest.mark.parametrize("plain", [False, True])
def test_the_gate_is_for_messages_to_this_queue_manager(address: UUID, plain: bool) -> None:
    host = host_with_queue()
    session = host.opened()
    session.receiver.plain = plain
    session.receive(tx(1, address=address) + tx(3, address=address) + tx(2, address=address), 100.0)
    host.commit()
    assert host.messages("t") == [101, 102]


@pytest.mark.rule("QB-218")
@pytest.mark.parametrize(("transactional", "goes_to"), [(True, "own"), (False, DEADXACT)])
def test_what_was_refused_goes_to_the_dead_letter_queue_that_its_application_named(
    sender: Sender, transactional: bool, goes_to: str
) -> None:
    """To the system's own, if the named one cannot hold transactional messages."""
    sender.world.create("own", transactional=transactional)
    transaction = sender.manager.transactions.begin()
    handle = sender.manager.open(NAME, Access.SEND)
    message = Message(body=b"1", journal=Journal.DEADLETTER)
    message.transaction = transaction.header(handle.queue.core)
    packet = handle.stamp(message).to_packet()
    chosen = sender.manager.dead_letter_queue("own", None)
    assert TransactedQueue(handle, transaction).send_packets([packet], [chosen]) == [0]
    sender.world.finish(transaction.commit())
    handle.close()
    sender.connect()
    (sent,) = sender.taken()
    sender.keep(1)
    sender.order(sent)
    sender.final(sent, MessageClass.NACK_Q_PURGED)
    assert sender.queue.messages == 0
    assert {name: sender.world.bodies(name) for name in ("own", DEADXACT)} == {
        name: [b"1"] * (name == goes_to) for name in ("own", DEADXACT)
    }
