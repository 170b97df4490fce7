"""Transactional messages on their way out, to a peer written by hand: numbers, OrderAcks, management."""

from __future__ import annotations

import struct
from errno import ENOSPC

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.packet.message import Message
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.operator.showing import infos
from msmq_fast.qm.outgoing.sequences import transfer_info
from msmq_fast.store.schema import Table
from tests.mqqb.transactional import NAME, Sender, Sent, sender
from tests.support.clocks import WALL
from tests.support.mqqb import wire

__all__ = ["sender"]


@pytest.mark.rule("QB-110", "QB-111", "QB-124", "QB-125", "QB-332", "QB-335", "QB-211", "QB-204", "QB-092")
@pytest.mark.rule("QB-118")
def test_a_message_goes_when_both_acknowledgments_are_there(sender: Sender) -> None:
    sender.send(b"1")
    sender.connect()
    (sent,) = sender.taken()
    assert (sent.place, sent.body, sent.ordinal, sent.stamp) == ((1, 0), b"1", 1, WALL)
    sender.keep(1)
    assert sender.queue.messages == 1
    sender.order(sent)
    assert sender.queue.messages == 0
    assert sender.sequences.next_deadline() is None


@pytest.mark.rule("QB-211", "QB-124", "QB-200", "QB-354", "QB-123")
def test_an_order_ack_before_the_session_ack_waits_for_it(sender: Sender) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first, second = sender.taken()
    sender.order(second)
    assert sender.queue.messages == 2
    sender.keep(1)
    assert sender.queue.messages == 1
    sender.keep(2)
    assert sender.queue.messages == 0
    assert [first.place, second.place] == [(1, 0), (2, 1)]


@pytest.mark.rule("QB-211")
def test_what_is_ordered_is_not_sent_again_when_its_session_ends_without_a_word(sender: Sender) -> None:
    sender.send(b"1", b"2")
    session = sender.connect()
    first, _ = sender.taken()
    sender.order(first)
    session.close(CloseReason.DISCONNECTED, sender.now)
    sender.world.run()
    assert sender.queue.messages == 1
    sender.advance(5)
    sender.connect()
    assert [sent.place for sent in sender.taken()] == [(2, 1)]


@pytest.mark.rule("QB-125", "QB-140", "QB-333", "QB-139")
def test_what_only_the_session_kept_is_sent_again_with_its_numbers(sender: Sender) -> None:
    sender.send(b"1", b"2")
    session = sender.connect()
    before = sender.taken()
    sender.keep(2)
    sender.send(b"3")
    assert sender.queue.messages == 3
    session.close(CloseReason.DISCONNECTED, sender.now)
    sender.advance(5)
    sender.connect()
    again = sender.taken()
    assert [sent.place for sent in again] == [(1, 0), (2, 1), (3, 2)]
    assert {(sent.stamp, sent.ordinal) for sent in again} == {(before[0].stamp, before[0].ordinal)}
    assert [sent.message_id for sent in again[:2]] == [sent.message_id for sent in before]


@pytest.mark.rule("QB-208", "QB-114")
def test_acknowledgments_of_another_sequence_or_of_the_unsent_change_nothing(sender: Sender) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first, second = sender.taken()
    sender.keep(2)
    first.ordinal += 1
    sender.order(first, 2)
    first.ordinal -= 1
    sender.order(second, 3)
    sender.order(second, 0xFFFFFFFF)
    assert sender.queue.messages == 2
    assert sum(sender.sequences.counts.values()) == 3
    sender.order(first)
    assert sender.queue.messages == 1


@pytest.mark.rule("QB-112", "QB-213", "QB-113", "QB-092", "QB-093", "QB-094")
def test_a_drained_sequence_is_followed_by_a_greater_one(sender: Sender) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first = sender.taken()[0]
    sender.keep(2)
    sender.order(first, 2)
    sender.send(b"3")
    (third,) = sender.taken()
    assert (third.place, third.stamp, third.ordinal) == ((1, 0), first.stamp, first.ordinal + 1)
    sender.keep(3)
    sender.order(first, 2)
    assert sender.queue.messages == 1
    sender.order(third)
    assert sender.queue.messages == 0


@pytest.mark.rule("QB-214", "QB-287")
def test_management_sees_the_sequence(sender: Sender) -> None:
    sender.send(b"1", b"2", b"3", journal=Journal.JOURNAL)
    sender.connect()
    first = sender.taken()[0]
    sender.keep(3)
    sender.order(first)
    sender.order(first)
    (info,) = infos([sender.queue], sender.manager.guid, (), lambda _: False)
    shown = info.as_map()
    at = f"{first.stamp}.{first.ordinal}"
    assert (
        shown.items()
        >= {
            "first_non_ack": f"{at}:2 after 1",
            "last_non_ack": f"{at}:3 after 2",
            "next_sequence": f"{at}:4 after 3",
            "last_ack": f"{at}:1 after 0",
            "last_ack_time": sender.manager.ledger.now_s,
            "last_ack_count": 2,
            "no_ack_count": 2,
            "no_read_count": 1,
            "resend_count": 0,
            "resend_interval": 30,
            "resend_time": sender.manager.ledger.now_s + 30,
        }.items()
    )


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("journal", [Journal.NONE, Journal.JOURNAL])
@pytest.mark.rule("QB-211", "DU-14")
def test_an_order_ack_for_a_message_that_an_operator_takes_out(
    sender: Sender, journal: Journal, kept: bool
) -> None:
    sender.send(b"1", b"2", journal=journal)
    session = sender.connect()
    first, second = sender.taken()
    session.close(CloseReason.DISCONNECTED, sender.now)
    told: list[tuple[int, int]] = []
    core = sender.queue.core
    core.receive_bulk(1, 1 << 20, lambda messages, status: told.append((len(messages), status)))
    if not kept:
        sender.world.writer.fail_commit(1, ENOSPC)
    sender._call()
    sender.order(first)
    assert told == [(1, 0 if kept else ENOSPC)]
    stored = {key for key, _ in sender.world.store.tables.scan(Table.POSITION, b"", None, 9)}
    assert len(stored) == core.positions.live
    assert [found.place for found in sender.taken() if found.message_id == first.message_id] == []
    waits = not kept and journal is not Journal.NONE
    sender.world.crash()
    sender.restart()
    info = transfer_info(sender.queue)
    assert (info.no_ack_count, info.no_read_count) == (1, int(waits))
    assert second.number == 2


@pytest.mark.rule("QB-114", "QB-098")
def test_forwarded_and_plain_messages_pass_untouched(sender: Sender) -> None:
    header = struct.pack("<5I", 0x120, 77, 88, 99, 98)
    foreign = wire.message(5, transaction=header, queue=r"TCP:10.0.0.8\private$\orders", source=wire.PEER)
    handle = sender.manager.open(NAME, Access.SEND)
    handle.queue.core.enqueue_packets([foreign])
    handle.close()
    sender.send(b"own")
    plain = sender.manager.open(NAME, Access.SEND)
    sender.world.finish(plain.send(Message(body=b"plain", delivery=1, priority=3)))
    session = sender.connect()
    plainly, through, numbered = wire.split(b"".join(session.data_to_send()))[1:]
    assert through == foreign
    assert b"plain" in plainly
    own = Sent(numbered)
    assert own.place == (1, 0)
    sender.keep(3)
    assert sender.queue.messages == 1
    sender.order(own)
    assert sender.queue.messages == 0


def test_what_waits_for_its_order_ack_does_not_fill_the_memory() -> None:
    sender = Sender(cache_bytes=40_000)
    bodies = [bytes((number,)) * 1000 for number in range(1, 61)]
    for body in bodies[:30], bodies[30:]:
        sender.send(*body)
    session = sender.connect()
    places = [sent.place for sent in sender.taken()]
    assert len(places) == 60
    session.receive(wire.session_ack(60, 60, 1), sender.now)
    sender.world.run()
    assert sender.manager.ledger.cached_bytes <= 20_000
    session.close(CloseReason.DISCONNECTED, sender.now)
    sender.advance(5)
    sender.connect()
    again: list[Sent] = []
    for _ in range(60):
        again += sender.taken()
    assert [sent.place for sent in again] == places
