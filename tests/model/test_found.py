"""What the random runs have found, told in a few lines each."""

from __future__ import annotations

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.support.worlds.queue_manager import World

pytestmark = pytest.mark.smoke

ORDERS = r".\private$\orders"


@pytest.mark.rule("X-54")
@pytest.mark.parametrize("peek", [False, True])
def test_what_expired_before_the_commit_reaches_no_waiting_reader(peek: bool) -> None:
    world = World()
    world.create(ORDERS, transactional=True)
    waiting = world.manager.open(ORDERS, Access.RECEIVE).receive(None, peek=peek)
    transaction = world.manager.transactions.begin("tester")
    sender = TransactedQueue(world.manager.open(ORDERS, Access.SEND), transaction)
    sender.send(Message(body=b"late", time_to_be_received=5, journal=Journal.DEADLETTER))
    world.advance(5)
    world.finish(transaction.commit())
    assert not waiting.completion.done
    assert world.bodies(ORDERS) == []
    assert world.bodies(r".\system$;DEADXACT") == [b"late"]
