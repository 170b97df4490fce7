"""Two-phase reads: Dequeue Message Begin and End, and readers that do not come back."""

from __future__ import annotations

import errno

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol import errors
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.twophase import RemoteReadState
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.support.worlds.queue_manager import World, body

ADMIN = r"DIRECT=OS:HOST\private$\admin"


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def begin(world: World, reader: OpenQueue, timeout: int | None = 0) -> int:
    """Begin a read that finds something; the lookup id."""
    return int(world.finish(reader.begin(timeout).completion).lookup_id)


@pytest.mark.rule("DM-116", "DM-120", "DM-124", "ST-1")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_message_is_removed_when_its_reader_says_so(world: World, delivery: int) -> None:
    world.send(b"one", delivery=delivery)
    world.send(b"two", delivery=delivery)
    reader = world.reader()
    request = reader.begin(0)
    received = world.finish(request.completion)
    assert body(received) == b"one"
    queue = world.manager.find("orders")
    assert queue.messages == 2
    assert world.receive(peek=True) == b"two"
    world.finish(reader.end(received.lookup_id, delete=True))
    assert queue.messages == 1
    world.crash()
    assert world.bodies() == ([b"two"] if delivery else [])


@pytest.mark.rule("DM-125", "DU-04", "ST-1")
def test_a_message_is_put_back_in_its_place(world: World) -> None:
    for text in (b"one", b"two"):
        world.send(text)
    queue = world.manager.find("orders")
    size = queue.bytes
    waiting = world.reader()
    reader = world.reader()
    key = begin(world, reader)
    late = waiting.lookup(key, Lookup.NEXT, peek=True)
    assert body(world.finish(late)) == b"two"
    reader.end(key, delete=False)
    assert queue.bytes == size == queue.core.used_bytes
    assert world.bodies() == [b"one", b"two"]
    assert world.receive() == b"one"


@pytest.mark.rule("DM-125", "DM-205")
def test_a_message_that_is_put_back_wakes_who_waits(world: World) -> None:
    world.send(b"one")
    reader = world.reader()
    key = begin(world, reader)
    waiting = world.reader().receive(None)
    world.run()
    assert not waiting.completion.done
    reader.end(key, delete=False)
    assert body(world.finish(waiting.completion)) == b"one"


@pytest.mark.rule("DM-122", "DM-018")
@pytest.mark.parametrize("delete", [False, True])
def test_a_read_ends_once_and_by_its_own_reader(world: World, delete: bool) -> None:
    key = world.send(b"one")
    reader, other = world.reader(), world.reader()
    for handle in (reader, other):
        with pytest.raises(errors.TransactionSequence):
            handle.end(key, delete=delete)
    assert begin(world, reader) == key
    with pytest.raises(errors.TransactionSequence):
        other.end(key, delete=delete)
    world.finish(reader.end(key, delete=delete))
    with pytest.raises(errors.TransactionSequence):
        reader.end(key, delete=delete)
    if not delete:
        assert begin(world, other) == key
        with pytest.raises(errors.TransactionSequence):
            reader.end(key, delete=delete)


@pytest.mark.rule("DM-123")
def test_in_a_transaction_the_end_says_nothing(world: World) -> None:
    world.send(b"one")
    reader = world.reader()
    key = begin(world, reader)
    reader.end(key, delete=True, transactional=True).result()
    assert len(reader.two_phase) == 1
    assert world.bodies() == [b"one"]
    world.finish(reader.end(key, delete=True))
    assert world.bodies() == []


@pytest.mark.rule("DM-120", "DM-121", "DM-068")
def test_nothing_is_left_of_a_queue_that_was_deleted(world: World) -> None:
    world.send(b"one")
    reader = world.reader()
    key = begin(world, reader)
    world.finish(world.manager.delete_queue("orders"))
    with pytest.raises(errors.QueueNotAvailable):
        reader.begin(0)
    for transactional in (False, True):
        with pytest.raises(errors.QueueNotAvailable):
            reader.end(key, delete=True, transactional=transactional)
    assert len(reader.two_phase) == 0
    reader.close()
    world.run()
    assert world.manager.ledger.bytes == 0


@pytest.mark.rule("DM-126", "DM-091", "ST-1")
def test_what_a_reader_held_goes_back_when_it_dies(world: World) -> None:
    for text in (b"one", b"two", b"three"):
        world.send(text)
    reader = world.reader()
    keys = [begin(world, reader), begin(world, reader)]
    world.finish(reader.end(keys[0], delete=True))
    waiting = reader.begin(None)
    assert body(world.finish(waiting.completion)) == b"three"
    reader.close()
    world.run()
    assert world.bodies() == [b"two", b"three"]
    assert world.receive() == b"two"


@pytest.mark.rule("DM-018", "DM-126", "ST-1")
def test_a_crash_puts_everything_back(world: World) -> None:
    for text in (b"one", b"two"):
        world.send(text)
    begin(world, world.reader())
    world.crash()
    assert [world.receive(), world.receive()] == [b"one", b"two"]


@pytest.mark.rule("DM-124", "DM-093", "ST-1")
@pytest.mark.parametrize("delete", [False, True])
def test_a_message_that_was_purged_meanwhile_goes_in_any_case(world: World, delete: bool) -> None:
    world.send(b"one")
    reader = world.reader()
    key = begin(world, reader)
    assert world.finish(world.reader().purge()) == 0
    world.send(b"two")
    world.finish(reader.end(key, delete=delete))
    world.run()
    assert world.bodies() == [b"two"]
    world.crash()
    assert world.bodies() == [b"two"]


@pytest.mark.rule("DM-124", "DM-018", "DM-203", "ST-1", "DU-03")
@pytest.mark.parametrize(
    ("purged", "delete", "classes"),
    [
        (False, True, [0x4000]),
        (True, True, [0xC001]),
        (True, False, [0xC001]),
        (False, False, []),
    ],
)
def test_the_sender_is_told_how_a_read_ended(
    world: World, purged: bool, delete: bool, classes: list[int]
) -> None:
    world.create("admin")
    world.send(b"one", admin_queue=parse_format_name(ADMIN), acknowledge=Acknowledge(14))
    reader = world.reader()
    key = begin(world, reader)
    if purged:
        world.finish(reader.purge())
    ended = reader.end(key, delete=delete)
    while not ended.done:
        world.writer.submit()
        world.writer.complete_one()
    if not delete:
        world.run()
    world.crash()  # the acknowledgment is in the commit of the removal, not in a later one
    answers = []
    while world.manager.find("admin").messages:
        received = world.finish(world.reader("admin").receive(0).completion)
        answers.append(Message.from_packet(received.packet).message_class)
    assert answers == classes


@pytest.mark.rule("ST-1", "DM-214")
def test_a_message_expires_when_it_is_put_back(world: World) -> None:
    world.send(b"one", time_to_be_received=60)
    reader = world.reader()
    key = begin(world, reader)
    world.advance(120)
    assert world.manager.find("orders").messages == 1
    reader.end(key, delete=False)
    world.run()
    assert world.manager.find("orders").messages == 0


@pytest.mark.rule("DM-131")
def test_a_message_is_locked_by_its_lookup_id(world: World) -> None:
    world.send(b"one")
    key = world.send(b"two")
    reader = world.reader()
    found = world.finish(reader.lookup(key, Lookup.CURRENT, hold=reader.two_phase.begin()))
    assert body(found) == b"two"
    with pytest.raises(errors.MessageLocked):
        world.reader().lookup(key, Lookup.CURRENT)
    with pytest.raises(errors.TransactionUsage):
        world.reader().lookup(key, Lookup.CURRENT, peek=True)
    world.finish(reader.end(key, delete=True))
    assert world.bodies() == [b"one"]


@pytest.mark.rule("DM-132")
def test_nothing_is_peeked_and_held(world: World) -> None:
    key = world.send(b"one")
    reader = world.reader()
    with pytest.raises(errors.InvalidParameter):
        reader.lookup(key, Lookup.CURRENT, peek=True, hold=reader.two_phase.begin())


@pytest.mark.rule("DM-120")
def test_a_cursor_begins_a_read_too(world: World) -> None:
    for text in (b"one", b"two"):
        world.send(text)
    reader = world.reader()
    cursor = reader.open_cursor()
    world.finish(cursor.peek(0).completion)
    world.finish(cursor.peek_next(0).completion)
    found = world.finish(reader.begin(0, cursor=cursor).completion)
    assert body(found) == b"two"
    assert world.bodies() == [b"one", b"two"]
    world.finish(reader.end(found.lookup_id, delete=True))
    assert world.bodies() == [b"one"]


@pytest.mark.rule("DM-120", "DM-113")
def test_a_read_waits_and_times_out(world: World) -> None:
    reader = world.reader()
    late, patient = reader.begin(1000), reader.begin(None)
    world.advance(2)
    with pytest.raises(errors.IOTimeout):
        late.completion.result()
    world.send(b"one")
    key = world.finish(patient.completion).lookup_id
    world.finish(reader.end(key, delete=True))
    assert world.bodies() == []


def test_a_message_whose_packet_comes_too_late_for_its_reader_goes_back() -> None:
    world = World(cache_bytes=0)
    world.create()
    key = world.send(b"one")
    reader = world.reader()
    request = reader.begin(0, cursor=reader.open_cursor())
    assert not request.completion.done
    assert request.cancel()
    world.run()
    assert len(reader.two_phase) == 0
    assert begin(world, world.reader()) == key


@pytest.mark.rule("DM-122")
@pytest.mark.parametrize("delete", [False, True])
def test_a_message_that_cannot_be_read_is_not_ended(delete: bool) -> None:
    world = World(cache_bytes=0)
    world.create()
    key = world.send(b"one")
    world.store.tables.tables[2].clear()
    reader = world.reader()
    request = reader.begin(0, cursor=reader.open_cursor())
    world.run()
    with pytest.raises(errors.MessageStorageFailed):
        request.completion.result()
    with pytest.raises(errors.TransactionSequence):
        reader.end(key, delete=delete)
    with pytest.raises(errors.IOTimeout):
        world.reader().receive(0).completion.result()
    assert world.manager.damage["packet"] == 1


def test_a_removal_that_the_store_does_not_keep_is_repeated(world: World) -> None:
    key = world.send(b"one")
    reader = world.reader()
    begin(world, reader)
    ended = reader.end(key, delete=True)
    world.writer.fail_commit(1, errno.ENOSPC)
    world.run()
    with pytest.raises(errors.MessageStorageFailed):
        ended.result()
    world.advance(5)
    world.crash()
    assert world.bodies() == []


@pytest.mark.rule("DM-148", "DM-149", "DM-219", "ST-9")
def test_a_waiting_read_is_cancelled_by_its_tag_and_owner(world: World) -> None:
    first, second = world.reader(), world.reader()
    mine, other = first.begin(5000, tag=7), first.receive(5000, tag=8)
    theirs = second.receive(5000, tag=7)
    assert not first.cancel(9)
    assert first.cancel(7)
    with pytest.raises(errors.OperationCancelled):
        mine.completion.result()
    assert not first.cancel(7)
    assert second.cancel(7, errors.IOTimeout())
    with pytest.raises(errors.IOTimeout):
        theirs.completion.result()
    untagged = first.receive(None)
    world.send(b"one")
    assert body(other.completion.result()) == b"one"
    assert not first.cancel(8)
    assert not untagged.completion.done


@pytest.mark.rule("ST-10")
def test_remote_read_state(world: World) -> None:
    reads = world.reader().two_phase
    assert reads.state is RemoteReadState.NONE
    with pytest.raises(errors.InvalidHandle):
        reads.ready()
    reads.opened()
    assert reads.state is RemoteReadState.OPENED
    reads.ready()
    assert reads.state is RemoteReadState.READY_FOR_READ


@pytest.mark.rule("DM-118")
@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_of_a_transaction_and_two_phases_the_transaction_wins(world: World, outcome: str) -> None:
    world.create("bills", transactional=True)
    filling = world.manager.transactions.begin()
    TransactedQueue(world.sender("bills"), filling).send(Message(body=b"one"))
    world.finish(filling.commit())
    reader = world.reader("bills")
    transaction = world.manager.transactions.begin()
    received = world.finish(reader.begin(0, transaction=transaction).completion)
    assert body(received) == b"one"
    with pytest.raises(errors.TransactionSequence):
        reader.end(received.lookup_id, delete=True)
    world.finish(reader.end(received.lookup_id, delete=True, transactional=True))
    assert world.bodies("bills") == [b"one"]  # the transaction decides, and nobody else
    reader.close()
    assert world.manager.find("bills").core.positions.available == 0
    world.finish(getattr(transaction, outcome)())
    assert world.bodies("bills") == ([] if outcome == "commit" else [b"one"])


@pytest.mark.rule("DM-120")
@pytest.mark.parametrize("on_disk", [False, True])
def test_reads_are_served_in_the_order_in_which_they_came(world: World, on_disk: bool) -> None:
    for text in (b"one", b"two", b"three"):
        world.send(text)
    if on_disk:
        world.crash()
    requests = [world.reader().begin(0 if not on_disk else None) for _ in range(3)]
    assert all(request.completion.done for request in requests) is not on_disk
    assert [body(world.finish(request.completion)) for request in requests] == [b"one", b"two", b"three"]
    late = world.reader().begin(None)
    assert not late.completion.done
    world.send(b"four")
    assert body(world.finish(late.completion)) == b"four"
