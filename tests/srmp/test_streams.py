"""Streams that arrive by SRMP: exactly once, in order, and acknowledged together."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.packet.acks import FinalAck
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.streams import _STREAM, TERMS_PREFIX
from msmq_fast.store.schema import Table
from tests.support.srmp.station import ORDERING, SENDER, SINK, Station, envelope, stream

NUMBER = 0x432B1643_00000006
OTHER = UUID("11111111-2222-3333-4444-555555555555")
TO = Station.base + "tx"


@pytest.fixture
def station() -> Station:
    made = Station()
    made.make("tx", transactional=True)
    made.make("ty", transactional=True)
    return made


def text(current: int, number: int = NUMBER, *, to: str = TO, **values: object) -> str:
    parts = {name: values.pop(name) for name in ("previous", "sender") if name in values}
    receipts_to = str(values.pop("receipts_to", SINK))
    element = stream(number, current, to=receipts_to, **parts)  # type: ignore[arg-type]
    return envelope(to, headers=element, ordinal=current, **values)  # type: ignore[arg-type]


def acks(station: Station, url: str = SINK) -> list[tuple[UUID, int, int]]:
    """Stream receipts that wait to be sent: sender and number of the stream, last ordinal."""
    found = []
    for message in station.sent(url):
        assert message.message_class == MessageClass.ORDER_ACK
        ack = FinalAck.decode_body(message.body, message.message_class)
        found.append((ack.source, ack.sequence_timestamp << 32 | ack.sequence_ordinal, ack.sequence_number))
    return found


# ---- the gate


@pytest.mark.rule("SR-072", "SR-162", "SR-159")
def test_every_message_once_and_in_its_turn(station: Station) -> None:
    for current in (1, 1, 3, 2, 3, 2, 1):
        assert station.post(text(current), b"%d" % current) == 200
    assert station.taken("tx") == [b"1", b"2", b"3"]


@pytest.mark.rule("SR-075", "SR-162", "SR-115")
@pytest.mark.parametrize(
    ("messages", "taken"),
    [
        ([(1, None), (5, 1)], [1, 5]),
        ([(1, None), (5, 4)], [1]),
        ([(1, None), (3, None), (2, None)], [1, 2]),
        ([(1, None), (5, 3), (2, None), (5, 3), (3, None), (5, 3)], [1, 2, 3, 5]),
        ([(1, None), (2, None), (4, 2), (3, None)], [1, 2, 4]),
        ([(2, None), (2, 0), (1, None)], [1]),
        ([(1, 0), (3, 0)], [1, 3]),
    ],
)
def test_gaps_that_the_sender_names(
    station: Station, messages: list[tuple[int, int | None]], taken: list[int]
) -> None:
    for current, previous in messages:
        assert station.post(text(current, previous=previous), b"%d" % current) == 200
    assert station.taken("tx") == [b"%d" % current for current in taken]


@pytest.mark.rule("SR-162")
def test_a_newer_stream_follows_and_an_older_one_never_returns(station: Station) -> None:
    assert station.post(text(1), b"old 1") == 200
    assert station.post(text(1, NUMBER + 1), b"new 1") == 200
    for number, current in ((NUMBER, 1), (NUMBER - 1, 1), (NUMBER + 1, 1)):
        assert station.post(text(current, number), b"again") == 200
    assert station.taken("tx") == [b"old 1", b"new 1"]


@pytest.mark.rule("SR-162")
def test_an_older_stream_does_not_begin_again_after_it_was_forgotten(station: Station) -> None:
    for number in range(10):
        assert station.post(text(1, NUMBER + number), b"%d" % number) == 200
    for found in [each for each in station.streams.streams if each.identifier < NUMBER + 9]:
        station.advance(1)
        assert station.streams._forget(found)
    station.run()
    assert station.post(text(1, NUMBER + 3), b"again") == 200
    station.crash()
    assert station.post(text(1, NUMBER + 3), b"again") == 200
    latest = (each for each in station.streams.streams if each.dest_type == _STREAM)
    assert station.streams._forget(next(latest))
    assert station.post(text(1, NUMBER + 9), b"again") == 200
    assert len(station.taken("tx")) == 10


@pytest.mark.rule("SR-162")
def test_streams_of_several_senders_and_to_several_queues(station: Station) -> None:
    assert station.post(text(1), b"a") == 200
    assert station.post(text(1, NUMBER - 5, sender=OTHER), b"b") == 200
    assert station.post(text(1, NUMBER - 5, to=Station.base + "ty"), b"c") == 200
    assert station.taken("tx") == [b"a", b"b"]
    assert station.taken("ty") == [b"c"]


@pytest.mark.rule("SR-162")
def test_two_urls_of_one_queue_have_streams_of_their_own(station: Station) -> None:
    """A sender has an outgoing queue for each URL (A-15); a later stream by one says nothing of the other."""
    other = "http://localhost/msmq/private$/tx"
    assert station.post(text(1, NUMBER + 1), b"a") == 200
    assert station.post(text(1, NUMBER, to=other), b"b") == 200
    assert station.post(text(2, NUMBER, to=other), b"c") == 200
    assert station.post(text(2, NUMBER + 1), b"d") == 200
    station.crash()
    assert station.post(text(1, NUMBER - 1, to=other), b"old") == 200
    assert station.taken("tx") == [b"a", b"b", b"c", b"d"]


def test_a_sender_may_have_one_stream_for_all_queues(station: Station) -> None:
    """A-15: the stream is known by its streamId."""
    assert station.post(text(1), b"1") == 200
    assert station.post(text(2, to=Station.base + "ty"), b"2") == 200
    assert station.post(text(3), b"3") == 200
    assert (station.taken("tx"), station.taken("ty")) == ([b"1", b"3"], [b"2"])


@pytest.mark.rule("SR-162")
def test_what_expired_does_not_advance_its_stream(station: Station) -> None:
    assert station.post(text(1), b"1") == 200
    assert station.post(text(2, now=1_600_000_000), b"2") == 200
    assert station.post(text(3), b"3") == 200
    assert station.taken("tx") == [b"1"]
    assert station.post(text(3, previous=1), b"3") == 200
    assert station.taken("tx") == [b"1", b"3"]


def test_what_expired_in_a_stream_is_its_senders_business(station: Station) -> None:
    """No dead letter here, no final receipt, and above all no acknowledgment of MS-MQQB."""
    station.manager.incoming.register(final_acks=lambda packet, reason: pytest.fail("not by MS-MQQB"))
    late = text(1, now=1_600_000_000, flags="<DeadLetter/>")
    assert station.post(late, b"1") == 200
    station.advance(1)
    assert station.sent() == []
    for name in ("deadxact", "deadletter"):
        assert station.manager.find(f".\\system$;{name}").messages == 0


@pytest.mark.rule("SR-162")
def test_a_refused_message_does_not_advance_its_stream(station: Station) -> None:
    queue = station.manager.find(".\\private$\\tx")
    assert station.post(text(1), b"1") == 200
    station.finish(station.manager.set_properties(queue, quota_kb=1))
    assert station.post(text(2), bytes(2000)) == 400
    station.finish(station.manager.set_properties(queue, quota_kb=1000))
    assert station.post(text(3), b"3") == 200
    assert station.taken("tx") == [b"1"]
    assert station.post(text(2), b"2") == 200
    assert station.taken("tx") == [b"1", b"2"]


@pytest.mark.rule("SR-132", "SR-163", "KV-12", "REC-09")
def test_the_state_of_a_stream_survives_a_crash(station: Station) -> None:
    for current in (1, 2):
        assert station.post(text(current), b"%d" % current) == 200
    station.crash()
    ((key, _),) = station.store.tables.scan(Table.SEQUENCE, TERMS_PREFIX, b"U", 9)
    assert key == b"T" + SENDER.bytes_le + NUMBER.to_bytes(8)
    for current in (1, 2, 4, 3):
        assert station.post(text(current), b"%d" % current) == 200
    assert station.taken("tx") == [b"1", b"2", b"3"]
    assert not station.manager.damage


def test_messages_of_one_turn_build_on_each_other(station: Station) -> None:
    answers = [station.begin(text(current), b"%d" % current) for current in (1, 2, 2, 3)]
    station.run()
    assert [answer.result() for answer in answers] == [200] * 4
    assert station.taken("tx") == [b"1", b"2", b"3"]


def test_a_commit_that_fails_takes_the_stream_back(station: Station) -> None:
    assert station.post(text(1), b"1") == 200
    answers = [station.begin(text(current), b"%d" % current) for current in (2, 3, 2)]
    station.writer.submit()
    station.writer.complete_all(28)
    station.run()
    assert [answer.result() for answer in answers] == [500] * 3
    assert station.post(text(3), b"3") == 200
    assert station.taken("tx") == [b"1"]
    assert [station.post(text(current), b"%d" % current) for current in (2, 3)] == [200, 200]
    assert station.taken("tx") == [b"1", b"2", b"3"]


# ---- receipts


@pytest.mark.rule("SR-079", "SR-119", "SR-128", "SR-189")
def test_one_receipt_when_the_stream_pauses(station: Station) -> None:
    for current in (1, 2, 3):
        assert station.post(text(current), b"x") == 200
    station.advance(0.45)
    assert acks(station) == []
    station.advance(0.1)
    assert acks(station) == [(SENDER, NUMBER, 3)]
    (receipt,) = station.sent(SINK)
    assert f"MSMQ:{receipt.label}" == ORDERING
    assert str(receipt.response_queue) == f"DIRECT={TO}"
    assert (receipt.delivery, receipt.source_machine) == (0, station.manager.guid)
    station.advance(60)
    assert acks(station) == [(SENDER, NUMBER, 3)]
    assert station.streams.receipts == 1, "once"


@pytest.mark.rule("SR-121")
@pytest.mark.rule("SR-164")
def test_every_message_restarts_the_wait(station: Station) -> None:
    station.post(text(1), b"x")
    station.advance(0.4)
    station.post(text(2), b"x")
    station.advance(0.4)
    assert acks(station) == []
    station.advance(0.15)
    assert acks(station) == [(SENDER, NUMBER, 2)]


@pytest.mark.rule("SR-121")
@pytest.mark.rule("SR-164")
def test_after_ten_seconds_a_stream_that_goes_on_is_acknowledged(station: Station) -> None:
    for current in range(1, 25):
        station.post(text(current), b"x")
        station.advance(0.4)
    assert acks(station) == [], "9.6 s"
    station.post(text(25), b"x")
    station.advance(0.42)
    assert acks(station) == [(SENDER, NUMBER, 25)]
    station.post(text(26), b"x")
    station.advance(0.4)
    assert acks(station) == [(SENDER, NUMBER, 25)], "a new wait"


@pytest.mark.rule("SR-117")
def test_nothing_beyond_a_gap_is_acknowledged(station: Station) -> None:
    for current in (1, 2, 4):
        station.post(text(current), b"x")
    station.advance(1)
    assert acks(station) == [(SENDER, NUMBER, 2)]
    station.post(text(3), b"x")
    station.advance(1)
    assert acks(station) == [(SENDER, NUMBER, 3)], "the one before says nothing any more, and has gone"


@pytest.mark.rule("SR-118")
def test_a_receipt_tells_of_nothing_that_is_not_durable(station: Station) -> None:
    station.post(text(1), b"x")
    # The timer of the stream runs from here.
    station.streams.expire(station.clock.seconds, station.receipts.stream)
    assert station.streams.next_deadline() > station.clock.seconds
    answer = station.begin(text(2), b"x")
    station.clock.advance(5)
    station.manager.tick()
    station.streams.expire(station.clock.seconds, station.receipts.stream)
    assert not answer.done
    assert acks(station) == [(SENDER, NUMBER, 1)]
    station.advance(1)
    assert acks(station) == [(SENDER, NUMBER, 2)]


@pytest.mark.rule("SR-120")
def test_two_streams_two_receipts(station: Station) -> None:
    station.post(text(1), b"x")
    station.post(text(1, sender=OTHER), b"x")
    station.advance(1)
    assert sorted(acks(station)) == sorted([(SENDER, NUMBER, 1), (OTHER, NUMBER, 1)])


def test_a_repetition_is_acknowledged_again(station: Station) -> None:
    station.post(text(1), b"x")
    station.advance(1)
    (queue,) = station.manager.outgoing()
    station.finish(station.manager.purge(queue))  # the receipt is lost
    station.advance(30)
    assert acks(station) == []
    station.post(text(1), b"x")
    station.advance(1)
    assert acks(station) == [(SENDER, NUMBER, 1)]


@pytest.mark.rule("SR-190", "SR-132")
def test_receipts_go_where_message_1_said_also_after_a_restart(station: Station) -> None:
    here = "http://sender.example:8080/msmq/receipts"
    station.post(text(1, receipts_to=here), b"x")
    for current in range(2, 50):
        station.post(text(current), b"x")
    station.advance(1)
    station.crash()
    station.post(text(50), b"x")
    station.advance(1)
    assert acks(station, here) == [(SENDER, NUMBER, 50)]
    assert acks(station, SINK) == []


@pytest.mark.rule("KV-12", "SR-132")
def test_what_was_not_acknowledged_is_after_a_restart(station: Station) -> None:
    station.post(text(1), b"x")
    station.post(text(1, sender=OTHER), b"x")
    station.advance(0.1)
    station.crash()
    station.advance(1)
    assert sorted(acks(station)) == sorted([(SENDER, NUMBER, 1), (OTHER, NUMBER, 1)])
    station.crash()
    station.advance(1)
    assert acks(station) == [], "once: whoever missed it repeats its message"


def test_a_stream_to_ourselves_is_acknowledged_without_a_detour(station: Station) -> None:
    station.post(text(1, receipts_to="http://host/msmq/private$/order_queue$"), b"x")
    station.advance(1)
    assert station.recorder.calls == [("stream", SENDER, NUMBER, 1)]


def test_receipts_for_a_queue_of_this_computer_are_put_there(station: Station) -> None:
    queue = station.make("receipts")
    station.post(text(1, receipts_to=Station.base + "receipts"), b"x")
    station.advance(1)
    assert [message.message_class for message in station.messages(queue)] == [MessageClass.ORDER_ACK]


# ---- management


@pytest.mark.rule("SR-165")
@pytest.mark.rule("SR-166")
def test_what_management_sees(station: Station) -> None:
    queue = station.manager.find(".\\private$\\tx")
    station.post(text(1), b"x")
    for rejects in (1, 2):
        station.post(text(5), b"x")
        (transfer,) = station.streams.transfers()
        assert transfer.reject_count == rejects
    station.clock.advance(7)
    station.post(text(2), b"x")
    (transfer,) = station.streams.transfers()
    assert (transfer.queue, transfer.format_name) == (queue.ordinal, f"DIRECT={TO}")
    assert (transfer.sender, transfer.sequence_id, transfer.sequence_number) == (SENDER, NUMBER, 2)
    assert (transfer.last_access, transfer.reject_count) == (station.manager.ledger.now_s, 0)
    assert (Reason.OUT_OF_ORDER, f"uuid:5@{SENDER} to {TO}") in station.refused


def test_silent_streams_are_forgotten_in_the_end(station: Station) -> None:
    station.post(text(1), b"x")
    station.advance(1)
    station.clock.advance(91 * 86_400)
    station.manager.tick()
    station.streams.expire(station.clock.seconds, station.receipts.stream)
    station.run()
    assert not station.streams.transfers()
    assert not [key for key, _ in station.store.scan(8) if key[:1] in (b"S", b"T")]


def test_streams_that_follow_each_other_leave_little_behind(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msmq_fast.srmp.streams._MAX_CLOSED", 3)
    for number in range(20):
        station.post(text(1, NUMBER + number), b"x")
        station.advance(0.6)
    rows = [key for key, _ in station.store.scan(8) if key[:1] in (b"S", b"T")]
    assert len(rows) <= 2 * 5 + 1
    station.crash()
    assert len(station.streams.transfers()) <= 5
    assert station.post(text(1, NUMBER + 3), b"again") == 200
    assert len(station.taken("tx")) == 20
    for number in range(20, 40):
        station.post(text(1, NUMBER + number), b"x")
        station.advance(0.6)
    assert len([key for key, _ in station.store.scan(8) if key[:1] in (b"S", b"T")]) <= 2 * 5 + 1


def test_damaged_records_are_set_aside(station: Station) -> None:
    station.post(text(1), b"x")
    writer = station.writer
    writer.begin_unit()
    writer.put_record(8, b"T" + bytes(24), b"\x01\x80")
    writer.put_record(8, b"Tshort", b"\x01\x80")
    writer.put_record(8, b"S" + bytes(32), b"\x01\x02")
    writer.keep_unit()
    station.run()
    station.crash()
    assert station.manager.damage["stream"] == 3
    assert station.post(text(2), b"y") == 200
    assert station.taken("tx") == [b"x", b"y"]


# ---- a model

_STEP = st.tuples(st.sampled_from("mmmmca"), st.integers(0, 2), st.integers(1, 4), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(_STEP, max_size=25))
def test_against_a_model(steps: list[tuple[str, int, int, int]]) -> None:
    """Messages of three streams in any order, crashes, time: the queue has what the rules of 4.5 say."""
    station = Station()
    station.make("tx", transactional=True)
    last: dict[int, int] = {}
    greatest, taken = -1, []
    for kind, number, current, back in steps:
        if kind == "c":
            station.crash()
            continue
        if kind == "a":
            station.advance(0.7)
            continue
        previous = max(current - 1 - back, 0)
        body = b"%d:%d" % (number, current)
        accept = (
            current > last[number] and (current == last[number] + 1 or previous <= last[number])
            if number in last
            else current == 1 and number > greatest
        )
        if accept:
            last[number], greatest = current, max(greatest, number)
            taken.append(body)
        assert station.post(text(current, NUMBER + number, previous=previous), body) == 200
    assert station.taken("tx") == taken
