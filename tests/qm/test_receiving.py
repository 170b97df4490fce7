"""Receiving and waiting: timeouts, order of readers, commits that fail, what the feed tells of it."""

from __future__ import annotations

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.store import decode
from tests.support.worlds.queue_manager import World, body

pytestmark = pytest.mark.smoke


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
