"""Transactions of more messages than one slice commits."""

from __future__ import annotations

from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction
from tests.support.worlds.queue_manager import World

SLICED = 3_000  # operations, more than are done in one go


def taken(world: World, count: int) -> Transaction:
    transaction = world.manager.transactions.begin()
    TransactedQueue(world.reader(), transaction).subscribe(lambda _: None, count)
    while transaction.operations.dequeued < count:
        world.run()
    return transaction
