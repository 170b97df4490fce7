"""Messages that come over MS-MQQB: what is answered, and what of a refused one is kept (3.1.5.8)."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.packet import Message
from msmq_fast.protocol.properties import Journal
from tests.qm.acknowledgments import HERE, answers
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.arrivals import ADMIN, ALL, NEGATIVE_ARRIVAL, Inbound, Refusing

DEADLETTER = r".\system$;DEADLETTER"


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.rule("QB-293", "QB-358")
def test_a_message_that_arrives_is_answered_with_its_durability(recoverable: bool) -> None:
    inbound = Inbound()
    inbound.arrive(recoverable=recoverable)
    inbound.world.run()
    (answer,) = answers(inbound.world, HERE)
    assert answer.message_class == 0x0002
    assert answer.delivery == recoverable
    assert answer.correlation_id == wire.PEER.bytes_le + (1).to_bytes(4, "little")


def test_claimed_administration_queues_open_no_more_queues_than_there_may_be() -> None:
    inbound = Inbound()
    world = inbound.world
    world.manager.answer_queues.most = 2
    for number in range(1, 6):
        inbound.arrive(number, admin=rf"TCP:10.0.0.{number}\private$\admin")
    inbound.arrive(6, admin=r"TCP:10.0.0.5\private$\admin")
    inbound.arrive(7)
    world.run()
    assert sorted(queue.core.positions.live for queue in world.manager.outgoing()) == [1, 2]
    assert len(answers(world, HERE)) == 1  # here there is always one
    assert len(world.bodies("orders")) == 7


CASES = [
    ("nothing", {}, 0x8000, True),
    ("transacted", {}, 0x800A, False),
    ("orders", {"reach": 5, "sent_time": WALL - 10}, 0x8002, False),
    ("guarded", {}, 0x8004, True),
    ("full", {}, 0x8003, False),
]


@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize(("queue", "fields", "answer", "is_insecure"), CASES)
@pytest.mark.rule("QB-083", "QB-231", "QB-233", "QB-283", "QB-384", "QB-385", "QB-403", "X-37")
def test_a_refused_message_is_answered(
    queue: str, fields: dict[str, int], answer: int, is_insecure: bool, recoverable: bool, insecure: bool
) -> None:
    for wishes in (0, 1, 2, NEGATIVE_ARRIVAL, 8, ALL):
        inbound = Inbound(insecure=insecure)
        inbound.world.create("guarded")
        inbound.world.create("full", quota_kb=0)
        inbound.arrive(queue=queue, ack_flags=wishes, recoverable=recoverable, **fields)
        inbound.world.run()
        due = wishes & NEGATIVE_ARRIVAL and (insecure or not is_insecure)
        found = answers(inbound.world, HERE)
        assert [message.message_class for message in found] == ([answer] if due else []), wishes
        for message in found:
            assert (message.body, message.delivery) == (b"body", recoverable)


@pytest.mark.rule("QB-383")
def test_a_refusal_without_an_administration_queue_is_answered_nowhere() -> None:
    inbound = Inbound(insecure=True)
    packet = wire.message(
        1, queue=r"OS:HOST\private$\nothing", ack_flags=ALL, response=ADMIN, sent_time=WALL, recoverable=True
    )
    message = Message.from_packet(packet)
    message.journal = Journal.DEADLETTER  # so that something follows from the refusal
    inbound.session.receive(message.to_packet(), 100.0)
    inbound.world.run()
    assert answers(inbound.world, HERE) == []
    assert inbound.world.manager.ack_policy.discarded == 0


@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize(
    ("refusal", "answer"),
    [(Refusal.SIGNED, 0x8006), (Refusal.ENCRYPTED, 0x8007), (Refusal.UNSUPPORTED_PROVIDER, 0x800B)],
)
@pytest.mark.rule("QB-083", "QB-231", "QB-384", "QB-403")
def test_a_message_that_cannot_be_opened_is_answered_where_that_is_allowed(
    refusal: Refusal, answer: int, insecure: bool
) -> None:
    inbound = Inbound(insecure=insecure, protection=Refusing(refusal))
    inbound.world.create("signed", authenticated=True)
    inbound.arrive(queue="signed")
    inbound.world.run()
    found = [message.message_class for message in answers(inbound.world, HERE)]
    assert found == ([answer] if insecure else [])
    assert inbound.world.bodies("signed") == []


@pytest.mark.rule("X-69", "QB-283")
def test_the_acknowledgment_of_the_session_waits_for_that_of_the_refusal() -> None:
    inbound = Inbound()
    inbound.arrive(queue="transacted")
    assert inbound.acknowledged(101.0) == 0
    inbound.world.run()
    assert inbound.acknowledged(103.0) == 1
    inbound.world.crash()
    assert [message.message_class for message in answers(inbound.world, HERE)] == [0x800A]


@pytest.mark.rule("QB-283", "X-37", "X-62")
def test_a_message_beyond_the_quota_becomes_a_dead_letter_where_asked() -> None:
    inbound = Inbound()
    inbound.world.create("full", quota_kb=0)
    for number, asked in enumerate((False, True), 1):
        message = Message.from_packet(
            wire.message(number, queue=r"OS:HOST\private$\full", recoverable=True, sent_time=WALL)
        )
        message.journal = 1 if asked else 0  # type: ignore[assignment]
        message.body = b"%d" % number
        inbound.session.receive(message.to_packet(), 100.0)
        inbound.world.run()
    assert inbound.world.bodies(DEADLETTER) == [b"2"]
    inbound.world.crash()
    assert inbound.world.bodies(DEADLETTER) == [b"2"]


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.rule("QB-284", "X-38", "X-62")
def test_a_message_whose_dead_letter_is_not_let_in_stays_with_its_sender(recoverable: bool) -> None:
    """Nobody would ever hear of it otherwise."""
    inbound = Inbound()
    message = Message.from_packet(
        wire.message(
            1, queue=r"OS:HOST\private$\orders", recoverable=recoverable, reach=5, sent_time=WALL - 10
        )
    )
    message.journal = 1  # type: ignore[assignment]
    inbound.world.manager.flow.begin("the disk is full")
    inbound.session.receive(message.to_packet(), 100.0)
    assert inbound.session.reason is CloseReason.QUOTA
    assert inbound.acknowledged(101.0) == inbound.world.manager.ledger.discarded == 0
    inbound.world.manager.flow.end("the disk is full")
    inbound.connect()
    inbound.session.receive(message.to_packet(), 102.0)
    inbound.world.run()
    assert inbound.world.bodies(DEADLETTER) == [message.body]
    assert inbound.acknowledged(103.0) == recoverable


def test_what_leaves_no_dead_letter_is_refused_while_nothing_is_let_in() -> None:
    inbound = Inbound()
    inbound.world.manager.flow.begin("the disk is full")
    inbound.arrive(reach=5, sent_time=WALL - 10)
    inbound.world.run()
    assert inbound.session.alive
    assert inbound.acknowledged(101.0) == 1


def test_the_journal_of_the_sender_is_not_ours() -> None:
    inbound = Inbound()
    message = Message.from_packet(
        wire.message(1, queue=r"OS:HOST\private$\orders", recoverable=True, sent_time=WALL)
    )
    message.journal = 2  # type: ignore[assignment]
    inbound.session.receive(message.to_packet(), 100.0)
    inbound.world.run()
    assert inbound.world.manager.find("orders").messages == 1
    assert inbound.world.bodies(r".\system$;JOURNAL") == []
