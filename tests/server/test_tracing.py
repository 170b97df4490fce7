"""Spans of servers, as a collector sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msmq_fast.bodies.tracecontext import derived_context
from msmq_fast.client.message import parse_message_id
from tests.server.scraping import scraped, value
from tests.support.http.collector import Collector, Span, collector
from tests.support.processes.pair import free_port
from tests.support.processes.servers import Server, data_directory, until

HTTP = "MSMQ_FAST_LISTEN__HTTP__PORT"


@contextmanager
def traced(
    got: Collector, *flags: str, ratio: float = 1.0, host: str = "127.0.0.1", **more: str
) -> Iterator[Server]:
    environment = {"MSMQ_FAST_TRACING__ENDPOINT": got.url, "MSMQ_FAST_TRACING__RATIO": str(ratio), **more}
    with data_directory() as data:
        server = Server(data, *flags, host=host, environment=environment)
        try:
            yield server.start()
        finally:
            server.kill()


def sent(server: Server, name: str, *flags: str) -> str:
    return str(server.ok("send", name, "--body", "x", *flags)[0]["message_id"])


def spans_of(got: Collector, count: int, name: str) -> list[Span]:
    return until(lambda: found if len(found := got.named(name)) >= count else None, what=f"{count} {name}")


def test_a_message_has_spans_from_its_arrival_to_its_receive() -> None:
    with collector() as got, traced(got) as server:
        server.ok("queue", "create", "orders")
        message_id = sent(server, "orders", "--recoverable")
        server.ok("receive", "orders")
        sent(server, "orders", "--recoverable")  # the event of a receive is written with the next commit
        (delivered,) = spans_of(got, 1, "msmq.deliver")
        accepted = spans_of(got, 1, "msmq.accept")[0]
        assert value(scraped(server), 'msmq_fast_trace_spans_total{result="exported"}') >= 2  # type: ignore[operator]
    context = derived_context(parse_message_id(message_id))
    assert (accepted["traceId"], accepted["spanId"]) == (context.trace_id.hex(), context.span_id.hex())
    assert "parentSpanId" not in accepted
    assert accepted["kind"] == delivered["kind"] == 2
    assert (delivered["traceId"], delivered["parentSpanId"]) == (accepted["traceId"], accepted["spanId"])
    assert delivered["startTimeUnixNano"] == accepted["startTimeUnixNano"]
    assert [event["name"] for event in delivered["events"]] == ["received"]
    attributes = accepted["attributes"]
    assert attributes["messaging.system"] == "msmq"
    assert attributes["messaging.message.id"] == message_id
    assert attributes["messaging.destination.name"].endswith(r"private$\orders")
    assert attributes["network.protocol.name"] == "local"
    assert attributes["messaging.msmq.sequence"] == "1"
    assert accepted["resource"]["service.name"] == "msmq-fast"
    assert accepted["resource"]["service.instance.id"] == server.ready["guid"]


def test_a_message_over_mqqb_has_spans_at_both_computers() -> None:
    port = ("--port", str(free_port()))
    with (
        collector() as got,
        traced(got, *port, host="127.0.0.2") as near,
        traced(got, *port, host="127.0.0.3") as far,
    ):
        far.ok("queue", "create", "orders")
        message_id = sent(near, r"DIRECT=TCP:127.0.0.3\private$\orders", "--recoverable")
        (transfer,) = spans_of(got, 1, "msmq.transfer")
        first, second = sorted(spans_of(got, 2, "msmq.accept"), key=lambda span: "parentSpanId" in span)
    context = derived_context(parse_message_id(message_id))
    assert {span["traceId"] for span in (transfer, first, second)} == {context.trace_id.hex()}
    assert first["resource"]["service.instance.id"] == near.ready["guid"]
    assert (first["spanId"], second["parentSpanId"]) == (context.span_id.hex(), context.span_id.hex())
    assert (transfer["kind"], transfer["parentSpanId"]) == (3, first["spanId"])
    assert transfer["attributes"]["network.protocol.name"] == "mqqb"
    assert second["resource"]["service.instance.id"] == far.ready["guid"]


def test_an_http_request_takes_the_context_to_the_next_computer() -> None:
    """The receiver chooses nothing by itself: the header alone makes its spans."""
    with (
        collector() as got,
        traced(got, **{"MSMQ_FAST_SRMP__SENDING": "on"}) as near,
        traced(got, ratio=0.0, **{HTTP: "0"}) as far,
    ):
        far.ok("queue", "create", "orders")
        sent(near, f"DIRECT=HTTP://127.0.0.1:{far.port('http')}/msmq/private$/orders", "--recoverable")
        (transfer,) = spans_of(got, 1, "msmq.transfer")
        accepted = until(
            lambda: [
                span
                for span in got.named("msmq.accept")
                if span["resource"]["service.instance.id"] == far.ready["guid"]
            ],
            what="the span of the receiver",
        )
    assert accepted[0]["traceId"] == transfer["traceId"]
    assert accepted[0]["parentSpanId"] == transfer["spanId"]


def test_a_message_that_fails_has_the_reason_as_its_error() -> None:
    with collector() as got, traced(got) as server:
        server.ok("queue", "create", "orders")
        sent(server, "orders", "--recoverable", "--ttbr", "0s", "--dead-letter")
        (failed,) = spans_of(got, 1, "msmq.deliver")
        accepted = spans_of(got, 2, "msmq.accept")
    assert failed["status"] == {"code": 2, "message": "NACK_RECEIVE_TIMEOUT"}
    assert failed["attributes"]["error.type"] == "NACK_RECEIVE_TIMEOUT"
    assert any("deadletter" in span["attributes"]["messaging.destination.name"] for span in accepted)


def test_servers_choose_their_share_and_no_more_than_the_rate() -> None:
    limit = {"MSMQ_FAST_TRACING__MESSAGES_PER_SECOND": "20"}
    with collector() as got, traced(got, **limit) as server:
        server.ok("queue", "create", "orders")
        server.ok("send", "orders", "--body", "x", "--count", "500", "--recoverable")
        dropped = 'msmq_fast_trace_spans_total{result="dropped"}'
        until(lambda: (value(scraped(server), dropped) or 0) >= 400, what="what the rate drops")
        assert len(spans_of(got, 20, "msmq.accept")) < 100
    with collector() as got, traced(got, ratio=0.1) as server:
        server.ok("queue", "create", "orders")
        server.ok("send", "orders", "--body", "x", "--count", "500", "--recoverable")
        assert server.stop() == 0  # sends what is left
        assert 45 <= len(got.named("msmq.accept")) <= 55


def test_a_collector_that_refuses_costs_spans_and_one_line() -> None:
    with collector() as got, traced(got) as server:
        got.status = 503
        server.ok("queue", "create", "orders")
        dropped = 'msmq_fast_trace_spans_total{result="dropped"}'
        for _ in range(2):
            before = value(scraped(server), dropped) or 0
            sent(server, "orders", "--recoverable")
            until(
                lambda before=before: (value(scraped(server), dropped) or 0) > before, what="a dropped span"
            )
        assert server.log.read_text().count("spans cannot be sent") == 1


def test_a_token_file_authorizes_and_a_missing_one_is_a_clear_line(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with collector() as got:
        missing = pytest.raises(AssertionError, match=r"tracing\.token_file: .*/token")
        with missing, traced(got, MSMQ_FAST_TRACING__TOKEN_FILE=str(token)):
            pass
        token.write_text("secret\n")
        with traced(got, MSMQ_FAST_TRACING__TOKEN_FILE=str(token)) as server:
            server.ok("queue", "create", "orders")
            sent(server, "orders", "--recoverable")
            spans_of(got, 1, "msmq.accept")
        assert got.headers[0]["Authorization"] == "Bearer secret"


def test_without_a_collector_nothing_is_made() -> None:
    with data_directory() as data:
        server = Server(data).start()
        try:
            assert "msmq_fast_trace_spans" not in scraped(server)
        finally:
            server.kill()
