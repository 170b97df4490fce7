"""Transactions of very many messages on a real store: none of them keeps the writer or the loop for long."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from msmq_fast._native.tables import StoreError
from msmq_fast.packet import Message
from msmq_fast.protocol.errors import MessageStorageFailed
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import State, Transaction
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import Table
from msmq_fast.store.store import Store, StoreOptions
from tests.qm.large_transactions import SLICED, taken
from tests.support.clocks import StillClock
from tests.support.worlds.queue_manager import World

COUNT = 25_000


class Disk:
    """A queue manager over LMDB, with a loop of its own."""

    def __init__(self, directory: Path) -> None:
        options = StoreOptions(map_size=1 << 30, force_place=True)
        self.store = Store.open(directory, now_s=1_700_000_000, random=Random(1), options=options)
        settings = QueueManagerSettings(computer_name="HOST")
        self.manager = QueueManager(self.store, settings, StillClock(), Random(2))
        self.store.writer.before_seal.connect(self.manager.before_submit)
        self.manager.start()

    def turn(self) -> None:
        writer, reader = self.store.writer, self.store.reader
        self.manager.before_submit()
        writer.submit()
        select.select([writer.fileno(), reader.fileno()], [], [], 0.001)  # type: ignore[attr-defined]
        writer.complete()
        reader.complete()
        if self.manager.transactions.slicing:
            self.manager.expire(self.manager.monotonic())

    def run(self, done: Completion[Any]) -> None:
        while not done.done:
            self.turn()
        done.result()

    def sent(self, count: int) -> Transaction:
        """A transaction that has sent so many messages."""
        transaction = self.manager.transactions.begin()
        queue = TransactedQueue(self.manager.open("orders", Access.SEND), transaction)
        for _ in range(count):
            queue.send(Message(body=b"x"))
        return transaction

    def received(self, count: int) -> Transaction:
        """A transaction that has received so many messages."""
        transaction = self.manager.transactions.begin()
        queue = TransactedQueue(self.manager.open("orders", Access.RECEIVE), transaction)
        queue.subscribe(lambda _: None, count)
        while transaction.operations.dequeued < count:
            self.turn()
        return transaction


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "store")
    disk.run(disk.manager.create_queue("orders", transactional=True, journaling=True))
    yield disk
    disk.manager.stop()
    disk.store.close()


def test_a_commit_that_moves_very_many_positions_is_short(disk: Disk) -> None:
    """What comes and what goes are told apart at once, also when there is much of both."""
    disk.run(disk.sent(COUNT).commit())
    disk.run(disk.received(COUNT).commit())
    assert disk.manager.find("orders").journal.core.messages == COUNT
    assert disk.store.writer.statistics()["commit_us_max"] < 1_000_000


# ---- slices


class Ticking(StillClock):
    """A millisecond goes by between two looks."""

    def monotonic(self) -> float:
        self.seconds += 0.001
        return self.seconds


@pytest.fixture
def world() -> World:
    world = World(clock=Ticking())
    world.create(transactional=True)
    world.create("plain")
    return world


def begun(world: World, count: int = SLICED, identifier: UUID | None = None) -> Transaction:
    """A transaction that has sent so many messages."""
    transaction = world.manager.transactions.begin("", identifier)
    queue = TransactedQueue(world.sender(), transaction)
    for number in range(count):
        queue.send(Message(body=b"%d" % number))
    return transaction


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


@pytest.mark.rule("DU-05", "DM-030")
def test_a_long_commit_leaves_the_loop_to_others_and_stays_in_one_piece(world: World) -> None:
    done = begun(world).commit()
    others = []
    for _ in range(3):
        world.manager.expire(world.manager.monotonic())
        assert world.manager.transactions.slicing
        sent = world.sender("plain").send(Message(body=b"express"))
        assert sent.done
        assert world.reader("plain").receive(0).completion.done
        others.append(begun(world, 1).commit())
        world.writer.submit()
        assert not world.writer.flying  # the batch is held back
        assert world.manager.find("orders").messages == 0
    world.run()
    for end in (done, *others):
        end.result()
    expected = numbers(0, SLICED) + [b"0"] * 3  # nothing stands between them
    assert world.bodies() == expected
    world.crash()
    assert world.bodies() == expected


@pytest.mark.rule("DU-05", "DM-030")
def test_a_crash_between_two_slices_leaves_nothing(world: World) -> None:
    begun(world).commit()
    world.manager.expire(world.manager.monotonic())
    assert world.manager.transactions.slicing
    world.crash()
    assert world.bodies() == []
    assert world.manager.ledger.bytes == 0
    assert not world.store.tables.tables[Table.CONTENT]


@pytest.mark.rule("DU-05", "DM-030")
@pytest.mark.parametrize("nth", [1, 2, 3, 50, 900])
def test_a_slice_that_fails_takes_everything_back(world: World, nth: int) -> None:
    """And whatever shares the batch: it is told so, as if the disk were full."""
    world.finish(begun(world).commit())
    before = world.bodies()
    commit = taken(world, SLICED).commit()
    world.manager.expire(world.manager.monotonic())
    beside = world.sender("plain").send(Message(body=b"x", delivery=1))
    world.writer.fail_call(nth)
    world.run()
    assert isinstance(commit.exception(), MessageStorageFailed)
    assert isinstance(beside.exception(), MessageStorageFailed)
    assert not world.writer.failed
    core = world.manager.find("orders").core
    assert (core.positions.available, core.messages) == (SLICED, SLICED)
    assert world.manager.ledger.bytes == core.bytes
    assert world.bodies() == before
    world.finish(taken(world, SLICED).commit())
    assert world.bodies() == []
    assert world.manager.ledger.bytes == 0


@pytest.mark.rule("DU-05", "DU-06")
def test_a_prepared_one_stays_prepared_when_a_slice_fails(world: World) -> None:
    identifier = UUID(int=9)
    transaction = begun(world, identifier=identifier)
    world.finish(transaction.prepare())
    reserved = world.manager.find("orders").core.reserved_bytes
    done = transaction.commit()
    world.manager.expire(world.manager.monotonic())
    world.writer.fail_call(40)
    world.run()
    assert isinstance(done.exception(), MessageStorageFailed)
    assert transaction.state is State.PREPARED
    assert world.manager.find("orders").core.reserved_bytes == reserved
    world.finish(transaction.commit())
    assert world.bodies() == numbers(0, SLICED)
    assert world.manager.find("orders").core.reserved_bytes == 0


def test_a_stop_goes_on_with_it_to_its_end(world: World) -> None:
    done = begun(world).commit()
    world.manager.expire(world.manager.monotonic())
    world.manager.stop()
    world.store.close(world.manager.counters())
    done.result()
    world.crash()
    assert world.bodies() == numbers(0, SLICED)


@pytest.mark.parametrize("whole", [False, True])
def test_a_store_that_is_closed_in_the_middle_keeps_nothing(world: World, whole: bool) -> None:
    begun(world).commit()
    world.manager.expire(world.manager.monotonic())
    if whole:
        with pytest.raises(StoreError):
            world.store.close()
    else:
        world.writer.close()
    world.crash()
    assert world.bodies() == []


@pytest.mark.rule("DM-093", "DU-05")
def test_a_purge_between_two_slices_does_not_take_what_comes_behind_it(world: World) -> None:
    """Their places were given before it, and a start judges by its marker as long as that stands."""
    world = World(clock=Ticking(), purge_batch=1)
    world.create(transactional=True)
    world.finish(begun(world, 5).commit())
    done = begun(world).commit()
    world.manager.expire(world.manager.monotonic())
    assert world.manager.transactions.slicing
    world.manager.purge(world.manager.find("orders"))
    while world.manager.transactions.slicing:
        world.manager.expire(world.manager.monotonic())
    world.writer.submit()
    world.writer.complete_one()
    done.result()
    left = world.bodies()
    assert left == numbers(SLICED - len(left), SLICED)
    assert left
    world.crash()
    assert world.bodies() == left
