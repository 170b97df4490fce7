"""Names that turn out to mean this computer: what was sent there goes to the local queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmq_fast._native.framing import parse
from msmq_fast.packet.message import Message
from msmq_fast.packet.protect import security_of
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import sid
from tests.support.worlds.queue_manager import World

ALICE = sid("S-1-5-21-7-8-9-1001")
ALIAS = "DIRECT=OS:Alias\\private$\\orders"


def outgoing(world: World, name: str = ALIAS) -> OutgoingQueue:
    found = world.manager.find(name)
    assert isinstance(found, OutgoingQueue)
    return found


@pytest.mark.parametrize("delivery", [0, 1])
def test_messages_go_to_the_local_queue_in_their_order_and_later_ones_directly(delivery: int) -> None:
    world = World()
    world.create()
    for number in range(5):
        world.send(b"%d" % number, ALIAS, delivery=delivery)
    queue = outgoing(world)
    assert queue.deliver_locally()
    world.run()
    assert world.bodies() == [b"0", b"1", b"2", b"3", b"4"]
    assert queue.messages == 0
    world.send(b"5", "DIRECT=OS:ALIAS\\private$\\orders", delivery=delivery)
    assert world.bodies()[-1] == b"5"
    assert queue.messages == 0


def test_more_than_a_batch_goes_batch_by_batch() -> None:
    world = World()
    world.create()
    handle = world.sender(ALIAS)
    for _ in range(1_001):
        handle.send(Message(body=b"x", delivery=1))
    world.run()
    queue = outgoing(world)
    assert queue.deliver_locally()
    world.run()
    assert world.manager.find("orders").messages == 1_000
    assert queue.deliver_locally()
    world.run()
    assert world.manager.find("orders").messages == 1_001


def test_without_a_local_queue_messages_wait_until_there_is_one() -> None:
    world = World()
    world.send(b"x", ALIAS)
    queue = outgoing(world)
    assert not queue.deliver_locally()
    assert outgoing(world) is queue
    assert queue.messages == 1
    world.create()
    assert queue.deliver_locally()
    world.run()
    assert world.bodies() == [b"x"]


def test_what_the_local_queue_does_not_take_waits_and_is_not_tried_all_the_time() -> None:
    world = World()
    world.create(quota_kb=0)
    world.send(b"x", ALIAS)
    queue = outgoing(world)
    assert queue.deliver_locally()
    world.run()
    assert queue.messages == 1
    assert not queue.deliver_locally()
    world.finish(world.manager.set_properties(world.manager.find("orders"), quota_kb=10))
    assert queue.deliver_locally()
    world.run()
    assert world.bodies() == [b"x"]


def test_messages_and_their_removal_are_one_unit() -> None:
    world = World()
    world.create()
    world.send(b"x", ALIAS)
    queue = outgoing(world)
    queue.deliver_locally()
    world.store.reader.complete()
    world.crash()
    queues = [queue for queue in world.manager.queues() if queue.messages]
    assert sum(queue.messages for queue in queues) == 1


def test_arrival_is_acknowledged_as_always() -> None:
    world = World()
    world.create()
    answers = world.create("answers")
    world.send(
        b"x",
        ALIAS,
        acknowledge=Acknowledge.POSITIVE_ARRIVAL,
        admin_queue=answers.format_name(world.manager.guid),
    )
    queue = outgoing(world)
    queue.deliver_locally()
    world.run()
    assert answers.messages == 1


def withheld(world: World) -> None:
    """The queue takes nothing from strangers."""
    queue = outgoing(world)
    queue.deliver_locally()
    world.run()
    assert world.manager.find("orders").messages == 0


def test_nobody_comes_by_an_alias_into_a_queue_that_it_may_not_send_to() -> None:
    world = World()
    world.create(security=parse_sddl("D:(A;;LC;;;BA)"))
    world.send(b"x", ALIAS)
    withheld(world)


def test_unsigned_messages_do_not_come_by_an_alias_into_an_authenticated_queue() -> None:
    world = World()
    world.create(authenticated=True)
    world.send(b"x", ALIAS)
    withheld(world)


def test_nobody_says_by_an_alias_that_its_message_is_authenticated() -> None:
    world = World()
    world.create()
    claim = SecurityHeader(sender_id_type=1, sender_id=ALICE.data, authentication_level=3)
    world.send(b"x", ALIAS, security=claim)
    queue = outgoing(world)
    queue.deliver_locally()
    world.run()
    handle = world.reader()
    request = handle.receive(0)
    found = world.finish(request.completion)
    header = security_of(parse(found.packet))
    assert header is not None
    assert header.authentication_level == 0


def late(world: World, queue: OutgoingQueue) -> None:
    world.clock.advance(20)
    world.manager.tick()
    world.manager.expire(world.manager.monotonic())


def purged(world: World, queue: OutgoingQueue) -> None:
    world.manager.purge(queue)


@pytest.mark.parametrize("gone", [late, purged])
def test_what_left_while_it_was_read_from_the_disk_does_not_come_home(
    gone: Callable[[World, OutgoingQueue], None],
) -> None:
    """It is a dead letter already: nobody gets it as well."""
    world = World()
    world.create()
    world.send(b"x", ALIAS, journal=Journal.DEADLETTER, time_to_be_received=10)
    world.crash()
    queue = outgoing(world)
    assert queue.deliver_locally()
    gone(world, queue)
    world.run()
    world.advance(1)
    assert world.bodies() == []
    assert world.manager.find(r".\system$;DEADLETTER").messages == 1


def test_no_transactional_message_passes_another_one_on_its_way_home() -> None:
    world = World()
    target = world.create(transactional=True, quota_kb=2)
    transaction = world.manager.transactions.begin()
    handle = TransactedQueue(world.sender(ALIAS), transaction)
    for body in (b"1", b"2" * 3_000, b"3"):
        handle.send(Message(body=body))
    world.finish(transaction.commit())
    queue = outgoing(world)
    assert queue.deliver_locally()
    world.run()
    assert world.bodies() == [b"1"]
    world.finish(world.manager.set_properties(target, quota_kb=100))
    assert queue.deliver_locally()
    world.run()
    assert world.bodies() == [b"1", b"2" * 3_000, b"3"]
