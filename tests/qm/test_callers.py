"""The callers in the event feed: who received, removed or moved a message, at a bounded cost."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from msmq_fast._native.operations import withdraw
from msmq_fast.packet import Message
from msmq_fast.qm.access import Access
from msmq_fast.qm.feed import callers
from msmq_fast.qm.feed.callers import FeedCaller
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.operator.removal import remove
from msmq_fast.qm.queues.browse import Selection, Stretch
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.security.sid import ADMINISTRATORS
from msmq_fast.security.sid import sid as make_sid
from msmq_fast.security.token import Token
from msmq_fast.store.decode import EventKind, FeedEvent
from tests.support.worlds.queue_manager import World


def reader(number: int = 1, program: str = "reader") -> Token:
    sid = make_sid(f"S-1-5-21-1-2-3-{1000 + number}")
    return Token(
        sid, frozenset((sid, ADMINISTRATORS)), f"user{number}", address=f"10.0.0.{number}", program=program
    )


def last_event(world: World, kind: EventKind) -> FeedEvent:
    world.finish(world.manager.records.unit(lambda: None))  # events of express messages wait for a commit
    return [event for event in world.manager.events.feed.read(0) if event.kind == kind][-1]


def caller_of(world: World, kind: EventKind) -> FeedCaller | None:
    return world.manager.events.callers.find(last_event(world, kind).caller)


def expected(token: Token) -> FeedCaller:
    return FeedCaller(str(token.user), token.name, token.address, token.program)


def open_for(world: World, token: Token, name: str = "orders") -> OpenQueue:
    return world.manager.open(name, Access.RECEIVE, token=token)


@pytest.fixture
def world() -> World:
    made = World()
    for queue in (made.create(), made.create("sure", transactional=True)):
        made.finish(made.manager.set_security(queue, replace(queue.security, dacl=None)))
    return made


def readers_of(world: World) -> int:
    return len([*world.manager.records.metas(b"feed_caller:")])


@pytest.mark.parametrize("delivery", [0, 1])
def test_each_way_to_receive_names_its_reader(world: World, delivery: int) -> None:
    token = reader()
    handle = open_for(world, token)
    keys = [world.send(b"x", delivery=delivery) for _ in range(6)]

    world.finish(handle.receive(0).completion)
    assert caller_of(world, EventKind.RECEIVED) == expected(token)

    world.finish(handle.lookup(keys[1], Lookup.CURRENT))
    assert last_event(world, EventKind.RECEIVED).lookup_id == keys[1]
    assert caller_of(world, EventKind.RECEIVED) == expected(token)

    request = handle.begin(0)
    world.run()
    world.finish(handle.end(request.completion.result().lookup_id, delete=True))
    assert caller_of(world, EventKind.RECEIVED) == expected(token)

    got: list[int] = []
    subscription = handle.subscribe(lambda some: got.extend(m.lookup_id for m in some), 1, acknowledge=True)
    world.run()
    world.finish(subscription.ack(got))
    assert last_event(world, EventKind.RECEIVED).lookup_id == got[-1]
    assert caller_of(world, EventKind.RECEIVED) == expected(token)
    handle.unsubscribe(subscription)

    stream = handle.subscribe(lambda some: got.extend(m.lookup_id for m in some), 1, acknowledge=False)
    world.run()
    assert last_event(world, EventKind.RECEIVED).lookup_id == got[-1]
    assert caller_of(world, EventKind.RECEIVED) == expected(token)
    handle.unsubscribe(stream)
    assert readers_of(world) == 1


def test_a_transaction_names_its_reader_and_a_rejection_too(world: World) -> None:
    token = reader()
    handle = open_for(world, token, name="sure")
    sending = world.manager.transactions.begin()
    target = TransactedQueue(world.manager.open("sure", Access.SEND), sending)
    target.send(Message(body=b"1"))
    target.send(Message(body=b"2"))
    world.finish(sending.commit())
    transaction = world.manager.transactions.begin()
    inside = TransactedQueue(handle, transaction)
    first = world.finish(inside.receive(0).completion)
    world.finish(inside.receive(0).completion)
    inside.reject(first.lookup_id)
    world.finish(transaction.commit())
    assert caller_of(world, EventKind.RECEIVED) == expected(token)
    assert caller_of(world, EventKind.REMOVED) == expected(token)


def test_a_move_keeps_the_origin_and_names_the_caller(world: World) -> None:
    token = reader()
    handle = open_for(world, token)
    key = world.send(b"x", delivery=1)
    world.finish(handle.move(key, world.manager.open("orders;later", Access.MOVE)))
    event = last_event(world, EventKind.MOVED)
    assert event.origin == world.manager.find("orders").ordinal
    assert caller_of(world, EventKind.MOVED) == expected(token)


def test_an_operator_that_takes_messages_out_is_named(world: World) -> None:
    number = world.manager.events.callers.number(reader(4))
    for kind in (EventKind.REMOVED, EventKind.MOVED):
        key = world.send(b"x", delivery=1)
        with world.store.unit():
            assert withdraw(world.manager.find("orders").core, [key], kind, number) == 1
        event = last_event(world, kind)
        assert (event.origin, event.caller) == (0, number)


@pytest.mark.parametrize("delivery", [0, 1])
def test_an_operator_that_removes_selected_messages_is_named(world: World, delivery: int) -> None:
    number = world.manager.events.callers.number(reader(4))
    key = world.send(b"x", delivery=delivery)
    stretch = Stretch(Selection(lookup_ids=(key,)))
    done = remove(world.store, world.manager.find("orders"), stretch, dry_run=False, caller=number)
    assert world.finish(done).count == 1
    assert last_event(world, EventKind.PURGED).caller == number


def test_what_the_queue_manager_does_itself_has_no_caller(world: World) -> None:
    handle = open_for(world, reader())
    world.send(b"x", delivery=1)
    world.finish(handle.receive(0).completion)
    key = world.send(b"x", delivery=1)
    with world.store.unit():
        withdraw(world.manager.find("orders").core, [key], EventKind.REMOVED)
    assert last_event(world, EventKind.REMOVED).caller == 0
    core = world.manager.find("orders").core
    (message,) = core.take(1, 1 << 20, 77) if world.send(b"y", delivery=1) else ()
    core.acked(array("Q", [message.lookup_id]), 77)
    assert last_event(world, EventKind.RECEIVED).caller == 0


def test_callers_survive_a_crash_and_numbers_are_not_given_again(world: World) -> None:
    first = world.manager.events.callers.number(reader(1))
    assert world.manager.events.callers.number(reader(1)) == first
    world.run()
    world.crash()
    assert world.manager.events.callers.find(first) == expected(reader(1))
    assert world.manager.events.callers.number(reader(2)) > first


def test_the_callers_are_bounded_and_the_oldest_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MOST", 3)
    number = world.manager.events.callers.number
    numbers = [number(reader(index)) for index in range(1, 4)]
    number(reader(1))  # used again: the second is the oldest now
    numbers.append(number(reader(4)))
    world.run()
    found = [world.manager.events.callers.find(each) is not None for each in numbers]
    assert found == [True, False, True, True]
    assert readers_of(world) == 3
    assert number(reader(2)) > numbers[-1]


def test_without_a_feed_nothing_is_recorded() -> None:
    world = World(feed=False)
    assert world.manager.events.callers.number(reader()) == 0
    assert readers_of(world) == 0
