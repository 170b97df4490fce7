"""Transactional messages that arrive: the gate, its persistent state, OrderAcks and FinalAcks."""

from __future__ import annotations

import struct
from errno import ENOSPC
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.acks import FinalAck, OrderAck
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.outgoing.resending import Messenger
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.mqqb.streams import Telling, acknowledged, host_with_queue, tx
from tests.support.mqqb import wire
from tests.support.mqqb.headers import header
from tests.support.worlds.hosts import OWN, Host, sent

OTHER = UUID("11111111-2222-3333-4444-555555555555")


def finals(host: Host) -> list[tuple[int, int]]:
    """(class, MessageID) of the FinalAcks since the last call; OrderAcks are forgotten too."""
    found = [
        FinalAck.decode_body(ack.body, ack.message_class) for ack in host.acks if ack.message_class != 0xFF
    ]
    host.acks.clear()
    return [(ack.message_class, ack.message_id) for ack in found]


@pytest.mark.rule("QB-223", "QB-266", "QB-268", "QB-269", "QB-272", "QB-122", "QB-123")
@pytest.mark.rule("QB-145", "QB-314", "QB-315")
def test_a_stream_lands_once_in_order_and_is_acknowledged_half_a_second_later() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(2) + tx(3), 100.0)
    session.receive(tx(2) + tx(4), 100.0)
    host.commit()
    assert host.messages("t") == [101, 102, 103, 104]
    host.advance(0.4)
    assert host.acks == []
    host.advance(0.2)
    assert acknowledged(host) == [(7, 1, 4)]
    host.advance(60)
    assert host.acks == []


@pytest.mark.rule("QB-121", "QB-267", "QB-270")
def test_what_comes_too_early_is_dropped_in_silence_and_the_last_number_repeated() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(2), 100.0)
    host.commit()
    host.advance(1)
    assert acknowledged(host) == [(7, 1, 2)]
    early = tx(4, 3, ack_flags=4, admin="OS:h\\private$\\admin")
    session.receive(early, 101.0)
    host.commit()
    host.advance(1)
    assert ({ack.message_class for ack in host.acks}, acknowledged(host)) == ({0xFF}, [(7, 1, 2)])
    assert [reason for reason, _ in host.refusals] == ["out of order"]
    session.receive(tx(3) + early, 102.0)
    host.commit()
    host.advance(1)
    assert host.messages("t") == [101, 102, 103, 104]
    assert acknowledged(host) == [(7, 1, 4)]


@pytest.mark.rule("QB-226", "QB-275", "QB-280", "QB-108")
def test_every_message_is_counted_and_its_bit_set_when_its_disposition_is_durable() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(3, 2), 100.0)
    session.pump(100.0)
    assert sent(session) == []
    host.commit()
    session.pump(100.1)
    assert sent(session) == [wire.session_ack(ack=2, base_ack=1, flags=3)]


@pytest.mark.rule("QB-268")
@pytest.mark.parametrize(
    ("second", "taken"),
    [
        (tx(3, 1), True),  # 2 expired at its sender
        (tx(3, 2), False),
        (tx(1, 0), False),
        (tx(2, 0), True),
        (tx(0, 0), False),
    ],
)
def test_previous_numbers_bridge_what_the_sender_gave_up(second: bytes, taken: bool) -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + second, 100.0)
    host.commit()
    assert len(host.messages("t")) == 1 + taken


@pytest.mark.rule("QB-269")
@pytest.mark.parametrize(
    ("second", "taken"),
    [
        (tx(1, 0, ordinal=4), True),
        (tx(9, 0, ordinal=4), True),
        (tx(2, 1, ordinal=4), False),
        (tx(1, 0, ordinal=2), False),
        (tx(1, 0, ordinal=1, stamp=8), True),
        (tx(1, 0, ordinal=9, stamp=6), False),
        (tx(0, 0, ordinal=4), False),
    ],
)
def test_a_new_sequence_begins_with_a_greater_identifier_and_nothing_before_it(
    second: bytes, taken: bool
) -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1, ordinal=3) + second, 100.0)
    host.commit()
    assert len(host.messages("t")) == 1 + taken


@pytest.mark.rule("QB-273", "QB-112")
def test_streams_are_told_apart_by_sender_and_destination_not_by_session() -> None:
    host = host_with_queue()
    host.add("u", transactional=True)
    first, second = host.opened(), host.opened()
    first.receive(tx(1), 100.0)
    second.receive(wire.message(501, queue="OS:h\\private$\\u", transaction=header(1)), 100.0)
    second.receive(wire.message(502, queue="OS:h\\private$\\t", transaction=header(1), source=OTHER), 100.0)
    second.receive(tx(2), 100.0)
    second.receive(wire.message(103, queue="OS:H\\PRIVATE$\\T", transaction=header(3)), 100.0)
    host.commit()
    assert host.messages("t") == [101, 502, 102, 103]
    assert host.messages("u") == [501]
    assert len(host.session_context.streams) == 3


@pytest.mark.rule("QB-095", "QB-096", "QB-272", "QB-286", "KV-10", "REC-09")
def test_the_state_of_a_stream_survives_with_its_messages() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(2), 100.0)
    host.commit()
    host.opened().receive(tx(3), 100.0)  # dies before it is durable
    again = Host(tables=host.writer.crash())
    again.add("t", transactional=True)
    (stream,) = again.session_context.streams
    assert (stream.identifier, stream.number, stream.source) == (7 << 32 | 1, 2, wire.PEER.bytes_le)
    assert stream.address == "127.0.0.9"
    session = again.opened()
    session.receive(tx(2) + tx(4) + tx(3), 100.0)
    again.commit()
    assert again.messages("t") == [103]
    again.advance(1)
    assert acknowledged(again) == [(7, 1, 3)]


@pytest.mark.rule("QB-267")
def test_after_a_restart_the_repetition_of_what_is_kept_brings_the_order_ack() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(2), 100.0)
    host.commit()
    again = Host(tables=host.writer.crash())
    again.add("t", transactional=True)
    again.advance(30)
    assert again.acks == []
    again.opened().receive(tx(1) + tx(2), 130.0)
    again.commit()
    again.advance(1)
    assert acknowledged(again) == [(7, 1, 2)]


@pytest.mark.rule("QB-122", "QB-146", "QB-147", "QB-314", "QB-315")
def test_a_stream_that_does_not_pause_is_acknowledged_every_ten_seconds() -> None:
    host = host_with_queue()
    session = host.opened()
    times = []
    for number in range(1, 251):
        session.receive(tx(number), host.now)
        host.commit()
        session.data_to_send()
        host.advance(0.1)
        times += [host.now] * len(acknowledged(host))
    last = host.now
    host.advance(2)
    assert acknowledged(host) == [(7, 1, 250)]
    assert len(times) == 2  # the first one ten seconds after the stream was first heard
    gaps = [later - earlier for earlier, later in zip([100.0, *times], [*times, last + 0.5], strict=True)]
    assert max(gaps) <= 10.7
    assert min(gaps[:2]) >= 10.0
    assert session.state is SessionState.OPEN


def test_an_order_ack_says_only_what_is_durable() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    session.receive(tx(2), 100.0)
    host.advance(5)
    assert acknowledged(host) == [(7, 1, 1)]
    host.commit()
    host.advance(1)
    assert acknowledged(host) == [(7, 1, 2)]


@pytest.mark.rule("QB-041", "QB-042", "QB-044", "QB-045", "QB-047", "QB-048", "QB-049", "QB-396", "QB-398")
def test_the_packet_of_an_order_ack() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(2), 100.0)
    host.commit()
    host.advance(1)
    (ack,) = host.acks
    body = struct.pack("<IIII", 1, 7, 2, 1) + bytes(20)
    expected = wire.message(
        0,
        queue="TCP:127.0.0.9\\PRIVATE$\\order_queue$",
        body=body,
        label="QM Ordering Ack",
        priority=0,
        source=OWN,
        sent_time=0,
        message_class=0xFF,
    )
    mask = bytearray(expected)
    algorithms = expected.index(struct.pack("<II", 0x8004, 0x6801))
    mask[algorithms : algorithms + 8] = bytes(8)
    assert ack.to_packet() == bytes(mask)


@pytest.mark.rule("QB-274", "QB-051", "QB-231", "QB-057")
@pytest.mark.parametrize("told", [True, False])
def test_what_is_rejected_in_order_uses_up_its_number(told: bool) -> None:
    """Also where there is no room to tell its sender."""
    host = Telling() if told else Host(nack=lambda packet, reason: False)
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.add("t", transactional=True)
    session.receive(tx(2), 100.0)
    host.commit()
    assert finals(host) == [(MessageClass.NACK_BAD_DST_Q, 101)] * told
    assert host.messages("t") == [102]
    host.advance(1)
    assert acknowledged(host) == [(7, 1, 2)]
    session.pump(101.0)
    assert sent(session) == [wire.session_ack(ack=2, base_ack=1, flags=3)]


@pytest.mark.rule("QB-232", "QB-233")
def test_transactional_and_other_messages_go_to_their_kind_of_queue_only() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(wire.message(1, queue="OS:h\\private$\\t"), 100.0)
    session.receive(wire.message(2, queue="OS:h\\private$\\q", transaction=header(1)), 100.0)
    host.commit()
    assert [reason for reason, _ in host.refusals] == ["not transactional", "transactional"]
    assert finals(host) == [(MessageClass.NACK_NOT_TRANSACTIONAL_Q, 2)]
    assert host.messages("t") == host.messages() == []


@pytest.mark.rule("QB-265", "QB-285")
def test_what_expired_on_its_way_uses_up_its_number() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(2, reach=5), 100.0)
    session.receive(tx(3), 100.0)
    host.commit()
    assert finals(host) == [(MessageClass.NACK_REACH_QUEUE_TIMEOUT, 102)]
    assert host.messages("t") == [101, 103]


@pytest.mark.rule("QB-283", "X-37")
def test_a_full_queue_rejects_and_the_stream_goes_on() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host["t"].quota_bytes = 1
    session.receive(tx(2), 100.0)
    host["t"].quota_bytes = 1 << 20
    session.receive(tx(3), 100.0)
    host.commit()
    assert finals(host) == [(MessageClass.NACK_Q_EXCEED_QUOTA, 102)]
    assert host.messages("t") == [101, 103]


@pytest.mark.rule("QB-284", "X-37")
def test_a_full_queue_manager_closes_and_takes_the_message_later() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host.ledger.quota_bytes = 1
    session.receive(tx(2), 100.0)
    assert session.reason is CloseReason.QUOTA
    host.ledger.quota_bytes = 1 << 30
    second = host.opened()
    second.receive(tx(2), 101.0)
    host.commit()
    assert host.messages("t") == [101, 102]


@pytest.mark.rule("QB-272")
@pytest.mark.parametrize("sealed", [False, True])
def test_a_commit_that_fails_leaves_no_gap(sealed: bool) -> None:
    """The next batch has a later message of the stream: gathered, or on its way, when the disk is full."""
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host.writer.fail_commit(1, ENOSPC)
    session.receive(tx(2), 100.0)
    host.writer.submit()
    session.receive(tx(3, body=bytes(2 << 20) if sealed else b""), 100.0)
    if sealed:
        session.receive(tx(4), 100.0)
    other = host.opened()
    host.commit()
    session.pump(100.5)
    assert session.reason is CloseReason.STORE_FAILED
    assert host.messages("t") == [101]
    (stream,) = host.session_context.streams
    assert (stream.number, stream.durable_number) == (1, 1)
    other.receive(tx(2) + tx(3), 101.0)
    host.commit()
    assert host.messages("t") == [101, 102, 103]
    again = Host(tables=host.writer.crash())
    (stream,) = again.session_context.streams
    assert stream.number == 3


def test_other_batches_are_kept_when_one_with_a_stream_fails() -> None:
    host = host_with_queue()
    first, second = host.opened(), host.opened()
    host.writer.fail_commit(1, ENOSPC)
    first.receive(tx(1), 100.0)
    host.writer.submit()
    second.receive(wire.message(7, recoverable=True), 100.0)
    host.commit()
    assert host.messages() == [7]
    assert host.messages("t") == []
    assert second.state is SessionState.OPEN


@pytest.mark.rule("QB-158", "QB-159", "QB-160", "QB-220")
@pytest.mark.parametrize("queue", ["TCP:127.0.0.1\\PRIVATE$\\order_queue$", "OS:h\\private$\\ORDER_QUEUE$"])
def test_acknowledgments_of_what_was_sent_are_handed_over_counted_and_acknowledged(queue: str) -> None:
    heard: list[object] = []

    class Sequences:
        def order_ack(self, ack: OrderAck, now: float, messenger: Messenger) -> None:
            heard.append((ack, now))

        def final_ack(self, ack: FinalAck, now: float, messenger: Messenger) -> None:
            heard.append((ack, now))

    host = Host(hooks=Hooks(sequences=Sequences()))  # type: ignore[arg-type]
    session = host.opened()
    order = struct.pack("<IIII", 3, 9, 12, 11) + b"junk" * 5
    final = struct.pack("<IIII16sI", 3, 9, 12, 11, OWN.bytes_le, 55)
    label = "QM Ordering Ack"
    session.receive(wire.message(1, queue=queue, body=order, label=label, message_class=0xFF), 101.0)
    session.receive(
        wire.message(2, queue=queue, body=final, label=label, message_class=0x4000, recoverable=True), 102.0
    )
    session.receive(
        wire.message(3, queue=queue, body=final, label=label, message_class=0xC001, recoverable=True), 102.0
    )
    assert heard == [
        (OrderAck(3, 9, 12), 101.0),
        (FinalAck(3, 9, 12, 11, OWN, 55, 0x4000), 102.0),
        (FinalAck(3, 9, 12, 11, OWN, 55, 0xC001), 102.0),
    ]
    session.pump(102.0)
    assert sent(session) == []
    host.commit()
    session.pump(102.0)
    assert sent(session) == [wire.session_ack(ack=3, base_ack=1, flags=3)]
    assert (host.session_context.counts.order_acks, host.session_context.counts.final_acks) == (1, 2)
    assert host.refusals == []


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"label": "QM Ordering Ack", "body": b"short", "message_class": 0xFF}, "malformed acknowledgment"),
        ({"label": "another", "body": bytes(36), "message_class": 0xFF}, "unknown queue"),
        ({"label": "QM Ordering Ack", "body": bytes(36), "message_class": 2}, "unknown queue"),
    ],
)
def test_what_is_no_acknowledgment_does_not_enter_the_order_queue(
    fields: dict[str, object], refusal: str
) -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(1, queue="OS:h\\private$\\order_queue$", **fields), 101.0)  # type: ignore[arg-type]
    assert [reason for reason, _ in host.refusals] == [refusal]
    assert session.state is SessionState.OPEN


@pytest.mark.rule("QB-222")
@pytest.mark.parametrize("plain", [False, True])
def test_the_steps_of_the_pipeline_come_in_their_order(plain: bool) -> None:
    """The gate, expiry, the queue, its type, its demands: the first that fails decides."""
    host = Telling()
    host.add("t", transactional=True)
    host.add("secret", transactional=True, encrypted_only=True)
    session = host.opened()
    session.receiver.plain = plain

    def say(queue: str, number: int, previous: int = 0, reach: int = wire.NEVER) -> str:
        place = header(number, previous)
        name = f"OS:h\\private$\\{queue}"
        session.receive(wire.message(number, queue=name, transaction=place, reach=reach), 100.0)
        return str(host.refusals.pop()[0]) if host.refusals else ""

    assert say("none", 7, previous=6, reach=1) == "out of order"
    assert say("none", 1, reach=1) == "time to reach queue passed"
    assert say("none", 2) == "unknown queue"
    assert say("q", 1, reach=1) == "time to reach queue passed"
    assert say("q", 2) == "transactional"
    assert say("secret", 1) == "encrypted"
    assert say("t", 1) == ""
    assert say("t", 1, reach=1) == "duplicate"
    session.receive(wire.message(900, queue="OS:h\\private$\\none", reach=1), 100.0)
    session.receive(wire.message(901, queue="OS:h\\private$\\none"), 100.0)
    session.receive(wire.message(902, queue="OS:h\\private$\\secret"), 100.0)
    assert [str(reason) for reason, _ in host.refusals] == [
        "time to reach queue passed",
        "unknown queue",
        "not transactional",
    ]


def test_a_stream_of_which_nothing_came_for_long_is_forgotten() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host.advance(89 * 86_400)
    assert len(host.session_context.streams) == 1
    host.advance(2 * 86_400)
    host.commit()
    assert len(host.session_context.streams) == 0
    assert len(Host(tables=host.writer.crash()).session_context.streams) == 0


def test_there_are_no_more_streams_than_may_be() -> None:
    class Narrow(Host):
        streams_limit = 1

    host = Narrow()
    host.add("t", transactional=True)
    first, second = host.opened(), host.opened()
    first.receive(tx(1) + tx(2), 100.0)
    second.receive(wire.message(9, queue="OS:h\\private$\\t", transaction=header(1), source=OTHER), 100.0)
    host.commit()
    assert second.reason is CloseReason.QUOTA
    assert host.messages("t") == [101, 102]


@pytest.mark.rule("KV-10")
def test_the_record_of_a_stream_says_what_management_sees() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(2) + tx(9, 8), 100.0)
    host.commit()
    host.advance(1)
    host.commit()
    ((key, value),) = host.tables.scan(Table.SEQUENCE, b"I", b"J", 10)
    assert decode.incoming_stream(key, value) == decode.IncomingStream(
        source=wire.PEER.bytes_le,
        dest_type=7,
        name=wire.direct("OS:h\\private$\\t"),
        address="127.0.0.9",
        queue=host["t"].ordinal,
        sequence_id=7 << 32 | 1,
        sequence_number=2,
        rejects=1,
        accessed_s=2_000,
    )
    for size in range(len(value) - len(wire.direct("OS:h\\private$\\t"))):
        with pytest.raises(decode.DecodeError):
            decode.incoming_stream(key, value[:size])


@pytest.mark.rule("QB-223")
@pytest.mark.parametrize("plain", [False, True])
def test_numbers_decide_about_transactional_messages_not_identifiers(plain: bool) -> None:
    """A transactional message is no repetition because of its MessageID, and makes no other one."""
    host = host_with_queue()
    session = host.opened()
    session.receiver.plain = plain
    session.receive(wire.message(102), 100.0)
    session.receive(tx(1) + tx(2), 100.0)
    session.receive(wire.message(101), 100.0)
    host.commit()
    assert (host.messages(), host.messages("t")) == ([102, 101], [101, 102])
    assert not host.tables.tables[Table.HISTORY]


def test_a_stream_of_which_nothing_is_kept_is_not_acknowledged() -> None:
    host = host_with_queue()
    host.opened().receive(tx(5), 100.0)
    host.commit()
    host.advance(20)
    assert host.acks == []
    assert [reason for reason, _ in host.refusals] == ["out of order"]


def test_a_stream_without_an_identifier_leaves_no_record_behind() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1, 0, ordinal=0, stamp=0), 100.0)
    host.commit()
    host.advance(1)
    assert len(host.tables.scan(Table.SEQUENCE, b"I", b"J", 9)) == 1
    assert host.order_acks.streams.forget(0xFFFFFFFF) == 1
    host.commit()
    assert host.tables.scan(Table.SEQUENCE, b"I", b"J", 9) == []


@pytest.mark.rule("QB-097")
def test_the_number_of_messages_out_of_order_survives() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(3, 2) + tx(4, 3), 100.0)
    host.commit()
    host.advance(1)
    host.commit()
    again = Host(tables=host.writer.crash())
    (stream,) = again.session_context.streams
    assert (stream.number, stream.rejects) == (1, 2)
    again.add("t", transactional=True)
    again.opened().receive(tx(2), 101.0)
    again.commit()
    assert stream.rejects == 0


def test_names_that_no_queue_can_have_are_not_remembered() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(wire.message(9, queue="OS:h\\private$\\" + "t" * 2000, transaction=header(1)), 100.0)
    host.commit()
    assert session.reason is None  # its sender would send the message again for ever
    assert [reason for reason, _ in host.refusals] == [Refusal.BAD_NAME]
    assert len(host.session_context.streams) == 0


def test_streams_that_no_queue_took_make_room() -> None:
    class Narrow(Host):
        streams_limit = 1

    host = Narrow()
    host.add("t", transactional=True)
    host.opened().receive(wire.message(9, queue="OS:h\\private$\\none", transaction=header(1)), 100.0)
    host.commit()
    host.advance(1)
    host.opened().receive(tx(1), 101.0)
    host.commit()
    assert host.messages("t") == [101]
    (stream,) = host.session_context.streams
    assert stream.queue == host["t"].ordinal


def test_streams_that_were_silent_for_a_day_make_room() -> None:
    """Or whoever claims to be many senders would keep others out for as long as streams are remembered."""

    class Narrow(Host):
        streams_limit = 2

    def arrive(source: UUID, message: int) -> CloseReason | None:
        session = host.opened(host.now)
        name = "OS:h\\private$\\t"
        session.receive(wire.message(message, queue=name, transaction=header(1), source=source), host.now)
        host.commit()
        host.advance(1)  # what was taken has been acknowledged
        return session.reason

    host = Narrow()
    host.add("t", transactional=True)
    strangers = [UUID(int=number) for number in range(1, 4)]
    assert arrive(strangers[0], 1) is None
    host.advance(3_600)
    assert arrive(strangers[1], 1) is None
    host.advance(82_000)
    assert arrive(strangers[2], 1) is CloseReason.QUOTA
    host.advance(1_000)
    assert arrive(strangers[2], 1) is None
    assert {UUID(bytes_le=stream.source) for stream in host.session_context.streams} == set(strangers[1:])
    assert len(host.tables.scan(Table.SEQUENCE, b"I", b"J", 10)) == 2


@pytest.mark.rule("QB-268", "QB-269", "QB-270")
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 5), st.integers(0, 5)), max_size=30
    ),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_gate_against_a_model(steps: list[tuple[int, int, int, int]], plain: bool) -> None:
    host = host_with_queue()
    session = host.opened(window=1024)
    session.receiver.plain = plain
    identifier, last, rejects, taken = (0, 0), 0, 0, []
    for index, (ordinal, stamp, number, previous) in enumerate(steps, 1):
        place = header(number, previous, ordinal, stamp)
        session.receive(wire.message(index, queue="OS:h\\private$\\t", transaction=place), 100.0)
        same = (stamp, ordinal) == identifier and number > last and previous <= last
        if same or ((stamp, ordinal) > identifier and previous == 0 and number > 0):
            identifier, last, rejects = (stamp, ordinal), number, 0
            taken.append(index)
        else:
            rejects += 1
    host.commit()
    assert host.messages("t") == taken
    if steps:
        (stream,) = host.session_context.streams
        found = (stream.identifier, stream.number, stream.durable_number, stream.rejects)
        assert found == (identifier[0] << 32 | identifier[1], last, last, rejects)


@pytest.mark.parametrize("cut", [1, 20, 27])
def test_a_damaged_record_is_set_aside(cut: int) -> None:
    host = host_with_queue()
    host.opened().receive(tx(1), 100.0)
    host.commit()
    table = host.writer.crash()
    (key,) = table.tables[8]
    table.tables[8][key] = table.tables[8][key][:cut]
    again = Host(tables=table)
    assert len(again.damage) == 1
    assert len(again.session_context.streams) == 0


def both(packets: list[bytes]) -> list[tuple[list[int], list[tuple[str, str]], int]]:
    """What becomes of messages on the native path and on the general one."""
    found = []
    for plain in (True, False):
        host = host_with_queue()
        session: Session = host.opened()
        session.receiver.plain = plain
        for packet in packets:
            session.receive(packet, 100.0)
        host.commit()
        host.advance(1)
        found.append((host.messages("t"), [str(reason) for reason, _ in host.refusals], acknowledged(host)))
    return found  # type: ignore[return-value]


def test_the_native_path_and_the_general_one_decide_alike() -> None:
    packets = [
        tx(1),
        tx(2),
        tx(2),
        tx(4),
        tx(3),
        tx(5, 3, reach=1),
        tx(6, 5),
        tx(1, ordinal=2),
        tx(7),
        tx(2, ordinal=2),
        tx(4, 3, ordinal=2),
    ]
    native, general = both(packets)
    assert native == general
    assert native[0] == [101, 102, 103, 106, 201, 202]
