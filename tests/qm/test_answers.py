"""Outgoing queues that answers open: budgets of those who cause them, how long they stay, where they lead."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from msmq_fast._native.memorystore import MemoryWriter
from msmq_fast.packet import Message
from msmq_fast.packet.acks import OrderAck, order_queue
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.qm.access import Access
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.outgoing.acknowledgment import lifetime
from msmq_fast.qm.outgoing.answers import UNKNOWN, may_answer
from msmq_fast.qm.outgoing.idlecleanup import ANSWERS_IDLE
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

PEER, OTHER = "192.0.2.7", "192.0.2.8"
FEW = 5


def admin(number: int) -> FormatName:
    return parse_format_name(rf"DIRECT=TCP:198.51.100.{number}\private$\a")


@pytest.fixture
def world() -> World:
    return World(answers_per_address=FEW)


def brought(world: World, number: int, address: str = PEER, **values: object) -> None:
    """A peer's message arrives and is answered to an administration queue of its choice."""
    source = UUID(int=number + 1000)
    world.manager.answer_queues.origins.brought(source.bytes_le, address)
    message = Message(
        body=b"x",
        destination=parse_format_name(r"DIRECT=OS:HOST\private$\none"),
        admin_queue=admin(number),
        acknowledge=Acknowledge.NEGATIVE_ARRIVAL,
        source_machine=source,
        sent_time=WALL,
        delivery=1,  # type: ignore[arg-type]
        **values,  # type: ignore[arg-type]
    )
    world.manager.records.unit(lambda: world.manager.ack_policy.reject(message.to_packet(), 0x8002))  # type: ignore[arg-type,return-value]


def names(world: World) -> list[str]:
    return [queue.name for queue in world.manager.outgoing()]


def test_one_address_waits_for_a_bounded_number_of_hosts_that_are_not_reached(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for number in range(1, 60):
            brought(world, number)
            world.run()
    assert names(world) == [str(admin(number)) for number in range(60 - FEW, 60)]  # the latest ones
    assert world.manager.answer_queues.given_up == 59 - FEW
    (line,) = [record for record in caplog.records if PEER in record.getMessage()]
    assert PEER in world.manager.answer_queues.shortage
    brought(world, 100, OTHER)
    world.run()
    assert str(admin(100)) in names(world)
    assert len(names(world)) == FEW + 1  # nobody else makes room for it
    stored = {
        record["destination"]
        for _, record in world.manager.records.queues(lambda *_: None)
        if record["kind"] == 3 and record["state"] == 0
    }
    assert line.levelno == logging.WARNING
    assert len(stored) <= FEW + 1


def test_hosts_that_are_reached_are_not_given_up_for_others(world: World) -> None:
    for number in range(1, 4):
        brought(world, number)
        next(queue for queue in world.manager.outgoing() if queue.name == str(admin(number))).reached = True
    for number in range(10, 60):
        brought(world, number)
        world.run()
    assert {str(admin(number)) for number in range(1, 4)} <= set(names(world))
    assert len(names(world)) == 3 + FEW


def test_what_makes_room_is_deleted_in_later_turns_of_bounded_work(world: World) -> None:
    for number in range(1, 200):
        brought(world, number % 250)
    assert len(names(world)) == 199
    discarded = len(names(world))
    world.manager.expire(world.clock.seconds)
    assert discarded - 100 <= len(names(world)) < discarded
    world.run()
    assert len(names(world)) == FEW


def test_with_all_answers_at_their_limit_a_new_peer_still_gets_an_order_ack(world: World) -> None:
    manager = world.manager
    manager.answer_queues.most = 20
    for number in range(1, 200):
        brought(world, number, f"203.0.113.{number}")
        world.run()
    assert len(names(world)) == 20
    ack = OrderAck(1, 2, 3).message(order_queue(address="192.0.2.99"), manager.guid)
    assert manager.ack_policy.send_away(ack, None, "192.0.2.99") is not None
    for number in range(1, 200):  # nor do invented senders of streams keep one away
        invented = OrderAck(1, 2, 3).message(order_queue(UUID(int=number)), manager.guid)
        manager.ack_policy.send_away(invented, None, PEER)
        world.run()
    ack = OrderAck(1, 2, 3).message(order_queue(address="192.0.2.98"), manager.guid)
    assert manager.ack_policy.send_away(ack, None, "192.0.2.98") is not None
    world.run()
    assert len(names(world)) <= 40


@pytest.mark.parametrize("ordering", [False, True])
def test_peers_that_are_there_and_take_nothing_keep_no_other_waiting(world: World, ordering: bool) -> None:
    """Their queues were reached and are not empty: some addresses with sessions have all there may be."""
    manager = world.manager
    manager.answer_queues.most = 20

    def answered(number: int, address: str) -> str:
        if not ordering:
            brought(world, number, address)
            return str(admin(number))
        name = order_queue(UUID(int=number))
        manager.ack_policy.send_away(OrderAck(1, 2, 3).message(name, manager.guid), None, address)
        return str(name)

    for number in range(20):
        name = answered(number, f"203.0.113.{number % 4}")
        next(queue for queue in manager.outgoing() if queue.name == name).reached = True
    world.run()
    before = manager.ack_policy.discarded
    name = answered(99, "192.0.2.99")
    world.run()
    assert name in names(world)
    assert len(names(world)) == 20
    assert manager.ack_policy.discarded == before


def test_programs_open_as_many_as_they_like_and_what_they_use_is_theirs(world: World) -> None:
    for number in range(1, FEW + 1):
        brought(world, number)
    world.manager.open(str(admin(1)), Access.SEND).close()
    for number in range(1, 40):
        world.manager.open(rf"DIRECT=TCP:10.9.9.{number}\private$\q", Access.SEND).close()
    for number in range(50, 80):
        brought(world, number)
        world.run()
    assert str(admin(1)) in names(world)
    assert len(names(world)) == 1 + 39 + FEW


def test_an_answer_waits_no_longer_than_its_message_and_its_queue_goes_with_it(world: World) -> None:
    brought(world, 1, time_to_reach_queue=3600)
    world.run()
    (queue,) = world.manager.outgoing()
    world.advance(3500)
    assert queue.messages == 1
    world.advance(101)
    assert queue.messages == 0
    world.advance(ANSWERS_IDLE / 2)
    world.advance(ANSWERS_IDLE)
    world.advance(ANSWERS_IDLE)
    assert names(world) == []


@pytest.mark.parametrize(
    ("reach", "passed", "left"),
    [(3600, 0, 3600), (3600, 1000, 2600), (3600, 3599, 600), (5, 0, 600), (5, 10**6, 600),
     (INFINITE, 0, 86_400), (345_600, 0, 86_400), (345_600, 300_000, 45_600)],
)  # fmt: skip
def test_the_time_of_an_answer(reach: int, passed: int, left: int) -> None:
    message = Message(body=b"", sent_time=WALL, time_to_reach_queue=reach)
    assert lifetime(message, WALL + passed) == left


def test_answers_to_messages_of_programs_here_have_no_time_limit(world: World) -> None:
    world.send(
        b"x",
        r"DIRECT=TCP:10.9.9.9\private$\q",
        acknowledge=Acknowledge.NEGATIVE_ARRIVAL,
        admin_queue=admin(1),
        time_to_reach_queue=5,
    )
    world.advance(10)
    world.advance(200_000)
    assert [queue.messages for queue in world.manager.outgoing() if queue.name == str(admin(1))] == [1]


def test_after_a_restart_they_count_again_and_go(world: World) -> None:
    for number in range(1, FEW + 1):
        brought(world, number)
    world.run()
    world.crash()
    assert len(names(world)) == FEW
    for number in range(50, 60):
        brought(world, number)
        world.run()
    assert len(names(world)) == FEW
    world.advance(86_401)
    for _ in range(5):
        world.advance(ANSWERS_IDLE)
    assert names(world) == []
    world.crash()
    assert names(world) == []


def test_who_caused_an_answer_is_not_known_any_more_after_a_restart(world: World) -> None:
    source = UUID(int=77)
    world.manager.answer_queues.origins.brought(source.bytes_le, PEER)
    assert world.manager.answer_queues.origins.address(source) == PEER
    world.crash()
    assert world.manager.answer_queues.origins.address(source) == ""
    assert world.manager.answer_queues.open(admin(3), UNKNOWN) is not None


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        (r"DIRECT=TCP:198.51.100.1\private$\a", True),
        (r"DIRECT=OS:elsewhere\private$\a", True),
        (rf"PRIVATE={UUID(int=3)}\00000010", True),
        (rf"DIRECT=TCP:{PEER}\private$\a", True),
        (r"DIRECT=TCP:127.0.0.1\private$\a", False),
        (r"DIRECT=OS:127.8.8.8\private$\a", False),
        (r"DIRECT=TCP:169.254.169.254\private$\a", False),
        (r"DIRECT=TCP:224.0.0.5\private$\a", False),
        (r"DIRECT=TCP:0.0.0.0\private$\a", False),
        (r"DIRECT=OS:localhost\private$\a", False),
        (r"DIRECT=TCP:::1\private$\a", False),
        (r"DIRECT=TCP:fe80::1\private$\a", False),
        (r"MULTICAST=234.1.1.1:8001", False),
        (r"DIRECT=HTTP://198.51.100.1:9200/msmq/x", False),
        (rf"DIRECT=HTTP://{PEER}/msmq/private$/a", True),
        (r"DIRECT=TCP:127.0.0.5\private$\a", True),  # an address of ours
    ],
)
def test_where_a_peer_may_have_answers_sent(name: str, allowed: bool) -> None:
    assert may_answer(parse_format_name(name), PEER, frozenset({"127.0.0.5"})) is allowed


def test_a_peer_on_a_confined_address_is_answered_there(world: World) -> None:
    assert may_answer(parse_format_name(r"DIRECT=TCP:127.9.9.9\private$\a"), "127.9.9.9", frozenset())
    assert not may_answer(parse_format_name(r"DIRECT=TCP:127.9.9.9\private$\a"), "127.9.9.8", frozenset())


def test_an_answer_to_a_confined_address_is_discarded_and_counted(world: World) -> None:
    source = UUID(int=5)
    world.manager.answer_queues.origins.brought(source.bytes_le, PEER)
    message = Message(
        body=b"x",
        destination=parse_format_name(r"DIRECT=OS:HOST\private$\none"),
        admin_queue=parse_format_name(r"DIRECT=TCP:169.254.169.254\private$\a"),
        acknowledge=Acknowledge.NEGATIVE_ARRIVAL,
        source_machine=source,
        sent_time=WALL,
    )
    manager: QueueManager = world.manager
    manager.records.unit(lambda: manager.ack_policy.reject(message.to_packet(), 0x8002))  # type: ignore[arg-type,return-value]
    world.run()
    assert names(world) == []
    assert manager.ack_policy.discarded == 1
    assert isinstance(world.writer, MemoryWriter)


def test_a_queue_that_cannot_be_deleted_is_tried_again_and_holds_up_no_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(faults=Faults, answers_per_address=FEW)
    discard, failing = world.manager.outgoing_queues.discard, [True]

    def broken(queue: OutgoingQueue) -> object:
        if failing[0] and queue.name == str(admin(1)):
            raise RuntimeError("this one")
        return discard(queue)

    monkeypatch.setattr(world.manager.outgoing_queues, "discard", broken)
    for number in range(1, 20):
        brought(world, number)
    world.run()
    assert len(names(world)) == FEW + 1
    assert str(admin(1)) in names(world)
    failing[0] = False
    world.advance(61)
    assert len(names(world)) == FEW
