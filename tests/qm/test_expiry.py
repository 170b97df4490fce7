"""Messages whose time runs out, and steps of the wall clock."""

from __future__ import annotations

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from tests.support.worlds.queue_manager import World

pytestmark = pytest.mark.smoke


@pytest.mark.rule("DM-098", "DM-105")
@pytest.mark.parametrize(("age", "result"), [(10, 0), (11, 3)])
def test_a_message_that_took_too_long_is_not_taken(world: World, age: int, result: int) -> None:
    sender = world.sender()
    packet = sender.stamp(Message(body=b"x", time_to_reach_queue=10)).to_packet()
    world.clock.advance(age)
    world.manager.tick()
    assert sender.send_packets([packet]).result()[0] == [result]
    world.manager.find("orders").core.quota_bytes = 0
    full = 1 if result == 0 else result  # the time counts before the quota
    assert sender.send_packets([packet]).result()[0] == [full]


@pytest.mark.rule("DM-102", "X-04")
@pytest.mark.parametrize("delivery", [0, 1])
def test_time_to_be_received_counts_from_the_sending(world: World, delivery: int) -> None:
    sender = world.sender()
    packet = sender.stamp(Message(body=b"x", delivery=delivery, time_to_be_received=10)).to_packet()
    world.clock.advance(4)
    world.manager.tick()
    world.finish(sender.send_packets([packet]))
    world.send(b"for ever")
    world.advance(5)
    assert world.bodies() == [b"x", b"for ever"]
    world.advance(1)
    assert world.bodies() == [b"for ever"]
    world.run()
    assert (len(world.store.tables.tables[1]), world.manager.find("orders").core.expired_total) == (1, 1)


@pytest.mark.rule("DM-102", "X-04")
def test_time_to_be_received_of_zero_expires_at_once(world: World) -> None:
    world.send(b"x", time_to_be_received=0)
    world.advance(0)
    assert world.bodies() == []


def test_time_to_reach_queue_counts_in_outgoing_queues_only(world: World) -> None:
    outgoing = r"DIRECT=OS:other\private$\q"
    for name in ("orders", outgoing):
        world.send(b"x", name, time_to_reach_queue=10)
    world.advance(10)
    assert (world.bodies(), world.bodies(outgoing)) == ([b"x"], [])


def test_a_step_of_the_wall_clock_is_noticed(world: World) -> None:
    world.send(b"x", time_to_be_received=3600)
    world.clock.wall += 3_600_000_000
    world.advance(30)
    assert world.bodies() == []
    world.send(b"y", time_to_be_received=100)
    world.clock.wall -= 86_400_000_000
    world.advance(50)
    world.advance(90)
    assert world.bodies() == [b"y"]


@pytest.mark.rule("DM-125", "X-56")
def test_a_locked_message_expires_when_it_is_released(world: World) -> None:
    world.send(b"x", time_to_be_received=10)
    got: list[Received] = []
    reader = world.reader()
    subscription = reader.subscribe(got.extend, 1, acknowledge=True)
    world.advance(20)
    assert world.manager.find("orders").messages == 1
    subscription.release([got[0].lookup_id])
    world.run()
    assert world.manager.find("orders").messages == 0
    world.crash()
    assert world.bodies() == []
