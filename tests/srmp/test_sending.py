"""Outgoing queues with HTTP names in a queue manager with a store in memory: what is sent, what becomes of
it, and what receipts do (MC-MQSRM 3.1.5.1.8, 3.1.5.1.9, 3.1.5.2, 3.1.7.2). The server is the test.
"""

from __future__ import annotations

from errno import ENOSPC
from uuid import UUID

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.errors import TransactionUsage, UnsupportedFormatNameOperation
from msmq_fast.protocol.properties import Delivery, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.identity.signing import prepare
from msmq_fast.qm.outgoing.sequences import transfer_info
from msmq_fast.qm.queues.outgoing import OutgoingState
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.srmp.endpoint import Progress
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.srmp.sending import LADDER, NAME, PURGED, Post, Station
from tests.support.worlds.queue_manager import World

JOURNAL, DEADLETTER, DEADXACT = r".\system$;JOURNAL", r".\system$;DEADLETTER", r".\system$;DEADXACT"


@pytest.fixture
def station() -> Station:
    return Station()


# ---- messages without a stream


@pytest.mark.rule("SR-208", "SR-185")
def test_a_plain_message_is_gone_and_journaled_when_it_is_answered(station: Station) -> None:
    station.world.send(b"a", NAME, journal=Journal.JOURNAL)
    station.world.send(b"b", NAME)
    first = station.post()
    assert first is not None
    assert (first.body, first.place) == (b"a", (0, 0, 0))
    assert station.there(JOURNAL) == []
    assert station.queue.outgoing_state is OutgoingState.CONNECTED
    station.answer()
    assert station.there(JOURNAL) == [b"a"]
    station.exchange()
    assert station.queue.messages == 0
    assert station.there(JOURNAL) == [b"a"]


@pytest.mark.rule("SR-183", "SR-209")
@pytest.mark.parametrize("delivery", [Delivery.EXPRESS, Delivery.RECOVERABLE])
def test_a_plain_message_that_is_rejected_goes_to_the_dead_letters(
    station: Station, delivery: Delivery
) -> None:
    station.world.send(b"a", NAME, journal=Journal.DEADLETTER | Journal.JOURNAL, delivery=delivery)
    station.world.send(b"b", NAME, journal=Journal.JOURNAL, delivery=delivery)
    assert [post.body for post in station.exchange(400)] == [b"a", b"b"]
    assert station.queue.messages == 0
    assert (station.there(DEADLETTER), station.there(JOURNAL)) == ([b"a"], [])
    station.advance(60)
    assert station.post() is None


@pytest.mark.rule("SR-058")
def test_a_message_is_sent_again_as_it_was(station: Station) -> None:
    station.world.send(b"a", NAME)
    first = station.post()
    station.answer(500)
    assert station.queue.outgoing_state is OutgoingState.INACTIVE
    assert station.post() is None
    station.advance(20)
    assert station.post() == first
    station.crash()
    assert station.post() == first


@pytest.mark.rule("SR-193", "SR-194")
def test_messages_expire_with_and_without_a_connection(station: Station) -> None:
    station.world.send(b"kept", NAME, time_to_reach_queue=30, journal=Journal.DEADLETTER | Journal.JOURNAL)
    station.world.send(b"gone", NAME, time_to_reach_queue=30)
    station.send(b"stream", time_to_reach_queue=30, journal=Journal.DEADLETTER)
    assert station.effects  # nobody answers
    station.advance(31)
    assert station.post() is None
    assert station.queue.messages == 0
    assert (station.there(DEADLETTER), station.there(DEADXACT)) == ([b"kept"], [b"stream"])
    assert station.there(JOURNAL) == []


def test_a_message_under_way_does_not_expire(station: Station) -> None:
    station.world.send(b"a", NAME, time_to_reach_queue=30, journal=Journal.DEADLETTER | Journal.JOURNAL)
    assert station.post() is not None
    station.advance(31)
    station.answer(200)
    assert (station.there(DEADLETTER), station.there(JOURNAL)) == ([], [b"a"])


@pytest.mark.rule("SR-220")
def test_a_message_that_cannot_be_said_is_given_up(station: Station) -> None:
    station.world.send(b"a", NAME, label="unspeakable", journal=Journal.DEADLETTER)
    station.world.send(b"b", NAME)
    assert [post.body for post in station.exchange()] == [b"b"]
    assert station.there(DEADLETTER) == [b"a"]
    assert len(station.refused) == 1


@pytest.mark.rule("SR-226")
def test_encrypted_messages_do_not_leave(station: Station) -> None:
    handle = station.manager.open(NAME, Access.SEND)
    message = Message(body=b"a", privacy_level=1)
    handle.stamp(message)
    with pytest.raises(UnsupportedFormatNameOperation, match="HTTPS"):
        prepare(None, handle.queue, message.to_packet(), None, None)


def test_names_are_opened_where_there_is_a_way() -> None:
    closed = World()
    with pytest.raises(UnsupportedFormatNameOperation, match="sending by HTTP is disabled on this server"):
        closed.manager.open(NAME, Access.SEND)
    both = World(http=True, multicast=True)
    for access in (Access.RECEIVE, Access.PEEK):
        with pytest.raises(UnsupportedFormatNameOperation):
            both.manager.open(NAME, access)
    handle = both.manager.open("MULTICAST=234.1.1.1:8001", Access.SEND)
    with pytest.raises(TransactionUsage):
        TransactedQueue(handle, both.manager.transactions.begin())


@pytest.mark.rule("SR-227")
def test_hardened_mode_leaves_http_alone() -> None:
    station = Station(hardened=True, multicast=True)
    station.world.send(b"a", NAME)
    assert [post.body for post in station.exchange()] == [b"a"]
    for name in ("MULTICAST=234.1.1.1:8001", r"DIRECT=OS:h\q", NAME.replace("HTTP", "HTTPS")):
        assert station.manager.outgoing_queues.to(parse_format_name(name)).may_send is ("HTTPS" in name)


# ---- streams


@pytest.mark.rule("SR-115", "SR-196", "SR-197", "SR-111")
def test_numbers_of_a_stream(station: Station) -> None:
    station.send(*[b"%d" % number for number in range(10)])
    posts = station.exchange()
    assert [post.number for post in posts] == [(n + 1, n) for n in range(10)]
    assert len({post.place[0] for post in posts}) == 1
    other = station.manager.open("DIRECT=HTTP://server.test/msmq/private$/beside", Access.SEND)
    transaction = station.manager.transactions.begin()
    TransactedQueue(other, transaction).send(Message(body=b"x"))
    station.world.finish(transaction.commit())
    (beside,) = station.exchange()
    assert beside.number == (1, 0)
    assert beside.place[0] > posts[0].place[0]


@pytest.mark.rule("SR-122", "SR-168", "SR-171", "SR-199", "SR-208")
def test_stream_messages_wait_for_their_receipt(station: Station) -> None:
    station.send(b"1", b"2", b"3")
    posts = station.exchange()
    assert station.queue.messages == 3
    station.receipt(posts[1], sender=UUID(int=9))
    station.receipt(posts[1], 9)  # never sent
    assert station.queue.messages == 3
    station.receipt(posts[1])
    assert station.queue.messages == 1
    station.receipt(posts[1])  # once more
    station.receipt(posts[2])
    assert station.queue.messages == 0
    assert station.sequences.next_deadline() is None


@pytest.mark.rule("SR-116", "SR-218")
def test_a_new_stream_when_all_was_acknowledged(station: Station) -> None:
    station.send(b"1")
    (first,) = station.exchange()
    station.send(b"2")
    (second,) = station.exchange()
    assert (second.place[0], second.number) == (first.place[0], (2, 1))
    station.receipt(second)
    station.send(b"3")
    (third,) = station.exchange()
    assert third.place[0] > first.place[0]
    assert third.number == (1, 0)


@pytest.mark.rule("SR-127", "SR-131", "SR-170", "SR-188", "SR-201")
def test_the_ladder_of_resending(station: Station) -> None:
    station.send(b"1", b"2")
    first = station.exchange()
    for step in LADDER:
        info = transfer_info(station.queue)
        assert (info.resend_interval, info.resend_time) == (step, station.manager.ledger.now_s + step)
        station.advance(step - 1)
        assert station.exchange() == []
        station.advance(1)
        assert station.exchange() == first
    station.send(b"3")
    (third,) = station.exchange()
    station.receipt(third, 1)  # progress: from the start
    station.advance(29)
    assert station.exchange() == []
    station.advance(1)
    assert [post.body for post in station.exchange()] == [b"2", b"3"]


def test_what_is_under_way_is_not_sent_again(station: Station) -> None:
    """A-27."""
    station.send(b"1", b"2")
    first = station.post()
    station.answer()
    second = station.post()
    station.advance(30)
    assert station.effects == []
    station.answer()
    again = station.exchange()
    assert [post.body for post in again] == [b"1"]
    assert first is not None
    assert second is not None
    station.receipt(second)
    assert station.queue.messages == 0


@pytest.mark.rule("SR-210")
def test_after_a_failure_the_wait_timer_stops_until_it_is_tried_again(station: Station) -> None:
    station.send(b"1", b"2")
    station.post()
    station.answer()
    station.post()
    station.answer(503)
    assert station.sequences.next_deadline() is None
    station.advance(20)
    post = station.post()
    assert post is not None
    assert post.body == b"2"
    assert station.sequences.next_deadline() == station.now + 30


@pytest.mark.rule("SR-075", "SR-198", "SR-115")
def test_gaps_are_bridged(station: Station) -> None:
    station.send(b"1")
    station.exchange()
    station.send(b"2", time_to_reach_queue=10)
    station.send(b"3")
    station.post()
    station.answer(500)
    station.advance(20)
    (third,) = station.exchange()
    assert (third.body, third.number) == (b"3", (3, 1))
    station.receipt(third)
    assert station.queue.messages == 0


@pytest.mark.rule("SR-076")
@pytest.mark.parametrize("how", ["expired", "rejected", "expired while the computer was down"])
def test_a_stream_whose_first_message_is_gone_begins_anew(station: Station, how: str) -> None:
    """A-14: a receiver takes no stream without its message 1."""
    station.send(b"1", b"2", time_to_reach_queue=10)
    station.send(b"3", b"4")
    first = station.post()
    assert first is not None
    station.answer(400 if how == "rejected" else 500)
    if how == "rejected":
        second = station.post()
        assert second is not None
        assert second.number == (1, 0)
        station.answer(400)
    if how == "expired while the computer was down":
        station.crash()
    station.advance(25)
    third, fourth = station.exchange()
    assert (third.body, third.number, fourth.body, fourth.number) == (b"3", (1, 0), b"4", (2, 1))
    assert third.place[0] == fourth.place[0] > first.place[0]


@pytest.mark.rule("SR-108")
def test_the_new_beginning_is_durable_and_known_by_receipts(station: Station) -> None:
    station.send(b"1", time_to_reach_queue=10)
    station.send(b"2", b"3", b"4", journal=Journal.DEADLETTER)
    first = station.post()
    assert first is not None
    station.answer(500)
    station.advance(20)
    second = station.post()
    assert second is not None
    assert (second.body, second.number) == (b"2", (1, 0))
    assert second.place[0] > first.place[0]
    station.crash()
    assert station.post() == second
    station.answer()
    third = station.post()
    assert third is not None
    assert third.number == (2, 1)
    assert third.place[0] == second.place[0]
    station.answer()
    station.crash()
    again = station.exchange()
    assert [post.number for post in again] == [(1, 0), (2, 1), (3, 2)]
    station.receipt(first, 1)  # of the stream that is no more
    station.receipt(third)
    assert station.queue.messages == 3  # two of them wait for what became of them
    station.final(second)
    station.final(third, PURGED)
    assert station.there(DEADXACT) == [b"3"]
    station.final(again[2])  # before its stream receipt
    assert station.queue.messages == 0
    station.send(b"5")
    (fifth,) = station.exchange()
    assert fifth.number == (1, 0)
    assert fifth.place[0] > second.place[0]


@pytest.mark.parametrize("next_stream", [False, True])
@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.rule("SR-174", "KV-09")
def test_a_stream_receipt_that_is_quicker_than_the_answer(
    station: Station, renamed: bool, next_stream: bool
) -> None:
    if renamed:
        station.send(b"0", time_to_reach_queue=10)
    station.send(b"1", journal=Journal.DEADLETTER)
    first = station.post()
    assert first is not None
    if renamed:
        station.answer(500)
        station.advance(20)
        first = station.post()
        assert first is not None
    assert (first.body, first.number) == (b"1", (1, 0))
    station.receipt(first)
    if next_stream:
        station.send(b"2")
    station.answer()
    for post in station.exchange():
        station.receipt(post)
    station.crash()
    station.final(first, PURGED)
    assert station.there(DEADXACT) == [b"1"]
    assert station.queue.messages == 0


def test_a_late_answer_says_nothing_of_the_next_stream(station: Station) -> None:
    """Whose message 1 goes before anything was sent of it: its receiver has nothing of it."""
    station.send(b"1")
    first = station.post()
    assert first is not None
    station.receipt(first)
    station.send(b"2", time_to_reach_queue=10)
    station.send(b"3")
    station.answer()
    station.advance(31)
    third = station.post()
    assert third is not None
    assert (third.body, third.number) == (b"3", (1, 0))


def test_a_stream_of_which_something_was_answered_goes_on(station: Station) -> None:
    """Its receiver may have it: beginning anew would deliver it twice. A crash does not make us forget it."""
    station.send(b"1", time_to_reach_queue=60)
    station.send(b"2")
    first = station.post()
    station.answer()
    station.world.run()
    station.crash()
    station.advance(70)
    posts = station.exchange()
    assert first is not None
    assert [(post.body, post.place[0], post.number) for post in posts] == [(b"2", first.place[0], (2, 0))]


def test_nothing_follows_the_first_answer_before_it_is_known_for_good(station: Station) -> None:
    station.send(b"1", b"2")
    station.post()
    station.transfer.answered(station.number, 200, station.now)
    station.transfer.proceed(station.number, station.now)
    assert station.effects == []  # not before the commit
    station.settle()
    assert station.effects != []


def test_a_full_disk_holds_the_stream_back(station: Station) -> None:
    station.send(b"1", b"2")
    station.post()
    station.transfer.answered(station.number, 200, station.now)
    station.transfer.proceed(station.number, station.now)
    writer = station.world.writer
    writer.submit()
    while writer.busy:
        writer.complete_one(ENOSPC)
        writer.submit()
    station.settle()
    assert station.post() is None
    station.advance(20)
    post = station.post()
    assert post is not None
    assert post.body == b"2"


# ---- final receipts, journals


@pytest.mark.rule("SR-172", "SR-199")
def test_journaled_at_the_stream_receipt(station: Station) -> None:
    """A-55; nobody tells what becomes of a message without a dead-letter flag."""
    station.send(b"1", b"2", journal=Journal.JOURNAL)
    posts = station.exchange()
    assert station.there(JOURNAL) == []
    station.receipt(posts[1])
    assert station.there(JOURNAL) == [b"1", b"2"]
    assert station.queue.messages == 0


@pytest.mark.rule("SR-184", "SR-186")
@pytest.mark.parametrize("transactional", [True, False])
def test_the_dead_letter_queue_that_the_program_chose(station: Station, transactional: bool) -> None:
    """Only a transactional one gets the message."""
    chosen = station.world.create("dead", transactional=transactional)
    transaction = station.manager.transactions.begin()
    handle = station.manager.open(NAME, Access.SEND)
    message = Message(body=b"1", journal=Journal.DEADLETTER)
    message.transaction = transaction.header(handle.queue.core)
    packet = handle.stamp(message).to_packet()
    TransactedQueue(handle, transaction).send_packets([packet], [chosen.ordinal])
    station.world.finish(transaction.commit())
    (post,) = station.exchange()
    station.final(post, PURGED)
    there = (station.there("dead"), station.there(DEADXACT))
    assert there == (([b"1"], []) if transactional else ([], [b"1"]))


@pytest.mark.rule("SR-173", "SR-174", "SR-175", "SR-184", "SR-169")
def test_final_receipts(station: Station) -> None:
    station.send(b"1", b"2", b"3", journal=Journal.DEADLETTER)
    posts = station.exchange()
    station.final(posts[0], message=99)
    station.receipt(posts[2])
    assert station.queue.messages == 3
    assert transfer_info(station.queue).no_read_count == 3
    station.final(posts[0], message=99)
    stranger = Post((77, 1, 0), b"", posts[0].ordinal, 0)
    station.final(stranger)
    assert station.queue.messages == 3
    station.final(posts[0])
    station.final(posts[1], PURGED)
    station.crash()
    station.final(posts[2], PURGED)
    assert station.there(DEADXACT) == [b"2", b"3"]
    assert (station.queue.messages, transfer_info(station.queue).no_read_count) == (0, 0)


@pytest.mark.rule("SR-218")
def test_the_stream_stays_while_a_final_receipt_is_awaited_and_is_not_sent_again(station: Station) -> None:
    station.send(b"1", journal=Journal.DEADLETTER)
    (post,) = station.exchange()
    station.receipt(post)
    station.advance(100_000)
    assert station.exchange() == []
    assert station.queue.messages == 1


@pytest.mark.rule("SR-169", "SR-200")
def test_what_management_sees(station: Station) -> None:
    station.send(b"1", b"2", b"3")
    posts = station.exchange()
    identifier = posts[0].place[0]

    def place(found: object) -> tuple[int, int]:
        return found.sequence_id, found.number  # type: ignore[attr-defined]

    info = transfer_info(station.queue)
    assert (place(info.first_non_ack), place(info.last_non_ack)) == ((identifier, 1), (identifier, 3))
    assert (place(info.next_sequence), info.last_ack, info.no_ack_count) == ((identifier, 4), None, 3)
    station.receipt(posts[1])
    info = transfer_info(station.queue)
    assert (place(info.first_non_ack), place(info.last_ack)) == ((identifier, 3), (identifier, 2))
    assert (info.no_ack_count, info.last_ack_count, info.last_ack_time) == (
        1,
        1,
        station.manager.ledger.now_s,
    )
    station.receipt(posts[1])
    assert transfer_info(station.queue).last_ack_count == 2
    station.receipt(posts[2])
    info = transfer_info(station.queue)
    assert (info.first_non_ack, info.last_non_ack, info.no_ack_count) == (None, None, 0)


# ---- starts, pauses, states


@pytest.mark.rule("SR-130", "SR-133", "SR-132", "REC-09", "SR-108")
def test_a_restart_goes_on_by_itself(station: Station) -> None:
    station.send(b"1", b"2")
    posts = station.exchange()
    station.receipt(posts[0])
    station.crash()
    again = station.exchange()
    assert again == [posts[1]]
    station.receipt(again[0])
    station.crash()
    station.send(b"3")
    (third,) = station.exchange()
    assert third.place[0] > posts[0].place[0]
    assert third.ordinal > posts[1].ordinal


@pytest.mark.rule("SR-216", "SR-217", "SR-219")
def test_pause_and_resume(station: Station) -> None:
    station.send(b"1", b"2")
    station.post()
    station.answer()
    station.manager.pause(station.queue)
    station.effects.clear()
    station.send(b"3")
    station.advance(600)
    assert station.effects == []
    assert station.queue.outgoing_state is OutgoingState.ON_HOLD
    station.manager.resume(station.queue)
    assert [post.body for post in station.exchange()] == [b"2", b"3"]
    assert station.sequences.next_deadline() is not None


@pytest.mark.rule("SR-221")
def test_states_and_history(station: Station) -> None:
    station.world.send(b"a", NAME)
    queue = station.queue
    assert queue.outgoing_state is OutgoingState.WAITING
    station.transfer.failed(station.effects.pop().number, Progress.REFUSED, "no", station.now)  # type: ignore[union-attr]
    assert queue.outgoing_state is OutgoingState.INACTIVE
    station.advance(20)
    station.exchange()
    assert queue.outgoing_state is OutgoingState.CONNECTED
    station.advance(301)
    assert queue.outgoing_state is OutgoingState.DISCONNECTED
    assert [event.status.name for event in queue.history] == [
        "IN_PROCESS",
        "CONNECTION_REFUSED",
        "IN_PROCESS",
        "ESTABLISHED",
    ]


def test_a_purge_while_a_message_is_under_way(station: Station) -> None:
    station.send(b"1", b"2", b"3")
    station.post()
    station.world.finish(station.manager.purge(station.queue))
    station.answer()
    assert station.post() is None
    station.send(b"4")
    (fourth,) = station.exchange()
    station.receipt(fourth)
    assert station.queue.messages == 0


def test_the_stored_state_is_read_by_the_decoder(station: Station) -> None:
    station.send(b"1", time_to_reach_queue=10)
    station.send(b"2")
    station.post()
    station.answer(500)
    station.advance(20)
    station.exchange()
    station.send(b"3")
    station.exchange()
    ((_, value),) = station.world.store.tables.scan(Table.SEQUENCE, b"O", b"P", 10)
    state = decode.outgoing_stream(value)
    assert (state.base, state.answered) == (1, 1)
    assert state.alias > state.sequence_id
