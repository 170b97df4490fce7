"""FinalAcks that the sender gets: journal, dead letter or neither, early, foreign, missing."""

from __future__ import annotations

from copy import copy

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.outgoing.sequences import transfer_info
from msmq_fast.qm.transactions.multiple import MultipleQueue
from msmq_fast.store.schema import Table
from tests.mqqb.transactional import DEADXACT, JOURNAL, NAME, Sender, Sent, asked, sender
from tests.support.mqqb import wire

__all__ = ["asked", "sender"]


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
    assert sum(asked.sequences.counts.values()) == 6
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
