"""The spans and metrics of the operations on one queue, with the names of the semantic conventions for
messaging (https://opentelemetry.io/docs/specs/semconv/messaging/).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    TraceState,
    use_span,
)

from msmq_fast.bodies.tracecontext import (
    MAX_STATE,
    TraceContext,
    creation_context,
    derived_context,
    is_own_extension,
)
from msmq_fast.client.message import Message, ReceivedMessage, parse_message_id
from msmq_fast.protocol.errors import IOTimeout, MessageNotFound, MSMQError

Attributes = dict[str, str | int | bool]

MAX_LINKS: Final = 128  # links of one span; the SDK keeps no more by default
OTHER: Final = "_other"  # the name of destinations beyond the limit; no queue can have it

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)  # seconds
_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ORDINARY: Final = (IOTimeout, MessageNotFound)  # a read that finds no message did not fail


class Instruments:
    """The metrics of the client."""

    def __init__(self, meter: Meter) -> None:
        self.sent: Counter = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Messages that were sent"
        )
        self.consumed: Counter = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Messages that were received"
        )
        self.duration: Histogram = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of an operation of the client",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self.process: Histogram = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "Duration of processing a message in the program",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )


class Destinations:
    """The names that may be values of an attribute: the first `limit` names, the others are OTHER."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._names: set[str] = set()

    def shown(self, name: str) -> str:
        """Return the name as attributes show it."""
        if name in self._names:
            return name
        if len(self._names) >= self._limit:
            return OTHER
        self._names.add(name)
        return name


@dataclass(frozen=True, slots=True)
class Scope:
    """Makes the spans and records the metrics for one destination; `name` is empty if there is none.

    `common` are the attributes of all its spans and metrics, `anonymous` says that the name of the queue
    contains a GUID. `carry`: messages take the context of their span with them, in the extension.
    """

    tracer: Tracer
    instruments: Instruments
    destinations: Destinations
    common: Mapping[str, str | int]
    carry: bool
    name: str = ""
    anonymous: bool = False

    def of(self, queue: str) -> Scope:
        """Return the scope of a queue."""
        shown = self.destinations.shown(queue)
        anonymous = _GUID.search(queue) is not None
        common = {**self.common, "messaging.destination.name": shown}
        return replace(self, common=common, name="(anonymous)" if anonymous else shown, anonymous=anonymous)

    # -- operations

    @contextmanager
    def operation(
        self,
        operation: str,
        kind: SpanKind,
        *,
        type: str,
        title: str = "",
        attributes: Mapping[str, str | int | bool] | None = None,
        links: Sequence[Link] = (),
        duration: Histogram | None = None,
    ) -> Iterator[Span]:
        """Run an operation inside a span, and record its duration. `title` replaces the name of the operation
        in the name of the span.
        """
        started = perf_counter()
        span = self.begin(operation, kind, type=type, title=title, attributes=attributes, links=links)
        failure = ""
        try:
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield span
        except BaseException as error:
            failure = failed(span, error)
            raise
        finally:
            self.record(operation, started, failure, duration)
            span.end()

    def begin(
        self,
        operation: str,
        kind: SpanKind,
        *,
        type: str,
        title: str = "",
        attributes: Mapping[str, str | int | bool] | None = None,
        links: Sequence[Link] = (),
    ) -> Span:
        """Start a span that the caller ends."""
        given: Attributes = {
            **self.common,
            "messaging.operation.name": operation,
            "messaging.operation.type": type,
            **(attributes or {}),
        }
        if self.anonymous:
            given["messaging.destination.anonymous"] = True
        name = f"{title or operation} {self.name}".rstrip()
        return self.tracer.start_span(name, kind=kind, attributes=given, links=links[:MAX_LINKS])

    def record(self, operation: str, started: float, failure: str, duration: Histogram | None = None) -> None:
        """Record the duration of an operation that began at `started` of `perf_counter`."""
        attributes: Attributes = {**self.common, "messaging.operation.name": operation}
        if failure:
            attributes["error.type"] = failure
        (duration or self.instruments.duration).record(perf_counter() - started, attributes)

    # -- messages that are sent

    def created(self, message: Message) -> tuple[Message, Link | None]:
        """Make the `create` span of one message of a batch. Returns (the message with its context, a link to
        the span); the message as it is and None if it cannot carry a context.
        """
        if not self.can_carry(message):
            return message, None
        span = self.begin("create", SpanKind.PRODUCER, type="create", attributes=sizes(message))
        span.end()
        return stamped(message, span), Link(span.get_span_context())

    def can_carry(self, message: Message) -> bool:
        """Whether a message takes the context of its span with it: a foreign extension is never changed."""
        return self.carry and (not message.extension or is_own_extension(message.extension))

    def count_sent(self, count: int, failure: str = "") -> None:
        """Count messages that the server has accepted, or refused with `failure`."""
        if count:
            attributes: Attributes = {**self.common, "messaging.operation.name": "send"}
            if failure:
                attributes["error.type"] = failure
            self.instruments.sent.add(count, attributes)

    # -- messages that are received

    def received(self, span: Span, messages: Sequence[ReceivedMessage], operation: str = "receive") -> None:
        """Add to a span what is known of the messages that it received, with links to the contexts in which
        they were created. Counts the messages unless they were only peeked.
        """
        if operation != "peek":
            attributes: Attributes = {**self.common, "messaging.operation.name": operation}
            self.instruments.consumed.add(len(messages), attributes)
        if not span.is_recording():
            return
        if len(messages) == 1:
            span.set_attributes(properties(messages[0]))
        else:
            span.set_attribute("messaging.batch.message_count", len(messages))
        for message in messages[:MAX_LINKS]:
            span.add_link(span_context(creation_context(message.id, message.extension)))


def sizes(message: Message) -> Attributes:
    """Return the attributes of a message before it has an identifier."""
    found: Attributes = {"messaging.message.body.size": len(message.body)}
    if any(message.correlation_id):
        found["messaging.message.conversation_id"] = message.correlation_id.hex()
    return found


def properties(message: ReceivedMessage) -> Attributes:
    """Return the attributes of a received message."""
    found: Attributes = {
        "messaging.message.id": message.message_id,
        "messaging.message.body.size": len(message.body),
        "messaging.msmq.lookup_id": message.lookup_id & 0x7FFF_FFFF_FFFF_FFFF,
        "messaging.msmq.class": int(message.message_class),
        "messaging.msmq.transactional": message.transactional,
        "messaging.msmq.sequence": message.arrival_seq,
    }
    if any(message.correlation_id):
        found["messaging.message.conversation_id"] = message.correlation_id.hex()
    return found


def stamped(message: Message, span: Span) -> Message:
    """Return a copy of a message whose extension carries the context of a span."""
    found = span.get_span_context()
    if not found.is_valid:
        return message
    state = found.trace_state.to_header()
    context = TraceContext(
        found.trace_id.to_bytes(16),
        found.span_id.to_bytes(8),
        found.trace_flags.sampled,
        state if len(state) <= MAX_STATE else "",
    )
    return replace(message, extension=context.to_extension())


def link_sent(span: Span, ids: Iterable[str]) -> None:
    """Link a span to the contexts that the identifiers of sent messages determine."""
    if not span.is_recording():
        return
    known = list(ids)
    if len(known) == 1:
        span.set_attribute("messaging.message.id", known[0])
    for message_id in known[:MAX_LINKS]:
        span.add_link(span_context(derived_context(parse_message_id(message_id))))


def span_context(context: TraceContext) -> SpanContext:
    """Return a trace context as OpenTelemetry has it."""
    return SpanContext(
        int.from_bytes(context.trace_id),
        int.from_bytes(context.span_id),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT),
        trace_state=TraceState.from_header([context.state]) if context.state else None,
    )


def failed(span: Span, error: BaseException) -> str:
    """Note in a span that its operation failed. Returns the value of `error.type`."""
    name = error_type(error)
    span.set_attribute("error.type", name)
    if not isinstance(error, _ORDINARY):
        span.set_status(StatusCode.ERROR, str(error))
    return name


def error_type(error: BaseException) -> str:
    """Return the value of `error.type`: the name of the HRESULT, or the name of the exception."""
    return error.name if isinstance(error, MSMQError) else type(error).__qualname__
