"""Outgoing queues that nobody needs any more: when they go, what stays, and what a crash leaves of it."""

from __future__ import annotations

from array import array

import pytest

from msmq_fast._native.outbound import order_ack
from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.security.sid import sid
from msmq_fast.security.token import Token
from msmq_fast.store.schema import Table, outgoing_stream_key
from tests.support.worlds.queue_manager import World

NAME = r"DIRECT=TCP:10.0.0.8\private$\far"
IDLE = 800.0


@pytest.fixture
def world() -> World:
    return World(outgoing_idle=IDLE)


def outgoing(world: World) -> OutgoingQueue:
    found = world.manager.find(NAME)
    assert isinstance(found, OutgoingQueue)
    return found


def send_transactional(world: World) -> None:
    transaction = world.manager.transactions.begin()
    handle = world.manager.open(NAME, Access.SEND)
    TransactedQueue(handle, transaction).send(Message(body=b"x"))
    world.finish(transaction.commit())
    handle.close()


def drain(world: World) -> OutgoingQueue:
    """Everything in the outgoing queue has been transmitted and acknowledged."""
    queue = outgoing(world)
    ledger, sequence = world.manager.ledger, queue.core.sequence
    assert sequence is not None
    owner = ledger.new_owner(transfer=True)
    taken = queue.core.take(9, 1 << 20, owner)
    for message in taken:
        sequence.transmit(message.lookup_id)
    acked = array("Q", (message.lookup_id for message in taken))
    queue.core.acked(acked, owner)
    if sequence.unordered:
        order_ack(ledger, sequence.identifier, sequence.next_number - 1)
    world.run()
    assert queue.core.positions.live == 0
    return queue


def there(world: World) -> bool:
    return any(True for _ in world.manager.outgoing())


def stored(world: World, ordinal: int) -> tuple[bool, bool]:
    """Whether the store has the record of a queue, and the state of its sequence."""
    tables = world.store.tables
    key = outgoing_stream_key(ordinal)
    return (
        tables.get(Table.QUEUE, ordinal.to_bytes(4, "big")) is not None,
        tables.get(Table.SEQUENCE, key) is not None,
    )


def test_a_queue_goes_when_it_has_been_quiet_for_long(world: World) -> None:
    send_transactional(world)
    queue = drain(world)
    assert stored(world, queue.ordinal) == (True, True)
    for _ in range(7):
        world.advance(IDLE / 8)
    assert there(world)
    for _ in range(3):
        world.advance(IDLE / 8)
    assert not there(world)
    assert stored(world, queue.ordinal) == (False, False)
    assert world.manager.ledger.core(queue.ordinal) is None


def test_a_message_in_between_starts_the_time_anew(world: World) -> None:
    for _ in range(4):
        world.send(b"x", NAME, delivery=0)
        drain(world)
        for _ in range(7):
            world.advance(IDLE / 8)
        assert there(world)


@pytest.mark.parametrize("why", ["message", "open", "on hold", "reserved", "never"])
def test_what_is_in_use_stays(why: str) -> None:
    world = World(outgoing_idle=0.0 if why == "never" else IDLE)
    world.send(b"x", NAME)
    queue = outgoing(world) if why == "message" else drain(world)
    if why == "open":
        world.sender(NAME)
    elif why == "on hold":
        world.finish(world.manager.pause(queue))
    elif why == "reserved":
        transaction = world.manager.transactions.begin()
        handle = world.sender(NAME)
        TransactedQueue(handle, transaction).send(Message(body=b"x"))
        handle.close()
    for _ in range(0 if why == "reserved" else 20):  # a transaction does not live as long
        world.advance(IDLE / 8)
    assert outgoing(world) is queue
    if why != "never":
        with pytest.raises(errors.SharingViolation):
            world.manager.delete_queue(NAME)
        assert outgoing(world) is queue


@pytest.mark.rule("QB-112")
def test_the_next_sequence_has_a_greater_identifier(world: World) -> None:
    send_transactional(world)
    queue = drain(world)
    assert queue.core.sequence is not None
    before = queue.core.sequence.identifier
    told: list[OutgoingQueue] = []
    world.manager.outgoing_queues.removed.connect(told.append)
    world.finish(world.manager.delete_queue(NAME))
    assert told == [queue]
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(NAME)
    assert order_ack(world.manager.ledger, before, 1) is None  # a repeated OrderAck is for nobody
    world.run()
    assert stored(world, queue.ordinal) == (False, False)
    world.crash()
    send_transactional(world)
    again = outgoing(world)
    assert again.ordinal != queue.ordinal
    assert again.core.sequence is not None
    assert again.core.sequence.identifier > before
    assert again.core.sequence.first_unordered == (1, 0)


@pytest.mark.rule("DU-09")
@pytest.mark.parametrize("commits", [0, 1, 2])
def test_a_crash_in_the_middle(world: World, commits: int) -> None:
    """Before the first commit the queue is back as it was; behind it, it goes on going."""
    send_transactional(world)
    queue = drain(world)
    assert queue.core.sequence is not None
    before = queue.core.sequence.identifier
    done = world.manager.delete_queue(NAME)
    for _ in range(commits):
        world.manager.before_submit()
        world.writer.complete_all()
        world.manager.expire(world.manager.monotonic())
    assert done.done is bool(commits)
    world.crash()
    assert there(world) is not bool(commits)
    world.run()
    assert stored(world, queue.ordinal) == ((False, False) if commits else (True, True))
    send_transactional(world)
    sequence = outgoing(world).core.sequence
    assert sequence is not None
    assert sequence.identifier > before
    world.crash()
    assert outgoing(world).messages == 1


def test_only_administrators_delete_them(world: World) -> None:
    world.send(b"x", NAME)
    drain(world)
    somebody = Token(sid("S-1-22-1-4000000"), frozenset())
    with pytest.raises(errors.AccessDenied):
        world.manager.delete_queue(NAME, token=somebody)
    assert there(world)
    world.finish(world.manager.delete_queue(NAME))
    assert not there(world)
