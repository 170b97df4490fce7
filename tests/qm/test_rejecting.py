"""An application rejects a message that it has received in a transaction (MSMQ's MQMarkMessageRejected)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import MessageNotFound, TransactionSequence
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction
from tests.qm.acknowledgments import classes
from tests.support.worlds.queue_manager import World, body

ASKS: dict[str, Any] = {
    "acknowledge": Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE,
    "admin_queue": parse_format_name(r"DIRECT=OS:HOST\private$\admin"),
    "journal": Journal.DEADLETTER,
}
DEAD = r".\system$;deadxact"
JOURNAL = r".\private$\orders;JOURNAL"


@pytest.fixture
def world() -> World:
    world = World()
    world.create("admin")
    world.create(transactional=True, journaling=True)
    filling = world.manager.transactions.begin()
    for text in (b"bad", b"good"):
        TransactedQueue(world.sender(), filling).send(Message(body=text, **ASKS))
    world.finish(filling.commit())
    return world


def rejected(world: World, identifier: UUID | None = None) -> tuple[Transaction, int]:
    """A transaction that has received both messages and rejected the first; its lookup id."""
    transaction = world.manager.transactions.begin("", identifier)
    queue = TransactedQueue(world.reader(), transaction)
    first = world.finish(queue.receive(0).completion)
    assert body(first) == b"bad"
    world.finish(queue.receive(0).completion)
    queue.reject(first.lookup_id)
    return transaction, first.lookup_id


def check(world: World) -> None:
    assert world.bodies() == []
    assert sorted(classes(world)) == [MessageClass.ACK_RECEIVE, MessageClass.NACK_RECEIVE_REJECTED]
    assert world.bodies(DEAD) == [b"bad"]
    assert world.bodies(JOURNAL) == [b"good"]
    dead = world.manager.find(DEAD).core
    reasons: list[int] = []
    dead.peek(dead.positions.keys()[0], lambda message, _: reasons.append(message.reason))
    assert reasons == [MessageClass.NACK_RECEIVE_REJECTED]


@pytest.mark.rule("DM-028", "X-67", "X-73", "X-62", "QB-357", "QB-360")
def test_the_commit_tells_the_sender(world: World) -> None:
    transaction, _ = rejected(world)
    assert classes(world) == []
    world.finish(transaction.commit())
    check(world)
    world.crash()
    world.store.reader.complete()
    assert world.bodies(DEAD) == [b"bad"]
    assert world.bodies() == []


@pytest.mark.rule("DM-034", "X-73")
def test_after_an_abort_it_is_back(world: World) -> None:
    transaction, _ = rejected(world)
    world.finish(transaction.abort())
    assert world.bodies() == [b"bad", b"good"]
    assert classes(world) == []
    assert world.bodies(DEAD) == []


@pytest.mark.rule("DM-028", "REC-05")
def test_a_prepared_transaction_remembers_it(world: World) -> None:
    identifier = UUID(int=5)
    transaction, _ = rejected(world, identifier)
    world.finish(transaction.prepare())
    world.crash()
    world.finish(world.manager.transactions.find(identifier).commit())
    assert world.bodies() == []
    assert sorted(classes(world)) == [MessageClass.ACK_RECEIVE, MessageClass.NACK_RECEIVE_REJECTED]
    assert world.bodies(DEAD) == [b"bad"]


def test_what_it_has_not_received_cannot_be_rejected(world: World) -> None:
    transaction, key = rejected(world)
    queue = TransactedQueue(world.reader(), transaction)
    for wrong in (key + 7, 0, -1, 1 << 64):
        with pytest.raises(MessageNotFound):
            queue.reject(wrong)
    other = TransactedQueue(world.reader(), world.manager.transactions.begin())
    with pytest.raises(MessageNotFound):
        other.reject(key)
    target = world.manager.open("orders;later", Access.MOVE)
    assert target.queue.kind
    world.finish(transaction.commit())
    with pytest.raises(TransactionSequence):
        queue.reject(key)


def test_what_was_purged_meanwhile_cannot_be_rejected(world: World) -> None:
    transaction, _ = rejected(world)
    second = world.manager.find("orders").core.positions.keys()[1]
    world.finish(world.reader().purge())
    queue = TransactedQueue(world.reader(), transaction)
    queue.reject(second)  # it is locked, the purge waits for the transaction
    world.finish(transaction.commit())
    assert sorted(classes(world)) == [MessageClass.NACK_RECEIVE_REJECTED] * 2


@pytest.mark.rule("X-66", "X-70")
def test_a_dead_letter_tells_how_often_it_was_aborted(world: World) -> None:
    for _ in range(2):
        transaction, _ = rejected(world)
        world.finish(transaction.abort())
    transaction, _ = rejected(world)
    world.finish(transaction.commit())
    for name in (DEAD, JOURNAL):
        copy = world.finish(world.reader(name).receive(0, peek=True).completion)
        assert copy.abort_count == 2
    world.crash()
    copy = world.finish(world.reader(DEAD).receive(0, peek=True).completion)
    assert copy.abort_count == 2
