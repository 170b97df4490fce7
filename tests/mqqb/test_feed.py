"""What the event feed tells of messages that arrive over MS-MQQB: also of those that no queue takes."""

from __future__ import annotations

import struct

import pytest

from msmq_fast.protocol.classes import MessageClass
from msmq_fast.store import decode
from msmq_fast.store.decode import EventKind, FeedEvent
from msmq_fast.store.schema import Table, Transport
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host

THERE = "OS:h\\private$\\t"
SEQUENCE = 1_700_000_000 << 32 | 7


def telling() -> Host:
    host = Host()
    host.ledger.feed = True
    return host


def told(host: Host) -> list[FeedEvent]:
    host.writer.flush()
    host.commit()
    found = host.writer.tables.tables[Table.FEED]
    return [event for key in sorted(found) for event in decode.feed(key, found[key])]


def header(number: int) -> bytes:
    return struct.pack("<IQII", 0b1100, SEQUENCE, number, number - 1)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_arrives_once_and_its_repetition_is_told_of(plain: bool, recoverable: bool) -> None:
    host = telling()
    session = host.opened()
    session.receiver.plain = plain
    packet = wire.message(7, recoverable=recoverable)
    for _ in range(3):
        session.receive(packet, 101.0)
        host.commit()
    arrived, *again = told(host)
    assert arrived.kind == EventKind.ARRIVED
    assert [event.kind for event in again] == [EventKind.DUPLICATE] * 2
    assert {(event.source, event.ordinal, event.flags) for event in (arrived, *again)} == {
        (wire.PEER.bytes_le, 7, Transport.MQQB)
    }
    assert {event.size for event in again} == {arrived.size}
    assert {(event.lookup_id, event.arrival_seq, event.reason) for event in again} == {(0, 0, 0)}
    assert {event.queue for event in again} <= {arrived.queue, 0}


def test_transactional_messages_carry_their_place_in_the_sequence() -> None:
    host = telling()
    host.add("t", transactional=True)
    session = host.opened()
    for number in (1, 2, 2, 3, 1):
        session.receive(wire.message(number, queue=THERE, transaction=header(number)), 101.0)
        host.commit()
    events = told(host)
    assert [(event.kind, event.sequence_number) for event in events] == [
        (EventKind.ARRIVED, 1),
        (EventKind.ARRIVED, 2),
        (EventKind.DUPLICATE, 2),
        (EventKind.ARRIVED, 3),
        (EventKind.DUPLICATE, 1),
    ]
    assert {event.sequence_id for event in events} == {SEQUENCE}
    assert len({event.queue for event in events}) == 1


def test_a_message_that_comes_too_early_comes_again_and_is_not_told_of() -> None:
    host = telling()
    host.add("t", transactional=True)
    session = host.opened()
    session.receive(wire.message(9, queue=THERE, transaction=header(9)), 101.0)
    assert told(host) == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"queue": "OS:h\\private$\\nowhere"}, MessageClass.NACK_BAD_DST_Q),
        ({"transaction": header(1)}, MessageClass.NACK_NOT_TRANSACTIONAL_Q),
        ({"reach": 5}, MessageClass.NACK_REACH_QUEUE_TIMEOUT),
    ],
)
def test_a_message_that_is_refused_says_why(values: dict[str, object], reason: MessageClass) -> None:
    host = telling()
    session = host.opened()
    session.receive(wire.message(5, **values), 101.0)  # type: ignore[arg-type]
    (event,) = told(host)
    assert (event.kind, event.message_class, event.reason) == (EventKind.NACKED, reason, reason)
    assert (event.ordinal, event.flags) == (5, Transport.MQQB)


def test_a_feed_that_is_off_is_told_nothing() -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(7) + wire.message(7), 101.0)
    host.commit()
    assert not host.writer.tables.tables[Table.FEED]
