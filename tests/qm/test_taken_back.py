"""Work that raises in the middle: what it had done before is taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.reading.readers import Readers, Subscription
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.store.schema import Table
from tests.qm.large_transactions import SLICED, taken
from tests.support.worlds.queue_manager import World

LARGE = 4_000  # bytes: of so many messages not all stay in memory

ADMIN = parse_format_name(r"DIRECT=OS:HOST\private$\admin")


def test_a_queue_whose_creation_raises_is_not_there_after_a_restart_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The journal's number is the second one: without a reservation its creation raises."""
    world = World()
    take, taken = world.manager.registry.new_ordinal, [0]

    def scarce() -> int:
        taken[0] += 1
        if taken[0] % 2 == 0:
            raise MemoryError("no number is reserved")
        return take()

    monkeypatch.setattr(world.manager.registry, "new_ordinal", scarce)
    with pytest.raises(MemoryError):
        world.manager.create_queue("orders")
    monkeypatch.undo()
    world.run()
    assert [queue.name for queue in world.manager.queues() if "orders" in queue.name] == []
    world.crash()
    assert [queue.name for queue in world.manager.queues() if "orders" in queue.name] == []
    world.create("orders")
    world.crash()
    named = [queue for queue in world.manager.queues() if "orders" in queue.name]
    assert sorted(queue.kind.name for queue in named) == ["JOURNAL", "PRIVATE"]


def test_a_receive_that_raises_leaves_every_message_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(faults=Faults)
    world.create("admin")
    world.create()
    asking = {"acknowledge": Acknowledge.POSITIVE_RECEIVE, "admin_queue": ADMIN}
    for number in range(3):
        world.send(b"%d" % number, **asking)
    core, calls = world.manager.find("orders").core, [0]
    decide = world.manager.ack_policy.__call__

    def on_removed(*arguments: object) -> object:
        calls[0] += 1
        if calls[0] == 3:
            raise RuntimeError("the third one")
        return decide(*arguments)  # type: ignore[arg-type]

    world.manager.ledger.on_removed = on_removed  # type: ignore[assignment]
    delivered: list[object] = []
    with pytest.raises(RuntimeError):
        core.receive_bulk(3, 1 << 20, lambda messages, _: delivered.extend(messages))
    world.manager.ledger.on_removed = world.manager.ack_policy
    world.run()
    assert delivered == []
    assert world.bodies() == [b"0", b"1", b"2"]
    assert world.bodies("admin") == []
    world.crash()
    assert world.bodies() == [b"0", b"1", b"2"]
    assert world.bodies("admin") == []
    assert [world.receive() for _ in range(3)] == [b"0", b"1", b"2"]


def test_purged_messages_whose_removal_raises_once_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer that was stopped twice damages the wheel; bytes subtracted twice close the intake for ever."""
    world = World(faults=Faults)
    world.create("admin")
    world.create()
    asking = {"acknowledge": Acknowledge.NEGATIVE_RECEIVE, "admin_queue": ADMIN}
    for number in range(4):
        world.send(b"%d" % number, delivery=0, time_to_be_received=30, journal=Journal.DEADLETTER, **asking)
    decide, calls = world.manager.ack_policy.__call__, [0]

    def on_removed(*arguments: object) -> object:
        calls[0] += 1
        if calls[0] in (2, 3):
            raise RuntimeError("twice at the same message")
        return decide(*arguments)  # type: ignore[arg-type]

    world.manager.ledger.on_removed = on_removed  # type: ignore[assignment]
    world.manager.purge(world.manager.find("orders"))
    for _ in range(8):
        world.advance(2)
    ledger = world.manager.ledger
    assert world.manager.find("orders").messages == 0
    in_queues = sum(queue.core.bytes for queue in world.manager.queues())
    assert ledger.express_bytes <= in_queues < 1 << 20
    assert len(ledger.wheel) == 0
    world.send(b"later", time_to_be_received=5)
    world.advance(6)
    assert world.bodies() == []


class Dropping:
    """A queue that takes three messages for a delivery, of which one is dropped before it is durable."""

    def __init__(self) -> None:
        self.deliver: list[Callable[[], None]] = []
        self.waiting: list[Subscription] = []

    def receive_bulk(self, count: int, size: int, sink: Sink, *_: object) -> int:
        self.deliver.append(lambda: sink([object()] * (count - 1), 0))
        return count

    def wait(self, subscription: Subscription) -> None:
        self.waiting.append(subscription)


Sink = Callable[[list[object], int], None]


def test_credit_comes_back_for_a_message_that_was_dropped_as_damaged() -> None:
    queue, got = Dropping(), []  # type: ignore[var-annotated]
    subscription = Subscription(cast(Readers, queue), got.extend, 3, 1, False)
    assert subscription.serve(cast(QueueCore, queue), False)
    assert subscription.credit == 0
    queue.deliver.pop()()
    assert (len(got), subscription.credit) == (2, 1)
    assert queue.waiting == [subscription]


def test_damage_ends_a_transaction_and_not_the_server() -> None:
    """Of a commit in slices, as of any other: what a journal copy needs cannot be read any more."""
    world = World(faults=Faults)
    world.create(transactional=True, journaling=True)
    world.create("other")
    sending = world.manager.transactions.begin()
    handle = TransactedQueue(world.sender(), sending)
    for _ in range(SLICED):
        handle.send(Message(body=bytes(LARGE)))
    world.finish(sending.commit())
    transaction = taken(world, SLICED)  # the later ones leave the memory
    contents = world.writer.tables.tables[Table.CONTENT]
    contents.pop(sorted(contents)[-5])
    done = transaction.commit()
    world.run()
    assert done.exception() is not None
    assert not world.writer.failed
    assert world.manager.damage["packet"] >= 1
    world.send(b"x", "other")
    assert world.receive("other") == b"x"


def test_a_message_that_cannot_be_given_back_waits_once_and_comes_back_once() -> None:
    world = World(faults=Faults)
    core = world.create().core
    world.send(b"x", delivery=0)
    ledger, got = world.manager.ledger, []  # type: ignore[var-annotated]
    core.receive_bulk(1, 1 << 20, lambda messages, _: got.extend(messages))
    ledger.express_low = ledger.express_mid = 0

    def short(level: int) -> None:
        if level:
            raise RuntimeError("memory is short")

    ledger.on_memory = short
    with pytest.raises(RuntimeError):
        core.requeue(got)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            ledger.return_again()
        assert (ledger.returned, core.messages) == (1, 0)
    ledger.on_memory = None
    ledger.return_again()
    assert (ledger.returned, world.bodies()) == (0, [b"x"])


def test_messages_that_a_closed_store_does_not_take_back_wait_all_of_them() -> None:
    world = World(faults=Faults)
    core = world.create().core
    for number in range(3):
        world.send(b"%d" % number, delivery=0)
    got: list[Received] = []
    core.receive_bulk(3, 1 << 20, lambda messages, _: got.extend(messages))
    world.writer.close()
    with pytest.raises(ExceptionGroup):
        core.requeue(got)
    assert world.manager.ledger.returned == 3
