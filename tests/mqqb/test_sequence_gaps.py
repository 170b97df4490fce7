"""Messages that leave an outgoing sequence unsent: the gap, and the number that bridges it."""

from __future__ import annotations

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.properties import Journal
from tests.mqqb.transactional import DEADXACT, Sender, sender

__all__ = ["sender"]


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


@pytest.mark.rule("QB-111", "DU-19")
def test_a_commit_that_finds_no_room_leaves_a_gap_and_nothing_else(sender: Sender) -> None:
    sender.send(b"1")
    sender.world.writer.fail_commit(1, 28)
    with pytest.raises(MSMQError):
        sender.send(b"lost")
    sender.send(b"3")
    sender.connect()
    assert [(sent.body, *sent.place) for sent in sender.taken()] == [(b"1", 1, 0), (b"3", 3, 1)]
