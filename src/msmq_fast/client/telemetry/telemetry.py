"""Telemetry, the object that a program passes to `connect`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Link, Span, SpanKind, TracerProvider, get_tracer

from msmq_fast.bodies.tracecontext import creation_context
from msmq_fast.client.channel import Channel
from msmq_fast.client.connection import Connection
from msmq_fast.client.endpoint import Endpoint
from msmq_fast.client.message import ReceivedMessage
from msmq_fast.client.opening import Opening
from msmq_fast.client.queue import Queue
from msmq_fast.client.telemetry.queue import TracedQueue, TracedTransaction
from msmq_fast.client.telemetry.scope import Destinations, Instruments, Scope, properties, span_context
from msmq_fast.protocol.frames import Access, Share

_NAME = "msmq_fast.client"


class Named(Protocol):
    """A queue of the client, with or without asyncio."""

    @property
    def name(self) -> str:
        """The name with which the queue was opened."""


class Telemetry:
    """Spans and metrics of OpenTelemetry for the connections to which it is passed:
    `connect(telemetry=Telemetry())`. May serve several connections and threads.

    The providers default to the global ones. With `carry`, messages whose extension is empty take the context
    of their span with them, in the extension (`msmq_fast.bodies.tracecontext`); the default adds nothing to
    messages, and links spans by contexts that message identifiers determine. At most `names` destinations
    have attributes and metrics of their own; the others are `_other`.
    """

    def __init__(
        self,
        *,
        carry: bool = False,
        names: int = 100,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._scope = Scope(
            get_tracer(_NAME, tracer_provider=tracer_provider),
            Instruments(get_meter(_NAME, meter_provider=meter_provider)),
            Destinations(names),
            {"messaging.system": "msmq"},
            carry,
        )

    def connection(self, channel: Channel, target: Endpoint) -> Connection:
        """Return a connection whose operations have spans; `connect` calls this."""
        common = {**self._scope.common, "server.address": target.path or target.host}
        if not target.path:
            common["server.port"] = target.port
        return TracedConnection(channel, replace(self._scope, common=common))

    @contextmanager
    def process(self, queue: Named, message: ReceivedMessage) -> Iterator[Span]:
        """Process a message inside a `process` span, which is linked to the context in which the message was
        created: `with telemetry.process(orders, message): …`.
        """
        scope = self._scope.of(queue.name)
        link = Link(span_context(creation_context(message.id, message.extension)))
        with scope.operation(
            "process",
            SpanKind.CONSUMER if message.tag else SpanKind.INTERNAL,  # a tag: the server pushed the message
            type="process",
            attributes=properties(message),
            links=[link],
            duration=scope.instruments.process,
        ) as span:
            yield span


class TracedConnection(Connection):
    """A connection whose queues and transactions have spans."""

    def __init__(self, channel: Channel, scope: Scope) -> None:
        super().__init__(channel)
        self._scope = scope

    def open(
        self, name: str, access: Access = Access.SEND | Access.RECEIVE, share: Share = Share.DENY_NONE
    ) -> Opening[Queue]:
        """Open a queue whose operations have spans; see Connection."""
        return Opening(TracedQueue(self._channel, name, access, share, self._scope).opened())

    def transaction(self) -> TracedTransaction:
        """Return a transaction whose end has a span; see Connection."""
        return TracedTransaction(self._channel, next(self._numbers), self._scope)
