"""Sending, receiving, waiting, looking up, subscribing, expiring, quotas, recovery."""

from __future__ import annotations

from array import array

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import SentMessage
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import ReadRequest
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World, body

pytestmark = pytest.mark.smoke


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


# ---- sending


@pytest.mark.rule("DM-099", "DM-100", "DM-101")
def test_the_order_is_priority_then_arrival(world: World) -> None:
    keys = {}
    for number, priority in enumerate([3, 7, 0, 3, 7, 0, 5]):
        keys[f"{priority}-{number}".encode()] = world.send(f"{priority}-{number}".encode(), priority=priority)
    expected = [b"7-1", b"7-4", b"5-6", b"3-0", b"3-3", b"0-2", b"0-5"]
    assert world.bodies() == expected
    assert [keys[name] >> 56 for name in expected] == [0, 0, 2, 4, 4, 7, 7]
    sequences = [key & (1 << 56) - 1 for key in keys.values()]
    assert sequences == list(range(sequences[0], sequences[0] + 7))


@pytest.mark.rule("DM-106", "DU-01")
def test_a_recoverable_message_is_seen_and_reported_only_when_durable(world: World) -> None:
    sent = world.sender().send(Message(body=b"x", delivery=1))
    queue = world.manager.find("orders")
    assert (sent.done, queue.messages, queue.bytes, queue.core.positions.available) == (False, 0, 0, 0)
    with pytest.raises(errors.IOTimeout):
        world.reader().receive(0, peek=True).completion.result()
    world.writer.complete_all()
    assert isinstance(sent.result(), SentMessage)
    assert queue.messages == 1


@pytest.mark.rule("KV-04")
def test_the_record_of_a_message(world: World) -> None:
    lifetimes = {"time_to_reach_queue": 60, "time_to_be_received": 90}
    message = Message(body=b"x", delivery=1, priority=5, acknowledge=2, journal=1, **lifetimes)  # type: ignore[arg-type]
    message.admin_queue = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
    sent = world.finish(world.sender().send(message))
    queue = world.manager.find("orders")
    (received,) = queue.core.take(1, 1 << 20, world.manager.ledger.new_owner())
    ((key, value),) = world.writer.tables.tables[Table.POSITION].items()
    assert decode.position_key(key) == (queue.ordinal, sent.lookup_id)
    assert decode.position(value) == decode.Position(
        flags=decode.PositionFlag.RECOVERABLE,
        priority=5,
        ack_flags=decode.AckRequest.ACK_POSITIVE_RECEIVE | decode.AckRequest.JOURNAL_NEGATIVE,
        message_class=0,
        reason=0,
        content_id=received.content_id,
        content_bytes=len(received.packet),
        sent_s=WALL,
        arrived_us=WALL * 1_000_000,
        time_to_reach_queue=60,
        time_to_be_received=90,
        source=world.manager.guid.bytes_le,
        ordinal=sent.message_id,
        abort_count=0,
        arrival_seq=sent.arrival_seq,
        move_count=0,
        last_move_s=0,
        dead_letter_queue=0,
        prepared_slot=0,
    )


@pytest.mark.rule("DM-104")
def test_an_express_message_is_available_at_once_and_never_stored(world: World) -> None:
    before = world.writer.statistics()["operations"]
    sent = world.sender().send(Message(body=b"x"))
    assert sent.done
    assert world.manager.find("orders").messages == 1
    world.run()
    assert world.writer.statistics()["operations"] == before
    world.crash()
    assert world.bodies() == []


def test_a_failed_commit_is_reported_and_leaves_nothing(world: World) -> None:
    sent = world.sender().send(Message(body=b"x", delivery=1))
    world.writer.submit()
    world.writer.complete_one(28)
    with pytest.raises(errors.MessageStorageFailed):
        sent.result()
    core = world.manager.find("orders").core
    assert (len(core.positions), core.used_bytes, world.manager.ledger.bytes) == (0, 0, 0)


def test_two_puts_per_message(world: World) -> None:
    world.manager.ledger.feed = False
    sender = world.sender()
    before = world.writer.pending_ops
    sender.send(Message(body=b"x" * 1024, delivery=1))
    assert world.writer.pending_ops - before == 2


@pytest.mark.rule("DM-107")
def test_a_transactional_queue_takes_no_plain_message(world: World) -> None:
    world.create("tx", transactional=True)
    with pytest.raises(errors.TransactionUsage):
        world.sender("tx").send(Message(body=b"x"))


def test_many_messages_have_one_completion_and_each_its_outcome(world: World) -> None:
    sender = world.sender()
    batch = [Message(body=b"a", delivery=1), Message(label="x" * 300), Message(body=b"b")]
    done = sender.send_many(batch)
    assert not done.done
    world.run()
    first, second, third = done.result()
    assert isinstance(first, SentMessage)
    assert isinstance(second, errors.LabelTooLong)
    assert isinstance(third, SentMessage)
    assert (first.message_id + 2, first.arrival_seq + 1) == (third.message_id, third.arrival_seq)
    assert world.bodies() == [b"a", b"b"]
    assert sender.send_many([]).result() == []
    assert sender.send_many([Message(body=b"express")]).done


def test_a_malformed_packet_enqueues_nothing(world: World) -> None:
    good = world.sender()
    packet = good.stamp(Message(body=b"1")).to_packet()
    with pytest.raises(ValueError):
        good.send_packets([packet, packet[:-1]])
    assert world.bodies() == []


def test_the_sender_learns_identifier_and_place(world: World) -> None:
    key = world.send(b"x")
    message = _peek(world, key)
    parsed = Message.from_packet(message.packet)
    assert (parsed.source_machine, parsed.sent_time) == (world.manager.guid, WALL)
    assert parsed.message_id > 0
    assert (message.arrived_time, message.arrival_seq) == (WALL, key & (1 << 56) - 1)


def _peek(world: World, key: int) -> Received:
    received = world.finish(world.reader().lookup(key, Lookup.CURRENT, peek=True))
    assert isinstance(received, Received)
    return received


def test_message_ordinals_are_not_used_twice_over_a_crash(world: World) -> None:
    seen: set[int] = set()
    for _ in range(3):
        for _ in range(5):
            ordinal = Message.from_packet(_peek(world, world.send(b"x")).packet).message_id
            assert ordinal not in seen
            seen.add(ordinal)
        world.crash()


# ---- quotas


@pytest.mark.rule("DM-097", "X-31")
def test_queue_quota_to_the_byte(world: World) -> None:
    queue = world.manager.find("orders")
    packet = world.sender().stamp(Message(body=b"x" * 100, delivery=1)).to_packet()
    queue.core.quota_bytes = 3 * len(packet) - 1
    results, keys = world.finish(world.sender().send_packets([packet, packet, packet]))
    assert (results, keys[2]) == ([4, 4, 1], 0)
    queue.core.quota_bytes = 3 * len(packet)
    assert world.finish(world.sender().send_packets([packet]))[0] == [4]
    assert queue.bytes == 3 * len(packet)
    with pytest.raises(errors.InsufficientResources):
        world.sender().send(Message())


@pytest.mark.rule("X-30")
@pytest.mark.parametrize(
    ("kilobytes", "size"), [(0, 0), (1, 1024), (0xFFFF_FFFE, 0xFFFF_FFFE << 10), (0xFFFF_FFFF, (1 << 64) - 1)]
)
def test_the_four_quotas_are_in_kilobytes_and_one_value_is_no_limit(kilobytes: int, size: int) -> None:
    world = World(quota_kb=kilobytes, journal_quota_kb=kilobytes)
    queue = world.create(quota_kb=kilobytes, journal_quota_kb=kilobytes)
    assert queue.journal is not None
    system = world.manager.find(r".\system$;JOURNAL")
    found = (world.manager.ledger, queue.core, queue.journal.core, system.core)
    assert [each.quota_bytes for each in found] == [size] * 4


@pytest.mark.rule("DM-096", "X-30", "X-32")
def test_machine_quota_to_the_byte_and_before_the_queue_quota(world: World) -> None:
    world.create("second", quota_kb=0)
    packet = world.sender().stamp(Message(body=b"x" * 100)).to_packet()
    ledger = world.manager.ledger
    ledger.quota_bytes = 2 * len(packet)
    assert world.sender().send_packets([packet] * 3).result()[0] == [0, 0, 2]
    assert world.sender("second").send_packets([packet]).result()[0] == [2]
    ledger.quota_bytes += len(packet)
    assert world.sender("second").send_packets([packet]).result()[0] == [1]
    ledger.throttled = True
    assert world.sender().send_packets([packet]).result()[0] == [2]


def test_pending_messages_count_for_the_quota_and_not_for_total_bytes(world: World) -> None:
    queue = world.manager.find("orders")
    world.sender().send(Message(body=b"x", delivery=1))
    assert queue.core.used_bytes > 0
    assert queue.bytes == 0
    world.run()
    assert queue.bytes == queue.core.used_bytes == world.manager.ledger.bytes


# ---- receiving


@pytest.mark.rule("DM-117")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_receive_is_what_becomes_of_the_message(world: World, delivery: int) -> None:
    """Its acknowledgment and its copy in the journal of the queue say so."""
    world.create("admin")
    queue = world.create("kept", journaling=True)
    message = Message(body=b"x", delivery=delivery, acknowledge=2)  # type: ignore[arg-type]
    message.admin_queue = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
    world.finish(world.sender("kept").send(message))
    assert world.receive("kept") == b"x"
    (answer,) = world.manager.find("admin").core.take(9, 1 << 20, world.manager.ledger.new_owner())
    assert Message.from_packet(answer.packet).message_class == 0x4000
    assert queue.journal is not None
    assert queue.journal.messages == 1


@pytest.mark.rule("DM-112", "DM-117", "DM-118")
def test_receive_takes_the_first_message(world: World) -> None:
    for text in (b"1", b"2"):
        world.send(text)
    assert [world.receive(), world.receive()] == [b"1", b"2"]
    assert world.manager.find("orders").bytes == 0


@pytest.mark.rule("DM-119", "DU-03")
def test_the_message_is_returned_when_its_removal_is_durable(world: World) -> None:
    world.send(b"1")
    request = world.reader().receive(0)
    assert not request.completion.done
    world.crash()
    assert not request.completion.done
    assert world.bodies() == [b"1"]
    assert world.receive() == b"1"
    world.crash()
    assert world.bodies() == []


@pytest.mark.rule("DM-119")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_message_taken_for_a_reader_who_vanished_goes_back_to_its_place(
    world: World, delivery: int
) -> None:
    keys = [world.send(text, delivery=1) for text in (b"1", b"2")]
    reader = world.reader()
    request = reader.receive(None)
    world.writer.submit()
    reader.close()
    world.run()
    with pytest.raises(errors.OperationCancelled):
        request.completion.result()
    assert world.bodies() == [b"1", b"2"]
    assert world.manager.find("orders").core.positions.keys() == keys
    world.crash()
    assert world.bodies() == [b"1", b"2"]


@pytest.mark.rule("DM-113", "DM-052", "DM-089", "DM-109", "ST-9")
def test_a_read_without_a_message_times_out(world: World) -> None:
    reader = world.reader()
    at_once, later, never = reader.receive(0), reader.receive(2500), reader.receive(None)
    with pytest.raises(errors.IOTimeout):
        at_once.completion.result()
    world.advance(2.499)
    assert not later.completion.done
    world.advance(0.002)
    with pytest.raises(errors.IOTimeout):
        later.completion.result()
    world.advance(1e6)
    assert not never.completion.done
    reader.close()
    with pytest.raises(errors.OperationCancelled):
        never.completion.result()


@pytest.mark.rule("X-03")
def test_waiting_reads_ignore_steps_of_the_wall_clock(world: World) -> None:
    request, endless = (world.reader().receive(timeout) for timeout in (10_000, 0xFFFFFFFF))
    for step, seconds, done in ((3_600_000_000, 9.9, False), (-7_200_000_000, 0.2, True)):
        world.clock.wall += step
        world.advance(seconds)
        assert request.completion.done is done
    world.advance(5_000_000)
    assert not endless.completion.done


@pytest.mark.rule("DM-114", "DM-220")
def test_ten_thousand_waiters_one_message(world: World) -> None:
    reader = world.reader()
    requests = [reader.receive(60_000) for _ in range(10_000)]
    world.send(b"1")
    assert [request.completion.done for request in requests[:2]] == [True, False]
    assert sum(request.completion.done for request in requests) == 1
    assert requests[0].timer is None
    world.advance(61)
    assert all(request.completion.done for request in requests)


def test_waiting_reads_are_served_in_order_over_handles(world: World) -> None:
    readers = [world.reader() for _ in range(3)]
    requests = [readers[number % 3].receive(None) for number in range(9)]
    sender = world.sender()
    sender.send_many([Message(body=b"%d" % number, delivery=number % 2) for number in range(9)])
    world.run()
    # Express messages are there before recoverable ones are durable.
    assert [body(request.completion.result()) for request in requests] == [
        b"0", b"2", b"4", b"6", b"8", b"1", b"3", b"5", b"7",
    ]  # fmt: skip


@pytest.mark.rule("DM-140", "DM-141", "DM-139")
def test_three_who_peek_and_one_who_takes_are_all_served_by_one_message(world: World) -> None:
    reader = world.reader()
    requests = [reader.receive(None, peek=True), reader.receive(None)]
    requests += [reader.receive(None, peek=True) for _ in range(2)]
    world.send(b"1")
    assert [body(request.completion.result()) for request in requests] == [b"1"] * 4
    world.send(b"2")
    queue = world.manager.find("orders")
    before = (queue.messages, queue.bytes, queue.core.positions.available)
    assert world.receive(peek=True) == b"2"
    assert (queue.messages, queue.bytes, queue.core.positions.available) == before


def test_a_lone_message_to_a_waiting_reader_costs_one_commit(world: World) -> None:
    request = world.reader().receive(None)
    world.sender().send(Message(body=b"x", delivery=1))
    before = world.writer.statistics()["batches"]
    world.writer.submit()
    world.writer.complete_one()
    assert body(request.completion.result()) == b"x"
    assert world.writer.statistics()["batches"] == before + 1
    assert world.bodies() == []
    world.run()
    assert not world.store.tables.tables[1]


def test_a_fused_receive_whose_commit_fails_gives_nothing(world: World) -> None:
    request = world.reader().receive(None)
    sent = world.sender().send(Message(body=b"x", delivery=1))
    world.writer.submit()
    world.writer.complete_one(28)
    for completion in (request.completion, sent):
        with pytest.raises(errors.MessageStorageFailed):
            completion.result()
    assert world.manager.ledger.bytes == 0


def test_a_fused_receive_in_the_batch_behind_a_failed_one_gives_nothing(world: World) -> None:
    """A full batch of sends leaves and is not kept; the removals, in the next one, succeed."""
    request = world.reader().receive(None)
    sent = world.sender().send(Message(body=bytes(2 << 20), delivery=1))
    world.writer.fail_commit(1, 28)
    world.writer.complete_all()
    for completion in (request.completion, sent):
        with pytest.raises(errors.MessageStorageFailed):
            completion.result()
    assert world.manager.ledger.bytes == 0
    world.send(b"2")
    assert world.receive() == b"2"


def test_express_messages_of_a_delivery_whose_commit_fails_go_back(world: World) -> None:
    world.send(b"1", delivery=0)
    world.send(b"2", delivery=1)
    got: list[list[Received]] = []
    world.reader().subscribe(got.append, 2, acknowledge=False)
    world.writer.submit()
    world.writer.complete_one(28)
    assert got == []
    assert world.bodies() == [b"1", b"2"]


def test_a_subscription_goes_on_after_a_commit_that_failed(world: World) -> None:
    world.send(b"1")
    got: list[bytes] = []
    world.reader().subscribe(lambda batch: got.extend(map(body, batch)), 1, acknowledge=False)
    world.writer.submit()
    world.writer.complete_one(28)
    assert got == []
    world.send(b"2")
    assert got == [b"1"]


def test_a_receive_whose_commit_fails_leaves_the_message(world: World) -> None:
    world.send(b"1")
    request = world.reader().receive(0)
    world.writer.submit()
    world.writer.complete_one(28)
    with pytest.raises(errors.MessageStorageFailed):
        request.completion.result()
    assert world.receive() == b"1"


@pytest.mark.rule("DM-148", "DM-149", "ST-9")
def test_cancel_ends_a_read_once(world: World) -> None:
    request = world.reader().receive(None)
    assert request.cancel()
    assert not request.cancel()
    world.send(b"1")
    assert world.bodies() == [b"1"]


# ---- by lookup identifier


@pytest.mark.rule("DM-225", "DM-226", "DM-227", "DM-228", "DM-128", "DM-129")
def test_lookup_finds_by_place(world: World) -> None:
    keys = [world.send(b"%d" % number, priority=priority) for number, priority in enumerate([3, 3, 7, 0])]
    reader = world.reader()

    def peek(key: int, operation: Lookup) -> bytes:
        return body(world.finish(reader.lookup(key, operation, peek=True)))

    assert [peek(key, Lookup.CURRENT) for key in keys] == [b"0", b"1", b"2", b"3"]
    assert [peek(0, Lookup.FIRST), peek(123, Lookup.LAST)] == [b"2", b"3"]
    assert [peek(keys[2], Lookup.NEXT), peek(keys[0], Lookup.NEXT), peek(keys[1], Lookup.NEXT)] == [
        b"0",
        b"1",
        b"3",
    ]
    assert [peek(keys[3], Lookup.PREVIOUS), peek(keys[0], Lookup.PREVIOUS)] == [b"1", b"2"]
    for key, operation in (
        (keys[3], Lookup.NEXT),
        (keys[2], Lookup.PREVIOUS),
        (99, Lookup.CURRENT),
        (99, Lookup.NEXT),
    ):
        with pytest.raises(errors.MessageNotFound):
            reader.lookup(key, operation, peek=True)
    assert world.manager.find("orders").messages == 4


@pytest.mark.rule("DM-131")
def test_receive_by_lookup_removes_durably(world: World) -> None:
    keys = [world.send(b"%d" % number) for number in range(3)]
    received = world.reader().lookup(keys[1], Lookup.CURRENT)
    assert not received.done
    assert body(world.finish(received)) == b"1"
    world.crash()
    assert world.bodies() == [b"0", b"2"]
    assert body(world.finish(world.reader().lookup(keys[0], Lookup.NEXT))) == b"2"
    assert body(world.finish(world.reader().lookup(0, Lookup.LAST))) == b"0"
    with pytest.raises(errors.MessageNotFound):
        world.reader().lookup(0, Lookup.FIRST)


@pytest.mark.rule("DM-229", "DM-230", "DM-223")
def test_lookup_of_a_locked_message(world: World) -> None:
    keys = [world.send(b"%d" % number) for number in range(3)]
    core = world.manager.find("orders").core
    assert core.claim(keys[1], 50)
    assert not core.claim(keys[1], 51)
    reader = world.reader()
    with pytest.raises(errors.TransactionUsage):
        reader.lookup(keys[1], Lookup.CURRENT, peek=True)
    with pytest.raises(errors.MessageLocked):
        reader.lookup(keys[1], Lookup.CURRENT)
    assert body(world.finish(reader.lookup(keys[0], Lookup.NEXT, peek=True))) == b"2"
    assert body(world.finish(reader.lookup(keys[1], Lookup.PREVIOUS, peek=True))) == b"0"
    assert core.release(array("Q", keys), 51) == 0
    assert core.release(array("Q", keys), 50) == 1


# ---- subscriptions


@pytest.mark.parametrize("delivery", [0, 1])
def test_a_subscription_gets_batches_within_its_credit(world: World, delivery: int) -> None:
    batches: list[list[bytes]] = []
    subscription = world.reader().subscribe(
        lambda batch: batches.append([body(message) for message in batch]), 5, acknowledge=False
    )
    world.sender().send_many([Message(body=b"%d" % number, delivery=delivery) for number in range(8)])
    world.run()
    assert batches == [[b"0", b"1", b"2", b"3", b"4"]]
    subscription.grant(2)
    world.run()
    assert batches[1:] == [[b"5", b"6"]]
    assert subscription.credit == 0
    assert world.bodies() == [b"7"]
    subscription.close()
    subscription.grant(5)
    world.run()
    assert world.bodies() == [b"7"]


def test_deliveries_of_a_subscription_keep_their_order(world: World) -> None:
    got: list[bytes] = []
    world.reader().subscribe(lambda batch: got.extend(map(body, batch)), 100, acknowledge=False)
    sender = world.sender()
    sender.send(Message(body=b"1", delivery=1))
    world.writer.submit()  # taken by the commit that stores it
    sender.send(Message(body=b"2"))
    world.manager.before_submit()
    assert got == []
    world.run()
    assert got == [b"1", b"2"]


def test_acknowledging_subscription_holds_until_acknowledged(world: World) -> None:
    for number in range(4):
        world.send(b"%d" % number)
    got: list[Received] = []
    reader = world.reader()
    subscription = reader.subscribe(got.extend, 3, acknowledge=True)
    assert [body(message) for message in got] == [b"0", b"1", b"2"]
    keys = [message.lookup_id for message in got]
    done = subscription.ack([keys[1], keys[1], 12345])
    assert not done.done
    assert world.finish(done) == 1
    world.crash()
    assert world.bodies() == [b"0", b"2", b"3"]


def test_what_is_not_acknowledged_goes_back_in_order(world: World) -> None:
    for number in range(4):
        world.send(b"%d" % number, delivery=number % 2)
    got: list[Received] = []
    reader = world.reader()
    subscription = reader.subscribe(got.extend, 4, acknowledge=True)
    assert subscription.release([got[2].lookup_id]) == 1
    assert world.receive() == b"2"
    reader.close()
    assert [world.receive() for _ in range(3)] == [b"0", b"1", b"3"]


def test_a_subscription_that_closes_before_delivery_gives_back(world: World) -> None:
    got: list[Received] = []
    reader = world.reader()
    reader.subscribe(got.extend, 10, acknowledge=False)
    world.sender().send_many([Message(body=b"%d" % number, delivery=1) for number in range(3)])
    world.writer.submit()
    reader.close()
    world.run()
    assert got == []
    assert world.bodies() == [b"0", b"1", b"2"]
    world.crash()
    assert world.bodies() == [b"0", b"1", b"2"]


# ---- time


@pytest.mark.rule("DM-098", "DM-105")
@pytest.mark.parametrize(("age", "result"), [(10, 0), (11, 3)])
def test_a_message_that_took_too_long_is_not_taken(world: World, age: int, result: int) -> None:
    sender = world.sender()
    packet = sender.stamp(Message(body=b"x", time_to_reach_queue=10)).to_packet()
    world.clock.advance(age)
    world.manager.tick()
    assert sender.send_packets([packet]).result()[0] == [result]
    world.manager.find("orders").core.quota_bytes = 0
    full = 1 if result == 0 else result  # the time counts before the quota
    assert sender.send_packets([packet]).result()[0] == [full]


@pytest.mark.rule("DM-102", "X-04")
@pytest.mark.parametrize("delivery", [0, 1])
def test_time_to_be_received_counts_from_the_sending(world: World, delivery: int) -> None:
    sender = world.sender()
    packet = sender.stamp(Message(body=b"x", delivery=delivery, time_to_be_received=10)).to_packet()
    world.clock.advance(4)
    world.manager.tick()
    world.finish(sender.send_packets([packet]))
    world.send(b"for ever")
    world.advance(5)
    assert world.bodies() == [b"x", b"for ever"]
    world.advance(1)
    assert world.bodies() == [b"for ever"]
    world.run()
    assert (len(world.store.tables.tables[1]), world.manager.find("orders").core.expired_total) == (1, 1)


@pytest.mark.rule("DM-102", "X-04")
def test_time_to_be_received_of_zero_expires_at_once(world: World) -> None:
    world.send(b"x", time_to_be_received=0)
    world.advance(0)
    assert world.bodies() == []


def test_time_to_reach_queue_counts_in_outgoing_queues_only(world: World) -> None:
    outgoing = r"DIRECT=OS:other\private$\q"
    for name in ("orders", outgoing):
        world.send(b"x", name, time_to_reach_queue=10)
    world.advance(10)
    assert (world.bodies(), world.bodies(outgoing)) == ([b"x"], [])


def test_a_step_of_the_wall_clock_is_noticed(world: World) -> None:
    world.send(b"x", time_to_be_received=3600)
    world.clock.wall += 3_600_000_000
    world.advance(30)
    assert world.bodies() == []
    world.send(b"y", time_to_be_received=100)
    world.clock.wall -= 86_400_000_000
    world.advance(50)
    world.advance(90)
    assert world.bodies() == [b"y"]


@pytest.mark.rule("DM-125", "X-56")
def test_a_locked_message_expires_when_it_is_released(world: World) -> None:
    world.send(b"x", time_to_be_received=10)
    got: list[Received] = []
    reader = world.reader()
    subscription = reader.subscribe(got.extend, 1, acknowledge=True)
    world.advance(20)
    assert world.manager.find("orders").messages == 1
    subscription.release([got[0].lookup_id])
    world.run()
    assert world.manager.find("orders").messages == 0
    world.crash()
    assert world.bodies() == []


# ---- restart


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
    size = sum(len(_peek(world, key).packet) for key in kept)
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


def test_feed_tells_what_happened(world: World) -> None:
    world.send(b"1")
    world.receive()
    world.send(b"2", time_to_be_received=1)
    world.advance(2)
    events = [
        (event.kind, event.queue)
        for key, value in sorted(world.store.tables.tables[3].items())
        for event in decode.feed(key, value)
        if event.lookup_id
    ]
    ordinal = world.manager.find("orders").ordinal
    assert events == [(2, ordinal), (3, ordinal), (2, ordinal), (5, ordinal)]


def test_admin_access_reads_outgoing_queues_only(world: World) -> None:
    with pytest.raises(errors.QueueNotFound):
        world.manager.open("orders", Access.PEEK_ADMIN)
