"""SRMP messages of a multicast group: the queues that are bound to it, and public queues."""

from __future__ import annotations

import pytest

from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.srmp.reasons import Reason
from tests.srmp.receiving import GROUP, apdu, url
from tests.support.srmp.station import Station, envelope, stream
from tests.support.worlds.directories import everything


@pytest.mark.rule("SR-144", "SR-006")
def test_multicast_goes_into_every_bound_queue_once(station: Station) -> None:
    for name in ("one", "two"):
        station.make(name, multicast_address=GROUP)
    station.make("other", multicast_address="234.1.1.1:8002")
    text = envelope(f"MSMQ:MULTICAST={GROUP}")
    for _ in range(2):
        station.pipeline.handle_apdu(apdu(text, b"all"), GROUP)
        station.run()
    assert [station.taken(name) for name in ("one", "two", "other", "in")] == [[b"all"], [b"all"], [], []]


@pytest.mark.rule("SR-144", "SR-006")
def test_multicast_without_a_queue_is_disregarded(station: Station) -> None:
    station.make("other", multicast_address="234.1.1.1:8002")
    station.pipeline.handle_apdu(apdu(envelope(f"MSMQ:MULTICAST={GROUP}"), b"x"), GROUP)
    station.run()
    assert [reason for reason, _ in station.refused] == [Reason.NO_GROUP]
    assert [station.taken(name) for name in ("other", "in")] == [[], []]
    station.make("late", multicast_address=GROUP)  # nothing was kept for a queue that comes later
    station.run()
    assert station.taken("late") == []


@pytest.mark.rule("SR-048")
def test_multicast_knows_neither_streams_nor_other_groups_nor_nonsense(station: Station) -> None:
    station.make("one", multicast_address=GROUP)
    station.pipeline.handle_apdu(apdu(envelope(f"MSMQ:MULTICAST={GROUP}", headers=stream(1, 1)), b"x"), GROUP)
    station.pipeline.handle_apdu(apdu(envelope("MSMQ:MULTICAST=234.9.9.9:1"), b"x"), GROUP)
    station.pipeline.handle_apdu(apdu(envelope(url("in")), b"x"), GROUP)
    station.pipeline.handle_apdu(b"nonsense", GROUP)
    station.run()
    assert [station.taken(name) for name in ("one", "in")] == [[], []]
    assert [reason for reason, _ in station.refused] == [Reason.MULTICAST_STREAM, *[Reason.MALFORMED] * 3]


@pytest.mark.rule("SR-225")
def test_a_public_queue_is_the_one_of_the_directory() -> None:
    station = Station()
    to = "http://host/msmq/orders"
    assert station.post(envelope(to), b"early") == 400
    orders = station.create(".\\orders")
    published = everything(station.manager.directory.events.provider, ObjectType.QUEUE)
    assert [item.identifier for item in published] == [orders.guid]
    assert station.post(envelope(to), b"in time") == 200
    assert [message.body for message in station.messages(orders)] == [b"in time"]
    station.finish(station.manager.delete_queue(orders.name))
    assert station.post(envelope(to), b"late") == 400
