"""The receive pipeline of SRMP: what is taken, what is refused, and what a program then receives."""

from __future__ import annotations

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.qm.access import Access
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.redirection import Redirections
from tests.srmp.receiving import DELIVERY_RECEIPT, DURABLE, url
from tests.support.srmp.station import SENDER, Station, envelope, stream


@pytest.mark.rule("SR-159")
def test_a_message_that_passes_every_stage(station: Station) -> None:
    assert station.post(envelope(url("in"), headers=DURABLE), b"content") == 200
    assert station.taken() == [b"content"]
    assert not station.refused


@pytest.mark.rule("SR-034")
def test_content_of_the_soap_body_is_ignored(station: Station) -> None:
    assert station.post(envelope(url("in"), body="<x>what</x>"), b"content") == 200
    assert station.taken() == [b"content"]


def test_the_other_slashes_the_other_case_and_a_query(station: Station) -> None:
    for number, to in enumerate(
        ("http://HOST/MSMQ/PRIVATE$/IN", "http://host/msmq/private$\\in", url("in") + "?a=b")
    ):
        assert station.post(envelope(to, ordinal=number), b"%d" % number) == 200
    assert station.taken() == [b"0", b"1", b"2"]


# ---- what is refused


@pytest.mark.rule("SR-143")
@pytest.mark.parametrize(
    "text",
    [
        "no XML at all",
        "<a/>",
        envelope(url("in")).replace("<to>", "<too>").replace("</to>", "</too>"),
        pytest.param(envelope("ftp://host/msmq/private$/in"), marks=pytest.mark.rule("SR-048")),
        pytest.param(envelope("MSMQ:MULTICAST=234.1.1.1:8001"), marks=pytest.mark.rule("SR-048")),
        envelope("http://host:99999/msmq/private$/in"),
        envelope(url("tx"), headers=stream(1, 1), msmq=False),
    ],
)
def test_what_does_not_conform_changes_nothing(station: Station, text: str) -> None:
    before = station.manager.ledger.sequence
    assert station.post(text, b"content") == 400
    assert station.manager.ledger.sequence == before
    assert [reason for reason, _ in station.refused] == [Reason.MALFORMED]
    assert not station.sent()


@pytest.mark.rule("SR-145")
def test_another_computer_is_refused(station: Station) -> None:
    assert station.post(envelope("http://elsewhere/msmq/private$/in"), b"x") == 400
    assert not station.sent()


@pytest.mark.rule("SR-148")
def test_an_unknown_queue_is_refused(station: Station) -> None:
    assert station.post(envelope(url("nosuch")), b"x") == 400
    station.make("nosuch")
    assert station.post(envelope(url("nosuch")), b"x") == 200, "the refusal is not remembered"


@pytest.mark.rule("SR-149")
def test_a_stream_needs_a_transactional_queue(station: Station) -> None:
    assert station.post(envelope(url("in"), headers=stream(1, 1)), b"x") == 400
    assert station.taken() == []


@pytest.mark.rule("SR-150")
def test_a_transactional_queue_needs_a_stream(station: Station) -> None:
    assert station.post(envelope(url("tx"), headers=DURABLE), b"x") == 400
    assert station.post(envelope(url("tx"), headers=DELIVERY_RECEIPT, message_class=2)) == 400
    assert station.taken("tx") == []


@pytest.mark.rule("SR-071")
def test_a_stream_without_msmq_does_not_conform(station: Station) -> None:
    assert station.post(envelope(url("tx"), headers=DURABLE + stream(1, 1), msmq=False), b"x") == 400
    assert station.taken("tx") == []


@pytest.mark.rule("SR-134", "SR-158")
def test_a_message_of_no_type_is_refused(station: Station) -> None:
    assert station.post(envelope(url("in"), message_class=1), b"x") == 400
    assert station.taken() == []


def test_no_user_writes_to_the_order_queue(station: Station) -> None:
    assert station.post(envelope(url("order_queue$")), b"x") == 400


def test_a_queue_that_was_deleted_is_unknown_at_once(station: Station) -> None:
    assert station.post(envelope(url("in"), ordinal=1), b"x") == 200
    station.finish(station.manager.delete_queue(".\\private$\\in"))
    assert station.post(envelope(url("in"), ordinal=2), b"x") == 400
    station.make("in")
    assert station.post(envelope(url("in"), ordinal=3), b"y") == 200
    assert station.taken() == [b"y"]


def test_traced_messages_are_told_when_a_queue_has_them() -> None:
    station = Station(Redirections(transparent=True))
    station.make("in")
    station.make("tx", transactional=True)
    away, trace = "http://elsewhere/msmq/private$/in", "<Trace/>"
    texts = [
        envelope(url("in"), ordinal=1, flags=trace),
        envelope(url("in"), ordinal=1, flags=trace),
        envelope(url("in"), ordinal=2),
        envelope(url("tx"), ordinal=3, flags=trace),
        envelope(url("tx"), ordinal=4, flags=trace, headers=stream(5, 1)),
        envelope(url("tx"), ordinal=4, flags=trace, headers=stream(5, 1)),
        envelope(away, ordinal=5, flags=trace),
        envelope(away, ordinal=6),
    ]
    for text in texts:
        station.post(text, b"x")
    assert [message.message_id for message in station.traced] == [1, 4, 5]


@pytest.mark.rule("SR-159")
def test_a_program_receives_an_ordinary_message(station: Station) -> None:
    station.post(envelope(url("in"), headers=DURABLE, label="MSMQ:greeting", priority=6), b"hello", b"more")
    handle = station.manager.open(".\\private$\\in", Access.RECEIVE)
    message = Message.from_packet(station.finish(handle.receive(0).completion).packet)
    assert (message.label, message.body, message.extension, message.priority) == (
        "greeting",
        b"hello",
        b"more",
        6,
    )
    assert (message.source_machine, message.message_id) == (SENDER, 7)
