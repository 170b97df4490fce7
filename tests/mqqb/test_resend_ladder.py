"""The resend ladder of transactional messages: its steps, what starts it anew, a restart."""

from __future__ import annotations

import pytest

from msmq_fast.qm.outgoing.sequences import transfer_info
from tests.mqqb.transactional import Sender, sender

__all__ = ["sender"]


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


def test_an_operator_sends_again_at_once_and_starts_the_ladder_anew(sender: Sender) -> None:
    sender.send(b"1")
    sender.connect()
    (first,) = sender.taken()
    sender.keep(1)
    sender.advance(30)
    assert [sent.place for sent in sender.taken()] == [first.place]
    sender.keep(2)
    assert transfer_info(sender.queue).resend_count == 1
    sender.queue.kick()
    sender.advance(0)
    assert [sent.place for sent in sender.taken()] == [first.place]
    assert transfer_info(sender.queue).resend_count == 1
    assert transfer_info(sender.queue).resend_time == sender.manager.ledger.now_s + 30
    sender.keep(3)
    sender.order(first)
    sender.queue.kick()  # nothing waits any more
    sender.advance(0)
    assert sender.taken() == []
