"""Subscriptions: credit, order, acknowledgments, and what goes back."""

from __future__ import annotations

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from tests.support.worlds.queue_manager import World, body

pytestmark = pytest.mark.smoke


def test_a_subscription_goes_on_after_a_commit_that_failed(world: World) -> None:
    world.send(b"1")
    got: list[bytes] = []
    world.reader().subscribe(lambda batch: got.extend(map(body, batch)), 1, acknowledge=False)
    world.writer.submit()
    world.writer.complete_one(28)
    assert got == []
    world.send(b"2")
    assert got == [b"1"]


@pytest.mark.parametrize("delivery", [0, 1])
def test_a_subscription_gets_batches_within_its_credit(world: World, delivery: int) -> None:
    batches: list[list[bytes]] = []
    subscription = world.reader().subscribe(
        lambda batch: batches.append([body(message) for message in batch]), 5, acknowledge=False
    )
    world.sender().send_many([Message(body=b"%d" % number, delivery=delivery) for number in range(8)])
    world.run()
    assert batches == [[b"0", b"1", b"2", b"3", b"4"]]
    subscription.grant(2)
    world.run()
    assert batches[1:] == [[b"5", b"6"]]
    assert subscription.credit == 0
    assert world.bodies() == [b"7"]
    subscription.close()
    subscription.grant(5)
    world.run()
    assert world.bodies() == [b"7"]


def test_deliveries_of_a_subscription_keep_their_order(world: World) -> None:
    got: list[bytes] = []
    world.reader().subscribe(lambda batch: got.extend(map(body, batch)), 100, acknowledge=False)
    sender = world.sender()
    sender.send(Message(body=b"1", delivery=1))
    world.writer.submit()  # taken by the commit that stores it
    sender.send(Message(body=b"2"))
    world.manager.before_submit()
    assert got == []
    world.run()
    assert got == [b"1", b"2"]


def test_acknowledging_subscription_holds_until_acknowledged(world: World) -> None:
    for number in range(4):
        world.send(b"%d" % number)
    got: list[Received] = []
    reader = world.reader()
    subscription = reader.subscribe(got.extend, 3, acknowledge=True)
    assert [body(message) for message in got] == [b"0", b"1", b"2"]
    keys = [message.lookup_id for message in got]
    done = subscription.ack([keys[1], keys[1], 12345])
    assert not done.done
    assert world.finish(done) == 1
    world.crash()
    assert world.bodies() == [b"0", b"2", b"3"]


def test_what_is_not_acknowledged_goes_back_in_order(world: World) -> None:
    for number in range(4):
        world.send(b"%d" % number, delivery=number % 2)
    got: list[Received] = []
    reader = world.reader()
    subscription = reader.subscribe(got.extend, 4, acknowledge=True)
    assert subscription.release([got[2].lookup_id]) == 1
    assert world.receive() == b"2"
    reader.close()
    assert [world.receive() for _ in range(3)] == [b"0", b"1", b"3"]


def test_a_subscription_that_closes_before_delivery_gives_back(world: World) -> None:
    got: list[Received] = []
    reader = world.reader()
    reader.subscribe(got.extend, 10, acknowledge=False)
    world.sender().send_many([Message(body=b"%d" % number, delivery=1) for number in range(3)])
    world.writer.submit()
    reader.close()
    world.run()
    assert got == []
    assert world.bodies() == [b"0", b"1", b"2"]
    world.crash()
    assert world.bodies() == [b"0", b"1", b"2"]
