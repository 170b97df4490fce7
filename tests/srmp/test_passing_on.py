"""SRMP messages that are redirected or passed on: envelopes, repetitions, hops, receipts."""

from __future__ import annotations

import pytest

from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.srmp.http.request import HttpRequest
from msmq_fast.srmp.outgoing import Request, Requests
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.redirection import Pair, Redirections
from msmq_fast.srmp.sending import url_of
from tests.srmp.receiving import DURABLE, url
from tests.support.clocks import WALL
from tests.support.srmp.station import ADMIN, SENDER, Station, compound, envelope, services, stream


@pytest.mark.rule("SR-147")
def test_inbound_redirection_comes_before_the_look_at_the_host() -> None:
    station = Station(Redirections(inbound=(Pair("http://public.example/*", url("in")),)))
    station.make("in")
    assert station.post(envelope("http://public.example/msmq/orders"), b"x") == 200
    (message,) = station.messages(station.manager.find(".\\private$\\in"))
    assert str(message.destination) == "DIRECT=http://public.example/msmq/orders", "as it was sent (A-52)"


@pytest.mark.rule("SR-146")
def test_store_and_forward_keeps_the_envelope() -> None:
    station = Station(Redirections(transparent=True))
    to = "http://elsewhere/msmq/private$/in"
    text = envelope(to, headers=DURABLE + stream(1, 3))
    answer = station.begin(text, b"content")
    assert not answer.done
    station.run()
    assert answer.result() == 200
    (queue,) = station.manager.outgoing()
    assert str(queue.destination) == f"DIRECT={to}"
    (message,) = station.messages(queue)
    assert (message.source_machine, message.message_id, message.body) == (SENDER, 7, b"content")
    assert message.transaction is not None
    assert message.transaction.sequence_number == 3
    assert not station.streams.transfers(), "nothing is numbered here"
    assert station.post(text, b"content") == 200
    assert len(station.messages(queue)) == 1, "it waits already"
    (sent,) = queue_requests(station, queue)
    assert sent.body == compound(text, b"content")[1], "the same bytes"
    assert (sent.host, sent.target) == ("elsewhere", b"/msmq/private$/in")
    assert dict(sent.headers)[b"Via"] == b"1.1 msmq-fast"


def sent_away(station: Station) -> None:
    """What waits in outgoing queues has left."""
    for queue in station.manager.outgoing():
        station.finish(station.manager.purge(queue))
    station.run()


def test_what_was_passed_on_is_not_passed_on_to_the_same_url_again() -> None:
    station = Station(Redirections(transparent=True))
    there, else_where = "http://there/msmq/private$/in", "http://elsewhere/msmq/private$/in"
    for headers in (DURABLE, ""):
        text = envelope(there, ordinal=len(headers), headers=headers)
        assert station.post(text, b"x") == 200
        assert len(station.sent()) == 1
        sent_away(station)
        assert station.post(text, b"x") == 200, "it went round in a circle, or its answer was lost"
        assert not station.sent()
        assert station.post(envelope(else_where, ordinal=len(headers), headers=headers), b"x") == 200
        assert len(station.sent()) == 1
        sent_away(station)
    assert station.pipeline.counters.not_taken[Reason.DUPLICATE] == 2


def test_what_could_not_be_stored_may_be_passed_on_again() -> None:
    station = Station(Redirections(transparent=True))
    text = envelope("http://there/msmq/private$/in", headers=DURABLE)
    first, again = station.begin(text, b"x"), station.begin(text, b"x")
    station.writer.submit()
    station.writer.complete_all(28)  # no space left
    station.run()
    assert (first.result(), again.result()) == (500, 500)
    assert station.post(text, b"x") == 200
    assert len(station.sent()) == 1


def test_a_stream_passes_as_often_as_its_sender_repeats_it() -> None:
    station = Station(Redirections(transparent=True))
    to = "http://there/msmq/private$/in"
    one, two = (envelope(to, headers=stream(5, number)) for number in (1, 2))  # with one id, as in 4.4
    for _ in range(2):
        assert [station.post(text, b"x") for text in (one, two, one)] == [200] * 3
        assert len(station.sent()) == 2
        sent_away(station)


@pytest.mark.parametrize("named", [1, 29])
def test_a_message_is_passed_on_so_often_at_most(named: int) -> None:
    """Computers that lead a URL to each other: also what has no identifier does not go round for ever."""
    station = Station(Redirections(transparent=True))
    text = envelope("http://there/msmq/private$/in", msmq=False)
    kind, body = compound(text, b"x")
    names = ["1.1 relay"] * named
    via = f"Via: {names[0]}\r\nVia: {', '.join(names[1:])}\r\n" if named > 1 else f"via:{names[0]}\r\n"
    head = f"POST /msmq/x HTTP/1.1\r\n{via}Content-Type: {kind}\r\n\r\n".encode()
    fields = [(b"content-type", kind.encode())]
    answer = station.pipeline.handle(HttpRequest("POST", b"/msmq/x", fields, body, raw_head=head))
    station.run()
    if named == 1:
        assert answer.result() == 200
        (request,) = queue_requests(station, next(iter(station.manager.outgoing())))
        assert dict(request.headers)[b"Via"] == b"1.1 relay, 1.1 msmq-fast"
    else:
        assert answer.result() == 400
        assert [reason for reason, _ in station.refused] == [Reason.HOPS]
        assert not station.sent()


def queue_requests(station: Station, queue: OutgoingQueue) -> list[Request]:
    """What leaves an outgoing queue."""
    packets: list[bytes] = []
    for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
        queue.core.peek(key, lambda message, _: packets.append(message.packet))
        station.store.reader.complete()
    return [Requests(lambda to: to)(packet, url_of(queue)) for packet in packets]


@pytest.mark.rule("SR-211")
@pytest.mark.parametrize("ends", ["purged", "expired"])
def test_no_receipts_are_made_on_the_way(ends: str) -> None:
    station = Station(Redirections(transparent=True), http=True)
    asked = services(durable=True, delivery=ADMIN, commitment=ADMIN, positive=True, negative=True)
    text = envelope("http://elsewhere/msmq/private$/in", headers=asked, expires=WALL + 3600)
    assert station.post(text, b"x") == 200
    (queue,) = station.manager.outgoing()
    if ends == "purged":
        station.finish(station.manager.purge(queue))
    else:
        station.advance(3601)
    station.run()
    assert queue.messages == 0
    assert not station.sent(ADMIN)


def test_redirection_out_of_the_house() -> None:
    station = Station(Redirections(inbound=(Pair(url("moved"), "http://elsewhere/msmq/private$/new"),)))
    station.make("moved")
    assert station.post(envelope(url("moved")), b"x") == 200
    (queue,) = station.manager.outgoing()
    assert str(queue.destination) == "DIRECT=http://elsewhere/msmq/private$/new"
    assert station.taken("moved") == []


def test_what_was_sent_from_here_is_not_passed_on_again() -> None:
    station = Station(Redirections(transparent=True))
    text = envelope("http://elsewhere/msmq/private$/in", sender=station.manager.guid)
    assert station.post(text, b"x") == 400
    assert not station.sent()
