"""The receive pipeline of SRMP: the order of its steps, and what each of them leaves behind."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.classes import MessageClass
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.redirection import Redirections
from tests.support.clocks import WALL
from tests.support.srmp.station import ADMIN, Station, compound, envelope, services, stream

DURABLE = services(durable=True)
GROUP = "234.1.1.1:8001"


def url(name: str) -> str:
    return Station.base + name


@pytest.mark.rule("SR-134")
@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        (envelope(url("nosuch"), now=WALL - 9, reach=8, flags="<App/>"), 400, Reason.MALFORMED),
        pytest.param(
            envelope(url("nosuch"), now=WALL - 9, reach=8),
            400,
            Reason.UNKNOWN_QUEUE,
            marks=pytest.mark.rule("SR-148"),
        ),
        (envelope("http://elsewhere/msmq/in", now=WALL - 9, reach=8), 400, Reason.FOREIGN_HOST),
        (envelope(url("tx"), now=WALL - 9, reach=8), 400, Reason.TRANSACTIONAL),
        (envelope(url("in"), now=WALL - 9, reach=8), 200, Reason.EXPIRED),
        (envelope(url("nosuch"), message_class=1), 400, Reason.UNKNOWN_QUEUE),
        (envelope(url("in")), 200, None),  # known before the queue is asked
    ],
)
def test_the_first_step_that_fails_decides(
    station: Station, text: str, status: int, reason: Reason | None
) -> None:
    """The queue is full and has a message with this identifier, so the steps behind fail, too."""
    assert station.post(envelope(url("in")), b"first") == 200
    station.finish(station.manager.set_properties(station.manager.find(".\\private$\\in"), quota_kb=0))
    assert station.post(text, b"first") == status
    assert [each for each, _ in station.refused] == ([] if reason is None else [reason])
    assert station.taken() == [b"first"]


@pytest.mark.rule("SR-057", "SR-068")
def test_an_expired_message_of_a_stream_gets_its_negative_receipt(station: Station) -> None:
    asked = services(durable=True, commitment=ADMIN, negative=True) + stream(9, 1)
    assert station.post(envelope(url("tx"), headers=asked, now=WALL - 100, reach=99), b"late") == 200
    assert [receipt.message_class for receipt in station.sent(ADMIN)] == [MessageClass.NACK_RECEIVE_TIMEOUT]
    assert station.taken("tx") == []


@pytest.mark.rule("SR-057")
def test_what_has_expired_is_not_passed_on() -> None:
    station = Station(Redirections(transparent=True), http=True)
    away = "http://elsewhere/msmq/private$/in"
    assert station.post(envelope(away, now=WALL - 100, reach=99), b"late") == 200
    assert not station.manager.outgoing()
    assert station.post(envelope(away, now=WALL - 100, reach=200), b"in time") == 200
    assert [queue.messages for queue in station.manager.outgoing()] == [1]


@pytest.mark.rule("SR-177")
def test_what_passes_through_without_an_identifier_is_no_repetition() -> None:
    station = Station(Redirections(transparent=True), http=True)
    for _ in range(2):
        assert station.post(envelope("http://elsewhere/msmq/private$/in", msmq=False), b"x") == 200
    assert [queue.messages for queue in station.manager.outgoing()] == [2]


@pytest.mark.rule("SR-158")
def test_a_multicast_message_of_no_type_is_disregarded(station: Station) -> None:
    station.make("one", multicast_address=GROUP)
    kind, body = compound(envelope(f"MSMQ:MULTICAST={GROUP}", message_class=1), b"x")
    station.pipeline.handle_apdu(f"POST / HTTP/1.1\r\nContent-Type: {kind}\r\n\r\n".encode() + body, GROUP)
    station.run()
    assert station.taken("one") == []
    assert [each for each, _ in station.refused] == [Reason.UNTYPED]


@pytest.mark.rule("SR-179")
def test_the_right_to_peek_is_not_the_right_to_send(station: Station) -> None:
    station.make("seen", security=parse_sddl("D:P(A;;DC;;;WD)(A;;DC;;;AN)"))
    assert station.post(envelope(url("seen"), headers=DURABLE), b"x") == 400
    assert [each for each, _ in station.refused] == [Reason.ACCESS_DENIED]
    assert station.taken("seen") == []


@pytest.mark.rule("SR-182")
def test_while_the_queue_manager_is_throttled_senders_try_again(station: Station) -> None:
    for name, headers in (("in", DURABLE), ("tx", stream(1, 1))):
        station.manager.ledger.throttled = True
        assert station.post(envelope(url(name), headers=headers), b"x") == 500
        station.manager.ledger.throttled = False
        assert station.post(envelope(url(name), headers=headers), b"x") == 200
        assert station.taken(name) == [b"x"]


@pytest.mark.rule("SR-181")
def test_a_full_queue_does_not_advance_a_stream(station: Station) -> None:
    queue = station.manager.find(".\\private$\\tx")
    station.finish(station.manager.set_properties(queue, quota_kb=1))
    text = envelope(url("tx"), headers=stream(9, 1))
    assert station.post(text, bytes(2000)) == 400
    station.finish(station.manager.set_properties(queue, quota_kb=100))
    assert station.post(text, bytes(2000)) == 200
    assert station.taken("tx") == [bytes(2000)]
