"""Steps of tests with transactions."""

from __future__ import annotations

from typing import Any

from msmq_fast.packet import Message
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction
from tests.support.worlds.queue_manager import World, body


def made(**settings: object) -> World:
    world = World(**settings)
    world.create("orders", transactional=True)
    world.create("bills", transactional=True)
    return world


def begin(world: World) -> Transaction:
    return world.manager.transactions.begin("tester")


def sending(world: World, transaction: Transaction, name: str = "orders") -> TransactedQueue:
    return TransactedQueue(world.sender(name), transaction)


def reading(world: World, transaction: Transaction, name: str = "orders") -> TransactedQueue:
    return TransactedQueue(world.reader(name), transaction)


def send(world: World, transaction: Transaction, *bodies: bytes, name: str = "orders", **values: Any) -> None:
    queue = sending(world, transaction, name)
    for text in bodies:
        queue.send(Message(body=text, **values))


def fill(world: World, *bodies: bytes, name: str = "orders", **values: Any) -> None:
    transaction = begin(world)
    send(world, transaction, *bodies, name=name, **values)
    world.finish(transaction.commit())


def take(world: World, transaction: Transaction, name: str = "orders") -> bytes:
    return body(world.finish(reading(world, transaction, name).receive(0).completion))


def aborts(world: World, name: str = "orders") -> list[int]:
    found: list[int] = []
    core = world.manager.find(name).core
    for key in core.positions.keys():  # noqa: SIM118
        core.peek(key, lambda message, _: found.append(message.abort_count if message else -1))
        world.store.reader.complete()
    return found


def accounts(world: World) -> tuple[int, int, int]:
    """(bytes of the queue manager, of all queues, reserved)."""
    cores = [queue.core for queue in world.manager.queues()]
    return (
        world.manager.ledger.bytes,
        sum(core.used_bytes for core in cores),
        sum(core.reserved_bytes for core in cores),
    )


def _header(world: World, name: str, key: int) -> Any:
    received = world.finish(world.reader(name).lookup(key, Lookup.CURRENT, peek=True))
    message = Message.from_packet(received.packet)
    assert (message.delivery, message.priority) == (1, 0)
    return message.transaction
