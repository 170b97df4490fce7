"""Counters whose numbers never come twice, whatever moment the process dies at (DU-18)."""

from __future__ import annotations

import errno

import pytest

from msmq_fast._native.memorystore import MemoryWriter
from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.ids import MESSAGE_BLOCK, Ordinals
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.services import State
from msmq_fast.store.errors import StoreError
from msmq_fast.store.schema import MetaName
from msmq_fast.store.store import Store
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World


@pytest.fixture
def world() -> World:
    return World()


def _new(used: set[int], number: int) -> int:
    assert number not in used
    return number


@pytest.mark.rule("DU-18", "REC-02")
def test_the_first_blocks_are_durable_when_the_start_returns(world: World) -> None:
    seen: list[int] = []
    for _ in range(3):
        tables = world.writer.crash()
        world.store = Store.in_memory(now_s=WALL, random=world.random, tables=tables)
        world.manager = QueueManager(world.store, world.settings, world.clock, world.random)
        world.manager.start()
        seen.append(world.manager.message_ordinals.take(100))
        assert world.manager.message_ordinals.limit <= world.manager.records.meta(MetaName.MESSAGE_ID_HW)
        assert world.manager.ledger.sequence_limit <= world.manager.records.meta(MetaName.SEQUENCE_HW)
        seen.append(world.manager.message_ordinals.last)
    assert seen == sorted(set(seen))


def test_message_identifiers_of_a_new_store_begin_at_a_random_place() -> None:
    worlds = [World(seed=seed) for seed in range(8)]
    firsts = [world.manager.message_ordinals.take() for world in worlds]
    assert len(set(firsts)) == len(firsts)
    assert max(firsts) > 1 << 28  # of 31 bits; that all are small has a chance of 2 ** -24
    for world, first in zip(worlds, firsts, strict=True):
        world.crash()
        assert first < world.manager.message_ordinals.take() <= first + 2 * MESSAGE_BLOCK


def test_message_identifiers_of_an_older_store_go_on_from_where_they_are(world: World) -> None:
    world.manager.records.set_meta(MetaName.MESSAGE_ID_HW, 5)
    world.writer.complete_all()
    world.crash()
    assert world.manager.message_ordinals.take() == 6


@pytest.mark.rule("DU-18")
def test_an_express_message_and_one_after_a_crash_never_share_an_identifier(world: World) -> None:
    world.create()
    world.manager.message_ordinals.take(MESSAGE_BLOCK // 2)
    used: set[int] = set()
    for _ in range(4):
        sender = world.sender(next(queue.name for queue in world.manager.queues() if queue.kind == 1))
        for _ in range(50):
            try:
                used.add(_new(used, sender.send(Message(delivery=0)).result().message_id))
                world.manager.message_ordinals.take(MESSAGE_BLOCK // 40)
            except errors.InsufficientResources:
                break
        world.crash()
        world.create(f"q{len(used)}")
        assert _new(used, world.manager.message_ordinals.take())
    assert len(used) > 50


@pytest.mark.rule("DU-18")
@pytest.mark.parametrize("wraps", [False, True])
def test_a_number_is_given_when_its_reservation_is_durable(world: World, wraps: bool) -> None:
    counter = Ordinals(world.manager.records, b"counter", block=100, wraps=wraps)
    with pytest.raises(errors.InsufficientResources):
        counter.take()
    world.writer.complete_all()
    assert counter.take(60) == 1
    with pytest.raises(errors.InsufficientResources):
        counter.take(42)
    world.writer.complete_all()
    assert counter.take(42) == 61
    again = Ordinals(world.manager.records, b"counter", block=100, wraps=wraps)
    assert again.last == counter.limit > 102


def test_a_reservation_that_was_not_kept_is_made_again(world: World) -> None:
    counter = Ordinals(world.manager.records, b"counter", block=100)
    counter.reserve()
    world.writer.submit()
    world.writer.complete_one(errno.ENOSPC)
    with pytest.raises(errors.InsufficientResources):
        counter.take()
    world.writer.complete_all()
    assert counter.take() == 1


def test_ordinals_of_messages_start_over_at_one(world: World) -> None:
    world.manager.records.set_meta(b"counter", 0xFFFF_FFF0)
    world.writer.complete_all()
    counter = Ordinals(world.manager.records, b"counter", block=1000, wraps=True)
    counter.reserve()
    world.writer.complete_all()
    assert counter.take(10) == 0xFFFF_FFF1
    assert counter.take(10) == 1


@pytest.mark.rule("DU-18", "DU-10")
def test_numbers_of_queues_are_not_used_again_after_a_crash(world: World) -> None:
    first = world.create("a")
    lost = world.manager.create_queue("b")
    assert not lost.done
    world.crash()
    second = world.create("b")
    assert second.private_number > first.private_number + 1
    assert second.ordinal > first.ordinal + 1


def test_many_queues_can_be_created_in_one_go(world: World) -> None:
    done = [world.manager.create_queue(f"q{number}") for number in range(1500)]
    world.run()
    assert len({completion.result().private_number for completion in done}) == 1500


@pytest.mark.rule("DM-016")
def test_a_start_that_cannot_be_kept_is_an_error(world: World) -> None:
    store = Store.in_memory(now_s=WALL, random=world.random)
    manager = QueueManager(store, world.settings, world.clock, world.random)
    writer = store.writer
    assert isinstance(writer, MemoryWriter)
    writer.fail_commit(1, errno.ENOSPC)
    with pytest.raises(StoreError):
        manager.start()
    assert manager.state is State.INITIALIZING


@pytest.mark.rule("DM-020", "ST-7")
def test_states_of_a_start(world: World) -> None:
    store = Store.in_memory(now_s=WALL, random=world.random)
    manager = QueueManager(store, world.settings, world.clock, world.random)
    seen = [manager.state]
    store.writer.before_seal.connect(lambda: seen.append(manager.state))
    manager.start()
    seen.append(manager.state)
    assert list(dict.fromkeys(seen)) == [State.STOPPED, State.INITIALIZING, State.READY]
