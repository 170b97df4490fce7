"""Abort counts, and what becomes of messages that transactions put back again and again."""

from __future__ import annotations

import errno

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast._native.tables import StoreError
from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.support.worlds.queue_manager import World, body

POISON = ".\\private$\\orders;poison"


def made(after: int = 0, **settings: object) -> World:
    world = World(**settings)
    world.create(transactional=True, poison_after=after)
    return world


def fill(world: World, *texts: bytes, **values: object) -> None:
    transaction = world.manager.transactions.begin("tester")
    queue = TransactedQueue(world.sender(), transaction)
    for text in texts:
        queue.send(Message(body=text, **values))  # type: ignore[arg-type]
    world.finish(transaction.commit())


def abort(world: World, count: int = 1, name: str = "orders") -> list[bytes]:
    """Receive messages and put them back; their bodies."""
    transaction = world.manager.transactions.begin("tester")
    reader = world.reader(name)
    queue = TransactedQueue(reader, transaction)
    taken = [body(world.finish(queue.receive(0).completion)) for _ in range(count)]
    world.finish(transaction.abort())
    reader.close()
    return taken


def first(world: World, name: str = "orders") -> Received:
    reader = world.reader(name)
    received: Received = world.finish(reader.receive(0, peek=True).completion)
    reader.close()
    return received


@pytest.mark.rule("X-70", "X-71", "DM-034")
def test_aborts_are_counted_and_two_phase_reads_are_not() -> None:
    world = made()
    fill(world, b"one")
    for count in range(1, 4):
        abort(world)
        assert first(world).abort_count == count
    reader = world.reader()
    key = world.finish(reader.begin(0).completion).lookup_id
    reader.end(key, delete=False)
    reader.begin(0)
    reader.close()
    assert first(world).abort_count == 3


@pytest.mark.rule("X-72")
@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_the_count_of_a_finished_abort_survives(cache: int) -> None:
    world = made(cache_bytes=cache)
    fill(world, b"one", b"two")
    abort(world, 2)
    abort(world)
    world.run()
    world.crash()
    assert first(world).abort_count == 2
    abort(world)
    world.run()
    world.crash()
    assert first(world).abort_count == 3


@pytest.mark.rule("X-72", "X-70", "DM-146")
def test_a_move_begins_to_count_anew() -> None:
    world = made()
    fill(world, b"one")
    abort(world)
    abort(world)
    sub = ".\\private$\\orders;later"
    world.finish(world.reader().move(first(world).lookup_id, world.manager.open(sub, Access.MOVE)))
    assert (first(world, sub).abort_count, first(world, sub).move_count) == (0, 1)
    abort(world, name=sub)
    assert (first(world, sub).abort_count, first(world, sub).move_count) == (1, 1)
    world.run()
    world.crash()
    assert (first(world, sub).abort_count, first(world, sub).move_count) == (1, 1)


@pytest.mark.rule("X-73", "X-70")
def test_nothing_is_moved_unless_it_was_asked_for() -> None:
    world = made()
    fill(world, b"one")
    for _ in range(20):
        assert abort(world) == [b"one"]
    assert not world.manager.find("orders").subqueues


@pytest.mark.rule("X-73", "X-70", "X-72")
@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_after_so_many_aborts_a_message_goes_to_the_subqueue(cache: int) -> None:
    world = made(3, cache_bytes=cache)
    fill(world, b"bad", b"good")
    for _ in range(2):
        assert abort(world) == [b"bad"]
    waiting = world.reader().receive(None)
    assert body(world.finish(waiting.completion)) == b"bad"  # a plain receive may have it before
    fill(world, b"worse")
    for _ in range(3):
        assert abort(world) == [b"good"]
    world.run()
    assert world.bodies() == [b"worse"]
    poisoned = first(world, POISON)
    assert (body(poisoned), poisoned.abort_count, poisoned.move_count) == (b"good", 0, 1)
    world.crash()
    assert world.bodies() == [b"worse"]
    assert world.bodies(POISON) == [b"good"]
    for _ in range(5):
        assert abort(world, name=POISON) == [b"good"]
    back = world.manager.open("orders", Access.MOVE)
    world.finish(world.reader(POISON).move(poisoned.lookup_id, back))
    assert abort(world) == [b"good"]


@pytest.mark.rule("X-73")
def test_no_reader_sees_a_poison_message_between() -> None:
    world = made(1)
    fill(world, b"bad")
    waiting = world.reader().receive(None, peek=True)
    world.finish(waiting.completion)
    cursor = world.reader().open_cursor()
    world.finish(cursor.peek(0).completion)
    peeking, taking = cursor.peek_next(None), world.reader().receive(None)
    if not taking.completion.done:
        world.run()
    assert body(taking.completion.result()) == b"bad"
    fill(world, b"bad")
    assert body(world.finish(peeking.completion)) == b"bad"
    second = world.reader()
    transaction = world.manager.transactions.begin("tester")
    world.finish(TransactedQueue(world.reader(), transaction).receive(0).completion)
    taking = second.receive(None)
    world.finish(transaction.abort())
    world.run()
    assert not taking.completion.done
    assert world.bodies(POISON) == [b"bad"]


@pytest.mark.rule("DM-033")
@pytest.mark.parametrize("purged", [False, True])
def test_a_poison_message_that_expires_or_is_purged_is_gone(purged: bool) -> None:
    world = made(1)
    fill(world, b"bad", time_to_be_received=60)
    transaction = world.manager.transactions.begin("tester")
    world.finish(TransactedQueue(world.reader(), transaction).receive(0).completion)
    if purged:
        world.finish(world.reader().purge())
    else:
        world.advance(120)
    world.finish(transaction.abort())
    world.run()
    assert world.bodies() == []
    assert not world.manager.find("orders").subqueues


@pytest.mark.rule("DM-093")
def test_a_purge_goes_before_the_move() -> None:
    world = made(1)
    fill(world, b"bad", b"worse")
    transaction = world.manager.transactions.begin("tester")
    reader = world.reader()
    for _ in range(2):
        world.finish(TransactedQueue(reader, transaction).receive(0).completion)
    transaction.abort()
    world.finish(reader.purge())
    assert world.bodies() == []
    assert [queue.messages for queue in world.manager.find("orders").subqueues.values()] in ([], [0])
    assert world.manager.ledger.bytes == 0


@pytest.mark.rule("X-73", "DU-11")
def test_a_full_disk_keeps_the_poison_message_where_it_is() -> None:
    world = made(1)
    fill(world, b"bad")
    transaction = world.manager.transactions.begin("tester")
    world.finish(TransactedQueue(world.reader(), transaction).receive(0).completion)
    transaction.abort()
    world.manager.ledger.serve()
    world.writer.fail_commit(1, errno.ENOSPC)
    world.run()
    world.advance(5)
    assert world.bodies() + (world.bodies(POISON) if world.manager.find("orders").subqueues else []) == [
        b"bad"
    ]
    world.crash()
    assert world.bodies() == [b"bad"]
    abort(world)
    world.run()
    assert world.bodies(POISON) == [b"bad"]


@pytest.mark.rule("X-73")
def test_the_limit_is_a_property_of_the_queue() -> None:
    world = made()
    queue = world.manager.find("orders")
    world.finish(world.manager.set_properties(queue, poison_after=2))
    world.crash()
    assert world.manager.find("orders").properties.poison_after == 2
    fill(world, b"bad")
    abort(world)
    abort(world)
    world.run()
    assert world.bodies(POISON) == [b"bad"]
    world.finish(world.manager.set_properties(world.manager.find("orders"), poison_after=0))
    fill(world, b"good")
    for _ in range(3):
        abort(world)
    assert world.bodies() == [b"good"]
    for wrong in (-1, 0xFFFF, True, "3"):
        with pytest.raises(errors.IllegalPropertyValue):
            world.manager.set_properties(world.manager.find("orders"), poison_after=wrong)


@pytest.mark.rule("X-73")
def test_without_a_subqueue_the_poison_message_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = made(1)
    fill(world, b"bad")

    def none(*_: object) -> None:
        raise errors.InsufficientResources("as many queues as there may be")

    monkeypatch.setattr(world.manager.subqueues, "make", none)
    for _ in range(2):
        assert abort(world) == [b"bad"]
        world.run()
    assert world.bodies() == [b"bad"]


@pytest.mark.rule("X-73", "DM-034")
def test_a_hundred_poison_messages_move_together() -> None:
    world = made(2)
    texts = [b"%d" % number for number in range(100)]
    fill(world, *texts)
    for _ in range(2):
        assert abort(world, 100) == texts
    world.run()
    assert world.bodies(POISON) == texts
    queue = world.manager.find("orders")
    assert queue.core.used_bytes == queue.core.moving_bytes == 0
    assert queue.core.sub_bytes == world.manager.ledger.bytes


def test_poison_whose_record_is_lost_stays_and_the_rest_moves(caplog: pytest.LogCaptureFixture) -> None:
    world = made(1)
    fill(world, b"lost", b"bad")
    core = world.manager.find("orders").core
    lost, _ = core.positions.keys()
    transaction = world.manager.transactions.begin("tester")
    queue = TransactedQueue(world.reader(), transaction)
    for _ in range(2):
        world.finish(queue.receive(0).completion)
    records = world.writer.tables.tables[1]
    del records[next(key for key in records if int.from_bytes(key[-8:], "big") == lost)]
    transaction.abort()
    world.run()
    assert world.bodies(POISON) == [b"bad"]
    assert world.bodies() == [b"lost"]
    assert "1 poison messages were not moved: the store has no record of them" in caplog.text
    assert world.manager.find(POISON).core.expected == 0


def test_poison_that_nobody_can_handle_keeps_no_reader_waiting() -> None:
    """Neither of another queue nor of its own."""
    world = made(2)
    fill(world, b"bad")
    abort(world)
    fill(world, b"good")
    world.create("others")
    transaction = world.manager.transactions.begin("tester")
    queue = TransactedQueue(world.reader(), transaction)
    for _ in range(2):
        world.finish(queue.receive(0).completion)
    waiting = [world.reader(name).receive(None) for name in ("others", "orders")]
    transaction.abort()
    world.sender("others").send(Message(body=b"x"))

    def refuse(ordinal: int, keys: list[int]) -> None:
        raise RuntimeError("nobody handles poison")

    world.manager.ledger.on_poison = refuse
    with pytest.raises(RuntimeError, match="nobody handles poison"):
        world.manager.before_submit()
    world.run()
    assert [one.completion.done for one in waiting] == [True, True]


@pytest.mark.parametrize("error", [MemoryError, StoreError])
def test_counts_that_cannot_be_written_leave_no_unit_open(error: type[Exception]) -> None:
    world = made()
    fill(world, b"x")
    transaction = world.manager.transactions.begin("tester")
    world.finish(TransactedQueue(world.reader(), transaction).receive(0).completion)
    tables = world.writer.tables.tables

    class Broken(dict[bytes, bytes]):
        def get(self, *_: object) -> bytes:
            raise error("it is not to be read")

    kept, tables[1] = tables[1], Broken(tables[1])
    transaction.abort()
    tables[1] = kept
    world.create("others")
    world.send(b"y", "others")
    assert world.bodies("others") == [b"y"]


def test_an_abort_whose_counts_cannot_be_written_is_an_abort() -> None:
    world = made()
    fill(world, b"x")
    transaction = world.manager.transactions.begin("tester")
    world.finish(TransactedQueue(world.reader(), transaction).receive(0).completion)
    world.writer.tables.tables[1].clear()
    world.finish(transaction.abort())
    assert world.manager.find("orders").core.positions.available == 1
    world.create("others")
    world.send(b"y", "others")
    assert world.bodies("others") == [b"y"]
