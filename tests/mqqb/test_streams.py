"""Transactional messages that arrive: the gate takes each once and in order; its place in the pipeline."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.mqqb.session import Session
from msmq_fast.store.schema import Table
from tests.mqqb.streams import Telling, acknowledged, host_with_queue, tx
from tests.mqqb.transfers import OTHER
from tests.support.mqqb import wire
from tests.support.mqqb.headers import header
from tests.support.worlds.hosts import sent


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
