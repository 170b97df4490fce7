"""Spans and metrics of the Python client, as an SDK and a collector see them."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import msmq_fast
from msmq_fast import Message, errors, sync
from msmq_fast.bodies.tracecontext import carried_context, derived_context
from msmq_fast.client.message import parse_message_id
from msmq_fast.client.telemetry import Telemetry
from tests.client.connecting import path  # noqa: F401 - a fixture
from tests.client.server import running
from tests.support.http.collector import collector


class Observed:
    """A connection whose spans and metrics are kept."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader])
        self.telemetry = Telemetry(tracer_provider=self.tracers, meter_provider=meters, **options)

    def spans(self) -> dict[str, ReadableSpan]:
        """The finished spans by name; each has the last one of its name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def metric(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


Scene = Callable[[Observed, msmq_fast.Connection], Awaitable[None]]


def observe(tmp_path: Path, scene: Scene, **options: Any) -> Observed:
    observed = Observed(**options)

    async def main() -> None:
        async with (
            running(tmp_path / "app.sock") as server,
            msmq_fast.connect(server.path, telemetry=observed.telemetry) as connection,
        ):
            await connection.admin.queues.create("orders")
            await connection.admin.queues.create("tx", transactional=True)
            await asyncio.wait_for(scene(observed, connection), 10)

    asyncio.run(main())
    return observed


def links(span: ReadableSpan) -> list[int]:
    return [link.context.trace_id for link in span.links]


def derived(message_id: str) -> int:
    return int.from_bytes(derived_context(parse_message_id(message_id)).trace_id)


def test_a_send_and_its_receive_are_linked_by_the_identifier(tmp_path: Path) -> None:
    ids: list[str] = []

    async def scene(_: Observed, connection: msmq_fast.Connection) -> None:
        async with connection.open("orders") as orders:
            ids.append(await orders.send(b"hello", correlation_id=bytes(19) + b"\x01"))
            received = await orders.receive(1)
            assert received.extension == b""

    observed = observe(tmp_path, scene)
    spans = observed.spans()
    sent, received = spans["send orders"], spans["receive orders"]
    assert (sent.kind, received.kind) == (SpanKind.CLIENT, SpanKind.CONSUMER)
    assert links(sent) == links(received) == [derived(ids[0])]
    assert sent.attributes is not None
    assert received.attributes is not None
    assert dict(sent.attributes) == {
        "messaging.system": "msmq",
        "messaging.destination.name": "orders",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.message.id": ids[0],
        "messaging.message.body.size": 5,
        "messaging.message.conversation_id": "00" * 19 + "01",
        "messaging.msmq.transactional": False,
        "server.address": str(tmp_path / "app.sock"),
    }
    wanted = {"messaging.message.id": ids[0], "messaging.msmq.class": 0, "messaging.msmq.sequence": 1}
    assert wanted.items() <= dict(received.attributes).items()
    assert received.attributes["messaging.msmq.lookup_id"]
    (point,) = observed.metric("messaging.client.sent.messages")
    assert (point.value, point.attributes["messaging.destination.name"]) == (1, "orders")
    (point,) = observed.metric("messaging.client.consumed.messages")
    assert point.value == 1
    durations = observed.metric("messaging.client.operation.duration")
    assert {point.attributes["messaging.operation.name"] for point in durations} == {"send", "receive"}
    assert durations[0].explicit_bounds[0] == 0.005
    assert durations[0].explicit_bounds[-1] == 10


def test_a_message_carries_its_context_where_the_program_wants_it(tmp_path: Path) -> None:
    extensions: list[bytes] = []

    async def scene(observed: Observed, connection: msmq_fast.Connection) -> None:
        async with connection.open("orders") as orders:
            await orders.send(Message(b"one"))
            await orders.send(Message(b"foreign", extension=b"mine"))
            for _ in range(2):
                message = await orders.receive(1)
                extensions.append(message.extension)
                with observed.telemetry.process(orders, message):
                    pass

    observed = observe(tmp_path, scene, carry=True)
    finished = observed.exporter.get_finished_spans()
    first, foreign = (span for span in finished if span.name == "send orders")
    assert (first.kind, foreign.kind) == (SpanKind.PRODUCER, SpanKind.CLIENT)
    carried = carried_context(extensions[0])
    assert carried is not None
    assert (int.from_bytes(carried.span_id), carried.sampled) == (first.context.span_id, True)
    assert extensions[1] == b"mine"  # never touched
    received, other = (span for span in finished if span.name == "receive orders")
    assert received.links[0].context.span_id == first.context.span_id
    assert links(other) == links(foreign)
    processed = next(span for span in finished if span.name == "process orders")
    assert processed.kind == SpanKind.INTERNAL
    assert processed.links[0].context.span_id == first.context.span_id
    assert observed.metric("messaging.process.duration")[0].count == 2


def test_each_message_of_a_batch_has_a_create_span(tmp_path: Path) -> None:
    extensions: list[bytes] = []

    async def scene(_: Observed, connection: msmq_fast.Connection) -> None:
        async with connection.open("orders") as orders:
            await orders.send_many([Message(b"1"), Message(b"2")])
            async with orders.sender() as sender:
                for number in range(3):
                    sender.post(Message(b"%d" % number))
            extensions.extend([(await orders.receive(1)).extension for _ in range(5)])

    observed = observe(tmp_path, scene, carry=True)
    finished = observed.exporter.get_finished_spans()
    created = [span.context.span_id for span in finished if span.name == "create orders"]
    assert len(created) == 5
    assert all(span.kind == SpanKind.PRODUCER for span in finished if span.name == "create orders")
    contexts = [carried_context(extension) for extension in extensions]
    assert [int.from_bytes(one.span_id) for one in contexts if one is not None] == created
    many, streamed = (span for span in finished if span.name == "send orders")
    assert [link.context.span_id for link in many.links][:2] == created[:2]  # then the identifiers
    assert [link.context.span_id for link in streamed.links] == created[2:]
    assert many.attributes is not None
    assert streamed.attributes is not None
    assert many.attributes["messaging.batch.message_count"] == 2
    assert streamed.attributes["messaging.batch.message_count"] == 3
    (point,) = observed.metric("messaging.client.sent.messages")
    assert point.value == 5


def test_subscriptions_and_transactions_are_settled(tmp_path: Path) -> None:
    async def scene(observed: Observed, connection: msmq_fast.Connection) -> None:
        async with connection.open("orders") as orders, connection.open("tx") as tx:
            await orders.send_many([Message(b"1"), Message(b"2"), Message(b"3"), Message(b"4")])
            async with orders.subscribe() as messages:
                first = await anext(messages)
                with observed.telemetry.process(orders, first):
                    await messages.acknowledge(first)
                rest = await messages.batch()
                await messages.release(rest[0])
                messages.acknowledge_soon(rest[1])
            async with orders.cursor(after=1) as cursor:
                await cursor.peek(1)
            await orders.peek(1)
            async with connection.transaction() as transaction:
                await tx.send(b"in", transaction=transaction)
            async with connection.transaction() as transaction:
                message = await tx.receive(1, transaction=transaction)
                await tx.reject(message, transaction=transaction)

    observed = observe(tmp_path, scene)
    finished = observed.exporter.get_finished_spans()
    settled = [
        (span.name, span.attributes["messaging.operation.name"])
        for span in finished
        if span.attributes is not None and span.attributes["messaging.operation.type"] == "settle"
    ]
    assert settled == [
        ("settle orders", "acknowledge"),
        ("settle orders", "release"),
        ("settle orders", "acknowledge"),
        ("settle", "commit"),
        ("settle tx", "reject"),
        ("settle", "commit"),
    ]
    names = [span.name for span in finished]
    assert names.count("peek orders") == 2
    pushed = next(span for span in finished if span.name == "process orders")
    assert pushed.kind == SpanKind.CONSUMER
    acknowledged = next(span for span in finished if span.name == "settle orders")
    assert acknowledged.parent is not None
    assert acknowledged.parent.span_id == pushed.context.span_id
    consumed = {
        point.attributes["messaging.destination.name"]: point.value
        for point in observed.metric("messaging.client.consumed.messages")
    }
    assert consumed == {"orders": 4, "tx": 1}  # what is peeked is not consumed


def test_a_failure_has_the_name_of_its_hresult(tmp_path: Path) -> None:
    async def scene(_: Observed, connection: msmq_fast.Connection) -> None:
        async with connection.open("tx") as tx:
            with pytest.raises(errors.TransactionUsage):
                await tx.send(b"without a transaction")
            with pytest.raises(errors.IOTimeout):
                await tx.receive(0)

    observed = observe(tmp_path, scene)
    spans = observed.spans()
    sent, received = spans["send tx"], spans["receive tx"]
    assert sent.attributes is not None
    assert received.attributes is not None
    assert sent.attributes["error.type"] == "MQ_ERROR_TRANSACTION_USAGE"
    assert sent.status.status_code == StatusCode.ERROR
    assert received.attributes["error.type"] == "MQ_ERROR_IO_TIMEOUT"
    assert received.status.status_code == StatusCode.UNSET  # an empty queue is no failure
    (point,) = observed.metric("messaging.client.sent.messages")
    assert point.attributes["error.type"] == "MQ_ERROR_TRANSACTION_USAGE"


def test_names_are_capped_and_guids_are_anonymous(tmp_path: Path) -> None:
    async def scene(_: Observed, connection: msmq_fast.Connection) -> None:
        reply = "reply-6f9619ff-8b86-d011-b42d-00c04fc964ff"
        for name in (reply, "second", "third"):
            await connection.admin.queues.create(name)
            async with connection.open(name) as queue:
                await queue.send(b"x")

    observed = observe(tmp_path, scene, names=2)
    spans = observed.spans()
    assert set(spans) == {"send (anonymous)", "send second", "send _other"}
    anonymous = spans["send (anonymous)"].attributes
    assert anonymous is not None
    assert anonymous["messaging.destination.anonymous"] is True
    names = {
        point.attributes["messaging.destination.name"]
        for point in observed.metric("messaging.client.sent.messages")
    }
    assert names == {"reply-6f9619ff-8b86-d011-b42d-00c04fc964ff", "second", "_other"}


def test_the_blocking_client_has_the_parent_of_its_thread(path: str) -> None:  # noqa: F811
    observed = Observed()
    tracer = observed.tracers.get_tracer("program")
    with sync.connect(path, telemetry=observed.telemetry) as connection:
        connection.admin.queues.create("orders")
        with connection.open("orders") as orders:
            with tracer.start_as_current_span("request") as request:
                orders.send(b"x")
            message = orders.receive(1)
            with observed.telemetry.process(orders, message) as processing:
                assert trace.get_current_span() is processing
    sent = observed.spans()["send orders"]
    assert sent.parent is not None
    assert sent.parent.span_id == request.get_span_context().span_id


def test_spans_reach_a_collector(path: str) -> None:  # noqa: F811
    with collector() as got:
        tracers = TracerProvider()
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(got.url, timeout=5)))
        telemetry = Telemetry(tracer_provider=tracers)
        with sync.connect(path, telemetry=telemetry) as connection:
            connection.admin.queues.create("orders")
            with connection.open("orders") as orders:
                message_id = orders.send(b"x")
                orders.receive(1)
        tracers.shutdown()
    assert [span["name"] for span in got.spans] == ["send orders", "receive orders"]
    wanted = derived_context(parse_message_id(message_id))
    linked = [(span["links"][0]["traceId"], span["links"][0]["spanId"]) for span in got.spans]
    assert [tuple(map(b64decode, pair)) for pair in linked] == [(wanted.trace_id, wanted.span_id)] * 2
