"""What the event feed tells of messages over HTTP and by multicast that were not taken: the audit follows
streams by it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmq_fast.protocol.classes import MessageClass
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.srmp.redirection import Redirections
from msmq_fast.store.decode import EventKind, FeedEvent
from msmq_fast.store.schema import Transport
from tests.support.clocks import WALL
from tests.support.srmp.station import SENDER, Station, compound, envelope, services, stream

DURABLE = services(durable=True)
GROUP = "234.1.1.1:8001"


def url(name: str) -> str:
    return Station.base + name


def told(station: Station, act: Callable[[], object]) -> list[FeedEvent]:
    """The events of what `act` does. They cause no commit: a new queue does."""
    feed = station.manager.events.feed
    station.make(f"before{feed.bounds()[1]}")
    after = feed.bounds()[1]
    act()
    station.make(f"behind{after}")
    return [event for event in feed.read(after) if event.kind != EventKind.QUEUE_CREATED]


def ordinal(station: Station, name: str) -> int:
    return int(station.manager.find(f".\\private$\\{name}").ordinal)


def test_a_repetition_in_a_stream_is_told_with_its_place(station: Station) -> None:
    number = 7 << 32 | 5
    one, two = (envelope(url("tx"), ordinal=each, headers=stream(number, each)) for each in (1, 2))
    first, again = [
        *told(station, lambda: [station.post(text, b"x") for text in (one, two)])[-1:],
        *told(station, lambda: station.post(two, b"x")),
    ]
    assert (first.kind, again.kind) == (EventKind.ARRIVED, EventKind.DUPLICATE)
    assert again.flags == Transport.SRMP
    assert (again.lookup_id, again.reason) == (0, 0)
    same = ("queue", "source", "ordinal", "size", "sequence_id", "sequence_number", "message_class")
    assert [getattr(first, name) for name in same] == [getattr(again, name) for name in same]
    assert (again.source, again.ordinal, again.sequence_number) == (SENDER.bytes_le, 2, 2)


@pytest.mark.parametrize("headers", [DURABLE, ""])
def test_a_repetition_without_a_stream_is_told_too(station: Station, headers: str) -> None:
    text = envelope(url("in"), headers=headers)
    station.post(text, b"x")
    (event,) = told(station, lambda: station.post(text, b"x"))
    assert event.kind == EventKind.DUPLICATE
    assert (event.queue, event.sequence_number) == (ordinal(station, "in"), 0)


def test_what_comes_too_early_in_its_stream_is_not_told(station: Station) -> None:
    station.post(envelope(url("tx"), headers=stream(5, 1)), b"x")
    assert not told(station, lambda: station.post(envelope(url("tx"), headers=stream(5, 3)), b"x"))


@pytest.mark.parametrize(
    ("text", "queue", "reason"),
    [
        (envelope(url("nosuch")), "", MessageClass.NACK_BAD_DST_Q),
        (envelope(url("in"), headers=stream(5, 1)), "in", MessageClass.NACK_NOT_TRANSACTIONAL_Q),
        (envelope(url("tx")), "tx", MessageClass.NACK_NOT_TRANSACTIONAL_MSG),
        (envelope(url("in"), now=WALL - 9, reach=8), "in", MessageClass.NACK_REACH_QUEUE_TIMEOUT),
        (
            envelope(url("in"), now=WALL - 9, reach=8, flags="<DeadLetter/>"),
            "in",
            MessageClass.NACK_REACH_QUEUE_TIMEOUT,
        ),
        (
            envelope(url("tx"), headers=stream(5, 1), now=WALL - 9, reach=8),
            "tx",
            MessageClass.NACK_REACH_QUEUE_TIMEOUT,
        ),
        (envelope(url("closed")), "closed", MessageClass.NACK_ACCESS_DENIED),
        (envelope(url("signed")), "signed", MessageClass.NACK_BAD_SIGNATURE),
        (envelope(url("small")), "small", MessageClass.NACK_Q_EXCEED_QUOTA),
    ],
)
def test_a_refusal_is_told_with_its_class(
    station: Station, text: str, queue: str, reason: MessageClass
) -> None:
    station.make("closed", security=parse_sddl("D:(D;;GA;;;WD)"))
    station.make("signed", authenticated=True)
    station.make("small", quota_kb=1)
    event = told(station, lambda: station.post(text, bytes(2000)))[0]
    assert event.kind == EventKind.NACKED
    assert (event.reason, event.message_class) == (reason, reason)
    assert event.queue == (ordinal(station, queue) if queue else 0)
    assert (event.source, event.ordinal, event.lookup_id) == (SENDER.bytes_le, 7, 0)
    assert event.size > 2000
    assert event.sequence_number == ("<current>" in text)


def test_what_is_to_come_again_and_what_is_no_message_is_not_told(station: Station) -> None:
    assert not told(station, lambda: station.post("no XML", b"x"))
    assert not told(station, lambda: station.post(envelope("http://elsewhere/msmq/in"), b"x"))
    assert not told(station, lambda: station.post(envelope(url("in"), message_class=1), b"x"))
    station.manager.ledger.quota_bytes = 10
    assert not told(station, lambda: station.post(envelope(url("in"), headers=DURABLE), b"x"))


def test_a_repetition_by_multicast_is_told_for_each_queue(station: Station) -> None:
    queues = [station.make(name, multicast_address=GROUP) for name in ("one", "two")]
    kind, body = compound(envelope(f"MSMQ:MULTICAST={GROUP}"), b"x")
    data = f"POST / HTTP/1.1\r\nContent-Type: {kind}\r\n\r\n".encode() + body

    def come() -> None:
        station.manager.tick()
        station.pipeline.handle_apdu(data, GROUP)

    come()
    events = told(station, come)
    assert [(event.kind, event.queue) for event in events] == [
        (EventKind.DUPLICATE, queue.ordinal) for queue in queues
    ]


def test_a_repetition_of_what_passes_through_is_told() -> None:
    station = Station(Redirections(transparent=True))
    text = envelope("http://elsewhere/msmq/private$/in", headers=DURABLE)
    station.post(text, b"x")
    (event,) = told(station, lambda: station.post(text, b"x"))
    assert (event.kind, event.queue) == (EventKind.DUPLICATE, 0)


def test_a_feed_that_is_off_hears_nothing() -> None:
    station = Station(feed=False)
    assert not told(station, lambda: station.post(envelope(url("nosuch")), b"x"))
