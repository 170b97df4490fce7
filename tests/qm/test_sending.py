"""Sending: order, records, durability, identifiers, and sends that fail."""

from __future__ import annotations

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol import errors
from msmq_fast.qm.handles.handle import SentMessage
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.qm.peeking import peek
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

pytestmark = pytest.mark.smoke


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
    message = peek(world, key)
    parsed = Message.from_packet(message.packet)
    assert (parsed.source_machine, parsed.sent_time) == (world.manager.guid, WALL)
    assert parsed.message_id > 0
    assert (message.arrived_time, message.arrival_seq) == (WALL, key & (1 << 56) - 1)
