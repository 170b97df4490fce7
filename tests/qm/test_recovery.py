"""Messages and numbers after a restart, and bodies that are read back from the store."""

from __future__ import annotations

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import ReadRequest
from tests.qm.peeking import peek
from tests.support.worlds.queue_manager import World, body

pytestmark = pytest.mark.smoke


def test_message_ordinals_are_not_used_twice_over_a_crash(world: World) -> None:
    seen: set[int] = set()
    for _ in range(3):
        for _ in range(5):
            ordinal = Message.from_packet(peek(world, world.send(b"x")).packet).message_id
            assert ordinal not in seen
            seen.add(ordinal)
        world.crash()


@pytest.mark.rule("DM-017", "REC-04", "REC-02")
def test_recoverable_messages_survive_with_their_places_and_accounts(world: World) -> None:
    keys = [world.send(b"%d" % number, priority=number % 8, delivery=number % 3 > 0) for number in range(40)]
    queue = world.manager.find("orders")
    express = sum(queue.core.positions.state(key) > 0 for number, key in enumerate(keys) if number % 3 == 0)
    assert express == 14
    kept = sorted(key for number, key in enumerate(keys) if number % 3)
    world.crash()
    queue = world.manager.find("orders")
    assert queue.core.positions.keys() == kept
    size = sum(len(peek(world, key).packet) for key in kept)
    assert queue.bytes == queue.core.used_bytes == world.manager.ledger.bytes == size
    assert world.send(b"new") & (1 << 56) - 1 > max(key & (1 << 56) - 1 for key in keys)


@pytest.mark.rule("DU-18")
def test_sequences_are_reserved_ahead_of_their_use(world: World) -> None:
    ledger = world.manager.ledger
    ledger.sequence = ledger.sequence_limit - (1 << 19)
    last = world.send(b"x") & (1 << 56) - 1
    assert ledger.sequence_limit > last + (1 << 20)
    world.sender().send(Message(body=b"express"))
    world.crash()
    assert world.send(b"y") & (1 << 56) - 1 > last + 1


def test_without_a_durable_reservation_nothing_is_taken(world: World) -> None:
    ledger = world.manager.ledger
    ledger.sequence = ledger.sequence_limit
    with pytest.raises(errors.InsufficientResources):
        world.sender().send(Message())


@pytest.mark.rule("DM-018", "REC-08")
def test_locked_messages_are_available_after_a_restart_and_overdue_ones_expire(world: World) -> None:
    world.send(b"held")
    world.send(b"short", time_to_be_received=60)
    got: list[Received] = []
    world.reader().subscribe(got.extend, 5, acknowledge=True)
    assert len(got) == 2
    world.clock.advance(61)
    world.crash()
    assert world.receive() == b"held"
    assert world.bodies() == []


def test_bodies_beyond_the_cache_are_read_back_in_order(world: World) -> None:
    world = World(cache_bytes=20_000)
    world.create()
    world.sender().send_many([Message(body=b"%05d" % n + b"x" * 1000, delivery=1) for n in range(3000)])
    world.run()
    ledger = world.manager.ledger
    assert ledger.cached_bytes <= 20_000
    got: list[bytes] = []
    reader = world.reader()
    assert body(world.finish(reader.lookup(0, Lookup.LAST, peek=True)))[:5] == b"02999"
    assert body(world.finish(reader.lookup(0, Lookup.LAST)))[:5] == b"02999"
    reader.subscribe(
        lambda batch: got.extend(body(message)[:5] for message in batch), 1 << 20, acknowledge=False
    )
    for _ in range(100):
        world.run()
    assert got == [b"%05d" % n for n in range(2999)]
    assert ledger.cached_bytes == 0
    assert ledger.bytes == 0


def test_a_read_without_waiting_gets_a_message_that_is_on_disk_only(world: World) -> None:
    world.send(b"1")
    world.crash()
    reader = world.reader()
    requests: list[ReadRequest] = [reader.receive(0), reader.receive(0), reader.receive(0, peek=True)]
    world.run()
    assert body(requests[0].completion.result()) == b"1"
    with pytest.raises(errors.IOTimeout):
        requests[1].completion.result()
    assert body(requests[2].completion.result()) == b"1"


def test_a_damaged_body_is_set_aside_and_reported(world: World) -> None:
    keys = [world.send(b"1"), world.send(b"2")]
    world.crash()
    content = world.store.tables.tables[2]
    del content[min(content)]
    damaged: list[tuple[int, int]] = []
    world.manager.ledger.on_read_error = lambda queue, key, status: damaged.append((queue, key))
    assert world.receive() == b"2"
    assert damaged == [(world.manager.find("orders").ordinal, keys[0])]
