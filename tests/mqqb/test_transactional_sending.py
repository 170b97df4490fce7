"""Transactional messages on their way out, to a peer written by hand."""

from __future__ import annotations

import struct
from copy import copy
from errno import ENOSPC

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.operator.showing import infos
from msmq_fast.qm.outgoing.sequences import transfer_info
from msmq_fast.qm.transactions.multiple import MultipleQueue
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from msmq_fast.store.store import Store, renew_incarnation
from tests.mqqb.transactional import DEADXACT, JOURNAL, NAME, Sender, Sent, asked, sender
from tests.support.clocks import WALL
from tests.support.mqqb import wire

__all__ = ["asked", "sender"]


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


# ---- acknowledgments in any order


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
    assert sum(sender.sequences.heard.values()) == 3
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


# ---- the ladder


@pytest.mark.rule("QB-128", "QB-312", "QB-313", "QB-334", "QB-209", "QB-207", "QB-085")
@pytest.mark.rule("QB-086", "QB-087", "QB-088", "SR-170", "SR-188", "SR-201")
def test_the_whole_ladder(sender: Sender) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first, second = sender.taken()
    places = [first.place, second.place]
    sender.keep(2)
    steps = [30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600, 21600]
    for number, step in enumerate(steps):
        info = transfer_info(sender.queue)
        assert (info.resend_count, info.resend_interval) == (min(number, 9), step)
        assert info.resend_time == sender.manager.ledger.now_s + step
        sender.advance(step - 1)
        quiet = sender.session is not None and sender.session.alive
        assert not quiet or sender.taken() == []
        assert sender.effects == []
        sender.advance(1)
        if not quiet:  # closed because it was idle: the queue wants another one now
            sender.connect()
        assert [sent.place for sent in sender.taken()] == places
        count = sender.session.sent.sent if sender.session is not None else 0
        sender.keep(count)
    sender.order(first)
    assert (transfer_info(sender.queue).resend_count, transfer_info(sender.queue).resend_interval) == (0, 30)


@pytest.mark.rule("QB-313")
def test_the_timer_starts_again_when_it_expires_and_not_when_there_is_room_to_send(sender: Sender) -> None:
    sender.send(b"1")
    session = sender.connect()
    (first,) = sender.taken()
    sender.keep(1)
    session.pause_sending(sender.now)
    sender.advance(30)
    info = transfer_info(sender.queue)
    assert (info.resend_count, info.resend_time) == (1, sender.manager.ledger.now_s + 30)
    sender.advance(5)
    session.resume_sending(sender.now)
    assert [sent.place for sent in sender.taken()] == [first.place]
    sender.keep(2)
    sender.advance(24)
    assert sender.taken() == []
    sender.advance(1)
    assert [sent.place for sent in sender.taken()] == [first.place]


@pytest.mark.rule("QB-207", "QB-210", "QB-206")
def test_an_order_ack_that_advances_starts_the_ladder_anew_and_a_repeated_one_is_counted(
    sender: Sender,
) -> None:
    sender.send(b"1", b"2", b"3")
    sender.connect()
    first, second, third = sender.taken()
    sender.keep(3)
    sender.advance(30)
    sender.taken()
    sender.keep(6)
    sender.order(first)
    info = transfer_info(sender.queue)
    assert (info.resend_count, info.last_ack_count, info.no_ack_count) == (0, 1, 2)
    assert info.last_ack_time == sender.manager.ledger.now_s
    assert info.resend_time == sender.manager.ledger.now_s + 30
    sender.advance(10)
    sender.order(first)
    assert transfer_info(sender.queue).last_ack_count == 2
    sender.advance(19.5)
    assert sender.taken() == []
    sender.advance(1)
    assert [sent.place for sent in sender.taken()] == [second.place, third.place]


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


# ---- restarts


@pytest.mark.rule("DU-19", "KV-08", "KV-09", "QB-094", "QB-105", "QB-139", "QB-140", "QB-333", "REC-09")
@pytest.mark.rule("DU-14")
def test_a_crash_changes_no_number(sender: Sender) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first = sender.taken()[0]
    sender.keep(2)
    sender.send(b"3")
    sender.taken()
    sender.order(first)
    sender.world.crash()
    sender.restart()
    info = transfer_info(sender.queue)
    assert (info.no_ack_count, str(info.next_sequence)) == (2, f"{first.stamp}.{first.ordinal}:4 after 3")
    sender.send(b"4")
    sender.connect()
    again = sender.taken()
    assert [sent.place for sent in again] == [(2, 1), (3, 2), (4, 3)]
    assert {sent.ordinal for sent in again} == {first.ordinal}
    sender.order(again[-1])
    sender.keep(3)
    assert sender.queue.messages == 0
    sender.send(b"5")
    (fifth,) = sender.taken()
    assert (fifth.place, fifth.ordinal > first.ordinal) == ((1, 0), True)


def put_back(sender: Sender) -> None:
    """The sender runs on from an old state of its store: a copy was restored."""
    tables = sender.world.writer.crash()
    store = sender.world.store = Store.in_memory(now_s=WALL, random=sender.world.random, tables=tables)
    with store.unit():
        renew_incarnation(store.tables, store.writer, WALL + 100)
    store.commit()
    store = sender.world.store = Store.in_memory(
        now_s=WALL, random=sender.world.random, tables=sender.world.writer.crash()
    )
    sender.world._begin()
    sender.restart()


@pytest.mark.rule("DU-19", "QB-094")
def test_a_restored_sender_gives_no_number_that_the_original_may_have_given_since(sender: Sender) -> None:
    sender.send(b"1", b"2")
    put_back(sender)
    sender.send(b"3")
    sender.connect()
    first, second, third = sender.taken()
    assert [first.place, second.place] == [(1, 0), (2, 1)]
    assert third.number > 1 << 24
    assert third.previous == 2
    sender.keep(3)
    sender.order(first, 500)  # the receiver has had 498 more of the original
    assert sender.queue.messages == 1
    sender.order(third)
    assert sender.queue.messages == 0
    sender.send(b"4")
    (fourth,) = sender.taken()
    assert (fourth.place, fourth.stamp) == ((1, 0), WALL + 100)


@pytest.mark.rule("DU-19")
def test_numbers_are_set_apart_once_for_each_restored_copy(sender: Sender) -> None:
    sender.send(b"1")
    put_back(sender)
    once = transfer_info(sender.queue).next_sequence.number
    sender.world.crash()
    sender.restart()
    assert transfer_info(sender.queue).next_sequence.number == once
    assert once > 1 << 24


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


@pytest.mark.rule("QB-216", "QB-217", "DU-15")
def test_copies_that_share_an_identifier_have_their_final_acks_each() -> None:
    sender = Sender(own_copy_ids=False)
    other = NAME.replace("orders", "bills")
    handle = sender.manager.open_destinations(f"{NAME},{other}", Access.SEND)
    assert isinstance(handle, MultipleQueue)
    transaction = sender.manager.transactions.begin()
    handle.send_in(transaction, Message(body=b"1", journal=Journal.JOURNAL))
    sender.world.finish(transaction.commit())
    sender.connect()
    first, second = sender.taken()
    assert first.message_id == second.message_id
    sender.keep(2)
    sender.order(first)
    sender.order(second)
    sender.final(first)
    sender.final(second)
    assert sender.manager.find(JOURNAL).messages == 2
    assert [sender.manager.find(name).messages for name in (NAME, other)] == [0, 0]


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.rule("QB-216", "QB-217", "QB-211")
def test_a_final_ack_that_is_quicker_than_the_session_after_the_next_sequence_began(
    sender: Sender, quick: bool
) -> None:
    sender.send(b"1", journal=Journal.JOURNAL)
    sender.connect()
    (first,) = sender.taken()
    sender.order(first)
    sender.send(b"2", journal=Journal.JOURNAL)
    (second,) = sender.taken()
    assert (second.number, second.ordinal > first.ordinal) == (1, True)
    if quick:
        sender.final(first)
        assert sender.manager.find(JOURNAL).messages == 1
    sender.keep(1)
    if not quick:
        assert sender.manager.find(JOURNAL).messages == 0
        sender.final(first)
    sender.keep(2)
    sender.order(second)
    sender.final(second)
    assert sender.manager.find(JOURNAL).messages == 2
    assert sender.queue.messages == 0
    sender.world.crash()
    sender.restart()
    assert sender.manager.find(JOURNAL).messages == 2
    assert transfer_info(sender.queue).no_read_count == 0


@pytest.mark.rule("QB-139", "KV-08")
def test_the_step_of_the_ladder_outlives_a_restart(sender: Sender) -> None:
    sender.send(b"1")
    sender.connect()
    sender.taken()
    sender.keep(1)
    for _ in range(3):
        sender.advance(30)
        sender.taken()
    sender.world.crash()
    sender.restart()
    sender.connect()
    sender.taken()
    assert transfer_info(sender.queue).resend_interval == 300


@pytest.mark.rule("QB-094", "QB-113", "DU-19")
def test_the_number_of_a_message_that_is_gone_is_not_given_again(sender: Sender) -> None:
    sender.send(b"1", b"2")
    sender.send(b"3", time_to_reach_queue=5)
    sender.advance(10)
    assert sender.queue.messages == 2
    sender.world.crash()
    sender.restart()
    sender.send(b"4")
    sender.connect()
    assert [sent.place for sent in sender.taken()] == [(1, 0), (2, 1), (4, 2)]


@pytest.mark.parametrize("stamp", [WALL, WALL + 1])
def test_identifiers_grow_behind_the_last_ordinal_too(stamp: int) -> None:
    sender = Sender()
    streams = sender.manager.streams
    streams._stamp = stamp
    streams.ordinals.last, streams.ordinals.limit = (1 << 32) - 2, (1 << 32) + 99
    found = []
    for _ in range(3):
        sender.send(b"1")
        found.append(sender.queue.core.sequence.identifier)  # type: ignore[union-attr]
        sender.manager.purge(sender.queue)
        sender.world.run()
    assert found == [(stamp << 32) + (1 << 32) - 1 + more for more in range(3)]


@pytest.mark.rule("QB-112", "QB-092", "QB-094", "QB-213")
def test_a_sequence_identifier_is_never_used_again(sender: Sender) -> None:
    seen: set[int] = set()
    for number in range(3):
        sender.send(b"%d" % number)
        sender.connect()
        (sent,) = sender.taken()
        assert sent.ordinal not in seen
        seen.add(sent.ordinal)
        sender.keep(1)
        sender.order(sent)
        sender.world.crash()
        sender.restart()


# ---- the final word


@pytest.mark.rule("QB-126", "QB-212", "QB-216", "QB-217", "DU-14", "DU-15", "QB-100", "QB-201")
@pytest.mark.rule("X-61", "X-65", "KV-09")
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_what_was_received_goes_to_the_journal(asked: Sender, crash: bool, early: bool) -> None:
    sent: Sent = asked.asked  # type: ignore[attr-defined]
    assert sent.flags & 2
    if not early:
        asked.order(sent)
        assert (asked.queue.messages, asked.queue.core.positions.available) == (1, 0)
        if crash:
            asked.world.crash()
            asked.restart()
            assert asked.effects == []
        assert transfer_info(asked.queue).no_read_count == 1
    asked.final(sent)
    if crash:
        asked.world.crash()
        asked.restart()
    assert asked.queue.messages == 0
    assert asked.world.bodies(JOURNAL) == [b"1"]
    assert transfer_info(asked.queue).no_read_count == 0
    assert asked.world.bodies(DEADXACT) == []


@pytest.mark.rule("QB-212")
@pytest.mark.parametrize("journal", [Journal.NONE, Journal.JOURNAL, Journal.DEADLETTER])
def test_a_message_with_either_wish_waits_for_its_final_ack(sender: Sender, journal: Journal) -> None:
    sender.send(b"1", journal=journal)
    sender.connect()
    (sent,) = sender.taken()
    sender.keep(1)
    sender.order(sent)
    assert sender.queue.messages == int(bool(journal))


@pytest.mark.rule("QB-218", "DU-15", "X-62", "X-65")
@pytest.mark.parametrize("early", [False, True])
def test_what_was_refused_is_a_dead_letter(asked: Sender, early: bool) -> None:
    sent: Sent = asked.asked  # type: ignore[attr-defined]
    if not early:
        asked.order(sent)
    asked.final(sent, MessageClass.NACK_Q_PURGED)
    assert asked.queue.messages == 0
    assert asked.world.bodies(DEADXACT) == [b"1"]
    assert asked.world.bodies(JOURNAL) == []
    (letter,) = asked.manager.find(DEADXACT).core.take(5, 1 << 20, 77)
    assert letter.reason == MessageClass.NACK_Q_PURGED


@pytest.mark.rule("QB-216")
def test_a_final_ack_that_is_not_ours_changes_nothing(asked: Sender) -> None:
    sent: Sent = asked.asked  # type: ignore[attr-defined]
    asked.order(sent)
    asked.final(sent, source=wire.PEER)
    for field in ("message_id", "ordinal", "stamp", "number"):
        other = copy(sent)
        setattr(other, field, getattr(sent, field) + 1)
        asked.final(other)
    assert sum(asked.sequences.heard.values()) == 6
    assert asked.queue.messages == 1
    asked.final(sent)
    assert asked.queue.messages == 0


@pytest.mark.rule("QB-219", "QB-218")
@pytest.mark.parametrize(
    ("journal", "kind"),
    [(Journal.DEADLETTER, MessageClass.ACK_RECEIVE), (Journal.JOURNAL, MessageClass.NACK_Q_DELETED)],
)
def test_the_other_final_acks_end_it_without_a_copy(
    sender: Sender, journal: Journal, kind: MessageClass
) -> None:
    sender.send(b"1", journal=journal)
    sender.connect()
    (sent,) = sender.taken()
    sender.keep(1)
    sender.order(sent)
    sender.final(sent, kind)
    assert sender.queue.messages == 0
    for name in (JOURNAL, DEADXACT):
        assert sender.world.bodies(name) == []


@pytest.mark.rule("QB-219")
@pytest.mark.parametrize("crash", [False, True])
def test_a_final_ack_that_never_comes_is_given_up_long_after_the_time_to_be_received(
    sender: Sender, crash: bool
) -> None:
    sender.send(b"1", journal=Journal.DEADLETTER, time_to_be_received=60)
    sender.connect()
    (sent,) = sender.taken()
    sender.keep(1)
    sender.order(sent)
    if crash:
        sender.world.crash()
        sender.restart()
    sender.advance(60 + 21_600 - 5)
    assert sender.queue.messages == 1
    sender.advance(10)
    assert sender.queue.messages == 0
    (letter,) = sender.manager.find(DEADXACT).core.take(5, 1 << 20, 77)
    assert letter.reason == MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER


# ---- messages that leave by other ways


@pytest.mark.rule("QB-331", "QB-333", "QB-330", "QB-113", "DM-197")
def test_what_is_late_leaves_a_gap_that_the_next_transmission_bridges(sender: Sender) -> None:
    sender.send(b"1")
    sender.send(b"2", time_to_reach_queue=20, journal=Journal.DEADLETTER)
    sender.send(b"3")
    sender.connect()
    assert [sent.place for sent in sender.taken()] == [(1, 0), (2, 1), (3, 2)]
    sender.keep(3)
    sender.advance(25)
    assert sender.queue.messages == 2
    assert sender.world.bodies(DEADXACT) == [b"2"]
    sender.advance(10)
    assert [sent.place for sent in sender.taken()] == [(1, 0), (3, 1)]


@pytest.mark.rule("QB-328", "QB-113")
def test_what_is_late_before_it_is_sent_leaves_a_gap(sender: Sender) -> None:
    sender.send(b"1")
    sender.send(b"2", time_to_reach_queue=20)
    sender.send(b"3")
    sender.advance(25)
    sender.connect()
    assert [sent.place for sent in sender.taken()] == [(1, 0), (3, 1)]


@pytest.mark.rule("QB-113")
def test_a_purge_leaves_a_gap_and_no_message_that_was_ordered(sender: Sender) -> None:
    sender.send(b"1", journal=Journal.DEADLETTER)
    sender.connect()
    (first,) = sender.taken()
    sender.send(b"2", b"3", journal=Journal.DEADLETTER)
    second, _third = sender.taken()
    sender.keep(3)
    sender.order(first)
    session = sender.session
    assert session is not None
    session.close(CloseReason.DISCONNECTED, sender.now)
    sender.world.finish(sender.manager.purge(sender.queue))
    sender.world.run()
    sender.advance(10)
    assert sender.queue.messages == 1
    assert sorted(sender.world.bodies(DEADXACT)) == [b"2", b"3"]
    sender.world.crash()
    sender.restart()
    sender.send(b"4")
    sender.connect()
    (fourth,) = sender.taken()
    assert fourth.place == (1, 0)
    assert fourth.ordinal > second.ordinal
    sender.final(first)
    assert sender.queue.messages == 1


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


@pytest.mark.rule("QB-113", "QB-332")
def test_what_an_administrator_gives_back_comes_behind_the_others(sender: Sender) -> None:
    sender.send(b"1", b"2", b"3")
    got: list[Received] = []
    sender.queue.core.receive_bulk(1, 1 << 20, lambda messages, _status: got.extend(messages))
    sender.world.run()
    sender.queue.core.requeue(got)
    sender.world.run()
    sender.world.crash()
    sender.restart()
    sender.connect()
    places = [(sent.body, *sent.place) for sent in sender.taken()]
    assert places == [(b"2", 2, 0), (b"3", 3, 2), (b"1", 4, 3)]


@pytest.mark.rule("REC-09", "DU-19")
def test_messages_of_a_store_without_numbers_get_them(sender: Sender) -> None:
    sender.send(b"1", b"2")
    tables = sender.world.writer.tables.tables
    for key, value in list(tables[Table.POSITION].items()):
        tables[Table.POSITION][key] = b"\x01" + value[1 : decode.POSITION.size]
    tables[Table.SEQUENCE].clear()
    for _ in range(2):
        sender.world.crash()
        sender.restart()
    sender.connect()
    assert [(sent.body, *sent.place) for sent in sender.taken()] == [(b"1", 1, 0), (b"2", 2, 1)]


@pytest.mark.rule("REC-09")
def test_what_was_ordered_and_not_acknowledged_is_not_loaded_again(sender: Sender) -> None:
    """Recovery reads the state of the sequences before the messages that it applies to."""
    sender.send(b"1", b"2", b"3")
    sender.connect()
    second = sender.taken()[1]
    sender.order(second)
    sender.world.crash()
    sender.restart()
    assert sender.queue.messages == 1
    sender.connect()
    assert [sent.place for sent in sender.taken()] == [(3, 2)]


@pytest.mark.rule("REC-09")
@pytest.mark.parametrize("record", [b"", b"\x01" + bytes(31), b"\x02" + bytes(40)])
def test_a_damaged_state_is_set_aside_and_the_numbers_stay(sender: Sender, record: bytes) -> None:
    sender.send(b"1", b"2")
    sender.connect()
    first = sender.taken()[0]
    tables = sender.world.writer.tables.tables
    (key,) = tables[Table.SEQUENCE]
    tables[Table.SEQUENCE][key] = record
    sender.world.crash()
    sender.restart()
    assert sender.manager.damage["sequence"] == 1
    sender.connect()
    again = sender.taken()
    assert [sent.place for sent in again] == [(1, 0), (2, 1)]
    assert again[0].ordinal == first.ordinal


@pytest.mark.rule("QB-111", "DU-19")
def test_a_commit_that_finds_no_room_leaves_a_gap_and_nothing_else(sender: Sender) -> None:
    sender.send(b"1")
    sender.world.writer.fail_commit(1, 28)
    with pytest.raises(MSMQError):
        sender.send(b"lost")
    sender.send(b"3")
    sender.connect()
    assert [(sent.body, *sent.place) for sent in sender.taken()] == [(b"1", 1, 0), (b"3", 3, 1)]


# ---- acknowledgments as packets


@pytest.mark.rule("QB-205", "QB-215")
@pytest.mark.parametrize("kind", [0xFF, 0x4000])
def test_an_acknowledgment_before_the_session_is_open_ends_it(sender: Sender, kind: int) -> None:
    session = sender.session = sender.endpoint.accept("10.0.0.8", sender.now)
    with pytest.raises(AssertionError):
        sender._say(kind, bytes(36), recoverable=kind != 0xFF)
    assert session.reason is CloseReason.OUT_OF_STATE


@pytest.mark.rule("QB-220", "QB-059")
def test_a_final_ack_is_counted_and_kept_before_it_is_acknowledged(asked: Sender) -> None:
    sent: Sent = asked.asked  # type: ignore[attr-defined]
    session = asked.session
    assert session is not None
    session.data_to_send()
    run, asked.world.run = asked.world.run, lambda: None  # type: ignore[method-assign]
    asked.final(sent)
    assert session.window.received == 1
    assert session.window.acknowledgeable == 0
    assert asked.world.store.tables.count(Table.POSITION) == 1
    assert not any(wire.read_header(packet)[1] for packet in session.data_to_send())
    run()
    session.pump(asked.now)
    assert asked.world.bodies(JOURNAL) == [b"1"]
    assert any(wire.read_header(packet)[1] for packet in session.data_to_send())
    assert [queue.name for queue in asked.manager.queues() if queue.messages] == [
        asked.manager.find(JOURNAL).name
    ]


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


@pytest.mark.parametrize("late", [False, True])
def test_a_message_that_cannot_be_read_again_holds_up_nobody(sender: Sender, late: bool) -> None:
    """Neither the timers of others nor the session that brings its FinalAck."""
    sender.send(b"1", journal=Journal.DEADLETTER, time_to_be_received=60)
    sender.connect()
    (sent,) = sender.taken()
    sender.keep(1)
    sender.order(sent)
    sender.world.create("plain")
    sender.world.send(b"x", "plain", time_to_be_received=60 + 21_600 + 10)
    contents = sender.world.store.tables.tables[Table.CONTENT]
    del contents[min(contents)]
    if late:
        sender.advance(60 + 21_600 + 5)
    else:
        sender.final(sent, MessageClass.NACK_Q_PURGED)
    assert sender.manager.damage["packet"] == 1
    sender.advance(60 + 21_600 + 30)
    assert sender.world.bodies("plain") == []
