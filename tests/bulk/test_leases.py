"""Leases: limits and errors, full disks, damage, deleted queues, what a receive does, bounded stretches."""

from __future__ import annotations

import errno

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MessageStorageFailed,
    MSMQError,
    ServiceNotAvailable,
    SharingViolation,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.bulk import leases as module
from msmq_fast.qm.bulk.leaseholder import CHUNK
from msmq_fast.qm.bulk.leases import Leased, LeaseLost, Leases, Settled
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.store.decode import EventKind
from msmq_fast.store.schema import MetaName, Table
from tests.support.worlds.queue_manager import World, body

EVERYTHING = 1 << 40


def filled(count: int, **properties: object) -> tuple[World, Queue, Leases]:
    world = World()
    queue = world.create(**properties)
    fill(world, queue, count)
    return world, queue, world.manager.leases


def fill(world: World, queue: Queue, count: int, **values: object) -> None:
    values.setdefault("delivery", 1)
    first = world.manager.message_ordinals.take(count) if count else 0
    packets = []
    for number in range(count):
        message = Message(body=b"%d" % number, **values)  # type: ignore[arg-type]
        message.source_machine, message.message_id = world.manager.guid, first + number
        message.sent_time = world.manager.ledger.now_s
        packets.append(message.to_packet())
    queue.core.enqueue_packets(packets)
    world.run()


def rows_of(world: World) -> list[bytes]:
    """Keys of the records of leases."""
    return [key for key in world.writer.tables.tables[Table.META] if key.startswith(MetaName.LEASE)]


def failed(world: World, nth: int = 1) -> None:
    world.writer.fail_commit(nth, errno.ENOSPC)


# ---- limits and errors


@pytest.mark.parametrize(
    ("rows", "size", "seconds"),
    [(0, 1, 10), (1, 0, 10), (-1, 1, 10), (1, 1, 0.5), (1, 1, 86_401), (1, 1, float("nan"))],
)
def test_impossible_leases_are_refused(rows: int, size: int, seconds: float) -> None:
    world, queue, leases = filled(1)
    with pytest.raises(ValueError, match="lease"):
        leases.lease("spark", queue, rows, size, seconds)
    assert queue.core.positions.available == 1
    assert rows_of(world) == []


@pytest.mark.parametrize("name", ["", "a" * 65, "a/b", "ä", "-a", "a\0", "a b", "a\n"])
def test_impossible_names_are_refused(name: str) -> None:
    _, queue, leases = filled(1)
    for call in (
        lambda: leases.lease(name, queue, 1, 1),
        lambda: leases.rows(name, queue, 1, 1),
        lambda: leases.ack(name, queue, 1),
        lambda: leases.release(name, queue, 1),
    ):
        with pytest.raises(ValueError, match="is not a valid subscription name"):
            call()


def test_rows_and_bytes_limit_a_lease_but_one_message_always_comes() -> None:
    world, queue, leases = filled(10)
    size = queue.bytes // 10
    assert world.finish(leases.lease("spark", queue, 3, EVERYTHING)) == Leased(1, 4)
    assert world.finish(leases.lease("spark", queue, 10, 2 * size + size // 2)) == Leased(4, 6)
    assert world.finish(leases.lease("spark", queue, 10, 1)) == Leased(6, 7)
    assert world.finish(leases.lease("other", queue, 2, EVERYTHING)) == Leased(1, 3)
    assert world.finish(leases.lease("spark", queue, 10, EVERYTHING)) == Leased(7, 9)
    assert world.finish(leases.lease("spark", queue, 10, EVERYTHING)) == Leased(9, 9)
    assert sorted(leases.holders().values()) == ["other", "spark"]


def test_numbers_that_were_never_given_are_lost() -> None:
    world, queue, leases = filled(2)
    with pytest.raises(LeaseLost, match="has no lease on"):
        leases.rows("spark", queue, 1, 2)
    assert world.finish(leases.ack("spark", queue, 1)) == Settled(0, 0)
    with pytest.raises(LeaseLost, match="has never leased"):
        world.finish(leases.ack("spark", queue, 2))
    assert world.finish(leases.release("spark", queue, 5)) == Settled(0, 0)
    world.finish(leases.lease("spark", queue, 1, 1))
    with pytest.raises(LeaseLost, match="up to 1; 2 does not exist"):
        leases.rows("spark", queue, 1, 3)
    with pytest.raises(LeaseLost, match="up to 1; 2 does not exist"):
        world.finish(leases.ack("spark", queue, 3))
    for start, stop in ((0, 1), (2, 1), (-1, 0)):
        with pytest.raises(ValueError, match="not a range"):
            leases.rows("spark", queue, start, stop)
    assert [list(part) for part in leases.rows("spark", queue, 2, 2)] == [[], []]
    world.finish(leases.ack("spark", queue, 2))
    with pytest.raises(LeaseLost, match="acknowledged"):
        leases.rows("spark", queue, 1, 2)


def test_outgoing_queues_cannot_be_leased_and_a_stopped_manager_leases_nothing() -> None:
    world = World()
    away = r"DIRECT=TCP:10.0.0.9\private$\there"
    world.finish(world.manager.open(away, Access.SEND).send(Message(body=b"x", delivery=1)))
    (outgoing,) = world.manager.outgoing()
    with pytest.raises(UnsupportedFormatNameOperation):
        world.manager.leases.lease("spark", outgoing, 1, 1)
    queue = world.create()
    world.manager.stop()
    with pytest.raises(ServiceNotAvailable):
        world.manager.leases.lease("spark", queue, 1, 1)


def test_a_queue_that_one_receiver_has_for_itself_is_not_leased() -> None:
    world, queue, leases = filled(1)
    alone = world.reader(share=Share.DENY_RECEIVE)
    with pytest.raises(SharingViolation):
        leases.lease("spark", queue, 1, 1)
    alone.close()
    assert world.finish(leases.lease("spark", queue, 1, 1 << 100)) == Leased(1, 2)


def test_what_is_leased_and_who_leases_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 5)
    monkeypatch.setattr(module, "MOST_HOLDERS", 2)
    world, queue, leases = filled(10)
    assert world.finish(leases.lease("a", queue, 3, EVERYTHING)) == Leased(1, 4)
    assert world.finish(leases.lease("b", queue, 9, EVERYTHING)) == Leased(1, 3)
    with pytest.raises(InsufficientResources, match="5 messages"):
        world.finish(leases.lease("a", queue, 1, EVERYTHING))
    with pytest.raises(InsufficientResources, match="2 leases"):
        leases.lease("c", queue, 1, EVERYTHING)
    world.finish(leases.ack("b", queue, 3))
    assert world.finish(leases.lease("c", queue, 1, EVERYTHING)) == Leased(3, 4), "b had nothing any more"
    world.crash()
    assert {holding.subscription for holding in world.manager.leases.listed()} == {"a", "c"}


def test_numbers_of_who_was_forgotten_are_given_to_no_other_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job comes back and acknowledges what its checkpoint says: nothing that nobody has read goes."""
    monkeypatch.setattr(module, "MOST_HOLDERS", 1)
    world, queue, leases = filled(10)
    assert world.finish(leases.lease("job", queue, 10, EVERYTHING)) == Leased(1, 11)
    world.finish(leases.ack("job", queue, 11))
    other = world.create("other")
    fill(world, other, 1)
    assert world.finish(leases.lease("else", other, 1, EVERYTHING)) == Leased(11, 12)
    assert world.finish(leases.ack("job", queue, 11)) == Settled(0, 0)
    with pytest.raises(LeaseLost):
        world.finish(leases.ack("job", queue, 12))
    world.finish(leases.ack("else", other, 12))
    world.crash()
    leases, queue = world.manager.leases, world.manager.find("orders")
    fill(world, queue, 10)
    assert world.finish(leases.lease("job", queue, 10, EVERYTHING)) == Leased(12, 22)
    assert world.finish(leases.ack("job", queue, 11)) == Settled(0, 0)
    assert queue.messages == 10


# ---- as a receive


def test_an_acknowledgment_does_what_a_receive_does() -> None:
    world = World()
    queue = world.create(journaling=True)
    world.create("answers")
    world.send(
        b"one",
        acknowledge=Acknowledge.POSITIVE_RECEIVE,
        admin_queue=parse_format_name(r"DIRECT=OS:HOST\private$\answers"),
    )
    before = world.manager.events.feed.bounds()[1]
    leases = world.manager.leases
    world.finish(leases.lease("spark", queue, 1, 1))
    assert world.bodies("answers") == []
    assert world.finish(leases.ack("spark", queue, 2)) == Settled(1, 0)
    (answer,) = world.manager.find("answers").core.positions.keys()
    found: list[Message] = []
    world.manager.find("answers").core.peek(
        answer, lambda message, _: found.append(Message.from_packet(message.packet))
    )
    assert found[0].message_class == MessageClass.ACK_RECEIVE
    assert world.bodies("orders;journal") == [b"one"]
    kinds = [EventKind(event.kind) for event in world.manager.events.feed.read(before)]
    assert kinds.count(EventKind.RECEIVED) == 1
    assert EventKind.JOURNALED in kinds


def test_leased_messages_are_out_of_reach_for_others() -> None:
    world, queue, leases = filled(3)
    world.finish(leases.lease("spark", queue, 2, EVERYTHING))
    (first, _), _ = leases.rows("spark", queue, 1, 3)
    assert not queue.core.remove(first)
    aside = world.manager.open(r"DIRECT=OS:HOST\private$\orders;aside", Access.MOVE)
    with pytest.raises(MSMQError):
        world.finish(world.reader().move(first, aside))
    assert world.receive() == b"2"
    assert queue.messages == 2
    assert world.bodies() == [b"0", b"1"], "whoever looks at everything still sees them"


def test_a_message_whose_time_is_over_expires_when_it_comes_back() -> None:
    world, queue, leases = filled(0)
    fill(world, queue, 2, time_to_be_received=50, journal=Journal.DEADLETTER)
    world.finish(leases.lease("spark", queue, 2, EVERYTHING, 1000))
    world.advance(60)
    assert world.finish(leases.ack("spark", queue, 2)) == Settled(1, 0), "it was leased in time"
    assert world.finish(leases.release("spark", queue, 3)) == Settled(1, 0)
    assert world.bodies() == []
    assert len(world.bodies(r".\system$;DEADLETTER")) == 1


def test_any_call_renews_everything_that_a_subscription_has() -> None:
    world, queue, leases = filled(2)
    other = world.create("other")
    fill(world, other, 1)
    world.finish(leases.lease("spark", queue, 1, 1, 100))
    world.finish(leases.lease("spark", other, 1, 1, 100))
    world.finish(leases.lease("lake", queue, 1, 1, 100))
    for _ in range(3):
        world.advance(60)
        leases.rows("spark", other, 1, 2)
    assert list(leases.rows("spark", queue, 1, 2)[1]) == [1]
    assert leases.ended == 1
    with pytest.raises(LeaseLost):
        leases.rows("lake", queue, 1, 2)
    world.advance(100)
    assert leases.ended == 3
    assert not leases.held
    world.advance(1000)
    assert leases.next_deadline() is None


def test_a_call_that_comes_too_late_finds_the_lease_ended() -> None:
    world, queue, leases = filled(1)
    world.finish(leases.lease("spark", queue, 1, 1, 100))
    world.clock.advance(100)  # and nobody looked at the clock yet
    with pytest.raises(LeaseLost, match="ended"):
        leases.rows("spark", queue, 1, 2)
    assert world.receive() == b"0"


# ---- queues that go


def test_a_deleted_queue_takes_its_leases_along() -> None:
    world, queue, leases = filled(5)
    world.finish(leases.lease("spark", queue, 3, EVERYTHING))
    assert rows_of(world)
    world.finish(world.manager.delete_queue("orders"))
    assert rows_of(world) == []
    assert leases.listed() == []
    again = world.create()
    fill(world, again, 1)
    assert world.finish(leases.lease("spark", again, 1, 1)) == Leased(1, 2)
    world.crash()
    assert len(world.manager.leases.listed()) == 1


def test_a_queue_that_is_deleted_in_the_middle_of_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(module, "ACK_STEP", 2)
    world, queue, leases = filled(20)
    given = leases.lease("spark", queue, 20, EVERYTHING)
    assert not given.done
    world.manager.delete_queue("orders")
    world.run()
    assert given.exception() is not None
    queue = world.create("second")
    fill(world, queue, 20)
    world.finish(leases.lease("spark", queue, 20, EVERYTHING))
    acked = leases.ack("spark", queue, 21)
    assert not acked.done
    world.manager.delete_queue("second")
    world.run()
    assert acked.result() == Settled(2, 18)
    assert rows_of(world) == []


# ---- long work


def test_a_great_lease_is_done_in_stretches_and_in_small_commits() -> None:
    count = 3 * CHUNK + 5
    world, queue, leases = filled(count)
    given = leases.lease("spark", queue, count, EVERYTHING)
    steps = 1
    while queue.core.positions.available:
        before = queue.core.positions.available
        assert leases.next_deadline() == world.clock.seconds, "there is more to do at once"
        world.clock.seconds += module.SLICE / 2  # others need the loop, too
        leases._step(leases._busy.popleft())
        assert before - queue.core.positions.available <= CHUNK
        steps += 1
    assert steps == 4
    assert not given.done
    assert world.finish(given) == Leased(1, count + 1)
    assert len(rows_of(world)) == 5
    keys, numbers = leases.rows("spark", queue, 1, count + 1)
    assert list(numbers) == list(range(1, count + 1))
    assert list(keys) == queue.core.positions.keys()
    world.crash()
    leases, queue = world.manager.leases, world.manager.find("orders")
    assert leases.rows("spark", queue, 1, count + 1) == (keys, numbers)
    units = world.store.writer.statistics()["operations"]
    assert world.finish(leases.ack("spark", queue, count + 1)) == Settled(count, 0)
    assert world.store.writer.statistics()["operations"] > units
    assert len(rows_of(world)) == 1
    assert queue.messages == 0


def test_wishes_of_one_subscription_are_fulfilled_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(module, "ACK_STEP", 2)
    world, queue, leases = filled(12)
    wishes = [
        leases.lease("spark", queue, 5, EVERYTHING),
        leases.ack("spark", queue, 4),
        leases.lease("spark", queue, 5, EVERYTHING),
        leases.release("spark", queue, 8),
        leases.ack("spark", queue, 11),
    ]
    world.run()
    assert [wish.result() for wish in wishes] == [
        Leased(1, 6),
        Settled(3, 0),
        Leased(6, 11),
        Settled(4, 0),
        Settled(3, 0),
    ]
    assert len(world.bodies()) == 6


# ---- faults


def test_a_lease_that_the_store_did_not_keep_was_never_given() -> None:
    world, queue, leases = filled(5)
    failed(world)
    with pytest.raises(MessageStorageFailed):
        world.finish(leases.lease("spark", queue, 3, EVERYTHING))
    assert queue.core.positions.available == 5
    assert world.finish(leases.lease("spark", queue, 3, EVERYTHING)) == Leased(1, 4)
    world.crash()
    queue = world.manager.find("orders")
    assert list(world.manager.leases.rows("spark", queue, 1, 4)[1]) == [1, 2, 3]


@pytest.mark.parametrize("fatal", [1, 2, 3])
def test_a_great_lease_of_which_a_part_was_not_kept(monkeypatch: pytest.MonkeyPatch, fatal: int) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    world, queue, leases = filled(7)
    world.writer.fail_commit(fatal, errno.ENOSPC)
    given = leases.lease("spark", queue, 7, EVERYTHING)
    while not given.done:
        world.writer.submit()  # each part has a commit of its own
        world.writer.complete_one()
        leases.expire(world.clock.monotonic())
    if given.exception() is None:
        assert fatal > 2, "it was done in fewer commits"
        return
    world.run()
    assert queue.core.positions.available == 7
    world.crash()
    assert world.manager.find("orders").core.positions.available == 7
    assert len(rows_of(world)) <= 1


def test_an_acknowledgment_that_was_not_kept_is_repeated_and_takes_nothing_twice() -> None:
    world, queue, leases = filled(5, journaling=True)
    world.finish(leases.lease("spark", queue, 5, EVERYTHING))
    failed(world)
    world.writer.submit()
    done = leases.ack("spark", queue, 4)
    world.writer.submit()
    world.writer.complete_one()
    assert isinstance(done.exception(), MessageStorageFailed)
    # Before the removal was repeated, nothing is said and nothing runs ahead.
    early = leases.ack("spark", queue, 4)
    assert isinstance(early.exception(), MessageStorageFailed)
    world.advance(2)
    assert world.finish(leases.ack("spark", queue, 4)) == Settled(0, 0)
    assert sorted(world.bodies("orders;journal")) == [b"0", b"1", b"2"]
    world.crash()
    queue = world.manager.find("orders")
    assert list(world.manager.leases.rows("spark", queue, 4, 6)[1]) == [4, 5]
    assert sorted(world.bodies("orders;journal")) == [b"0", b"1", b"2"]


def test_a_crash_after_an_acknowledgment_that_was_not_kept_gives_the_messages_again() -> None:
    world, queue, leases = filled(5)
    world.finish(leases.lease("spark", queue, 5, EVERYTHING))
    failed(world)
    done = leases.ack("spark", queue, 4)
    world.writer.submit()
    world.writer.complete_one()
    assert done.exception() is not None
    world.crash()
    queue = world.manager.find("orders")
    assert list(world.manager.leases.rows("spark", queue, 1, 6)[1]) == [1, 2, 3, 4, 5]
    assert world.finish(world.manager.leases.ack("spark", queue, 6)) == Settled(5, 0)


def test_an_end_that_was_not_kept_is_written_again() -> None:
    world, queue, leases = filled(3)
    world.finish(leases.lease("spark", queue, 3, EVERYTHING, 10))
    world.clock.advance(11)
    world.manager.tick()
    failed(world)
    world.manager.expire(world.manager.monotonic())
    world.writer.complete_all()
    assert len(rows_of(world)) == 2
    world.advance(2)
    assert len(rows_of(world)) == 1
    assert queue.core.positions.available == 3
    world.crash()
    queue = world.manager.find("orders")
    assert queue.core.positions.available == 3
    with pytest.raises(LeaseLost):
        world.manager.leases.rows("spark", queue, 1, 2)


def test_a_message_that_cannot_be_read_does_not_stop_an_acknowledgment() -> None:
    world, queue, leases = filled(3, journaling=True)
    world.crash()  # nothing is in memory
    queue, leases = world.manager.find("orders"), world.manager.leases
    world.finish(leases.lease("spark", queue, 3, EVERYTHING))
    contents = world.writer.tables.tables[Table.CONTENT]
    del contents[sorted(contents)[1]]
    assert world.finish(leases.ack("spark", queue, 4)) == Settled(2, 1)
    assert world.manager.damage["packet"] == 1
    assert sorted(world.bodies("orders;journal")) == [b"0", b"2"]


@pytest.mark.parametrize("damage", ["head", "chunk", "name", "missing"])
def test_damaged_records_are_set_aside(damage: str) -> None:
    world, queue, leases = filled(3)
    world.finish(leases.lease("spark", queue, 3, EVERYTHING))
    meta = world.writer.tables.tables[Table.META]
    head, chunk = sorted(rows_of(world))
    if damage == "head":
        meta[head] = meta[head].replace(b"start", b"stork")
    elif damage == "chunk":
        meta[chunk] = meta[chunk][:-5] + b"\xc0" * 5
        meta[chunk] = b"\x01\xc4\x04abcd"
    elif damage == "name":
        meta[head.replace(b"spark", b"sp/rk")] = meta.pop(head)
        meta[chunk.replace(b"spark", b"sp/rk")] = meta.pop(chunk)
    else:
        del meta[chunk]
    world.crash()
    assert world.manager.damage["lease"] == 1
    assert world.manager.find("orders").core.positions.available == 3
    assert body_of_first(world) == b"0"


def body_of_first(world: World) -> bytes:
    handle = world.reader()
    received = world.finish(handle.receive(0).completion)
    return body(received)
