"""Makes spans of the events of chosen messages.

1. `sent` or `arrived` makes the span `msmq.accept` and opens a journey, if the rate allows.
2. Events that end the stay of the message in the queue make the span of the stay, a child of the first one:
   `msmq.deliver` in a queue of this computer, `msmq.transfer` in an outgoing queue.
3. All other events are events of the span of the stay.

The trace is that of the message identifier (`derived_context`), unless the server has noted a context for the
message, because its HTTP request carried one. The span `msmq.accept` of the computer that sent the message
has the derived span id, to which programs link their spans; at other computers it is a child of that span.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from msmq_fast.bodies.tracecontext import TraceContext, derived_context
from msmq_fast.client.message import format_message_id
from msmq_fast.protocol.classes import MessageClass, message_class
from msmq_fast.server.tracing.exporter import Exporter
from msmq_fast.server.tracing.spans import Kind, Span, hop_span
from msmq_fast.store.decode import EventKind, FeedEvent, Transport

__all__ = ["Journeys"]

_MOST_OPEN: Final = 10_000
_MOST_EVENTS: Final = 32  # events of one span
_BEGIN: Final = frozenset((EventKind.SENT, EventKind.ARRIVED, EventKind.JOURNALED, EventKind.DEAD_LETTERED))
_REFUSED: Final = frozenset((EventKind.NACKED, EventKind.DUPLICATE))
_END: Final = frozenset(
    (
        EventKind.RECEIVED,
        EventKind.ACKED,
        EventKind.EXPIRED,
        EventKind.PURGED,
        EventKind.REMOVED,
        EventKind.NACKED,
    )
)
_FAILED: Final = frozenset((EventKind.EXPIRED, EventKind.PURGED, EventKind.REMOVED, EventKind.NACKED))

Key = tuple[bytes, int, int]


@dataclass(slots=True)
class _Stay:
    """A chosen message in a queue since `since_us`."""

    context: TraceContext
    parent: bytes
    since_us: int
    outgoing: bool
    events: list[tuple[int, str]] = field(default_factory=list)


class Journeys:
    """The chosen messages in queues of this computer; beyond 10,000, the oldest are dropped."""

    def __init__(
        self,
        exporter: Exporter,
        manager: bytes,
        name_of: Callable[[int], str],
        context_of: Callable[[bytes], TraceContext | None],
        rate: int,
    ) -> None:
        """`manager` is the GUID of the queue manager in wire order. `name_of` returns the name of a queue by
        its ordinal, `context_of` the context that was noted for a message identifier. `rate` is the maximum
        number of messages per second.
        """
        self._exporter = exporter
        self._manager = manager
        self._name_of = name_of
        self._context_of = context_of
        self._rate = rate
        self._left = float(rate)
        self._at_us = 0
        self._open: OrderedDict[Key, _Stay] = OrderedDict()

    def follow(self, events: Iterable[FeedEvent]) -> None:
        """Make the spans of events, in their order."""
        for event in events:
            key = (event.source, event.ordinal, event.queue)
            if event.kind in _BEGIN:
                self._accept(key, event)
            elif event.kind in _REFUSED and key not in self._open:
                if self._admits(event.time_us):
                    self._exporter.add(self._accepted(event, failure=_reason(event)))
            else:
                self._proceed(key, event)

    def _accept(self, key: Key, event: FeedEvent) -> None:
        if not self._admits(event.time_us):
            return
        span = self._accepted(event)
        self._exporter.add(span)
        while len(self._open) >= _MOST_OPEN:
            self._open.popitem(last=False)
            self._exporter.drop(1)
        context = TraceContext(span.trace_id, span.span_id, sampled=True)
        self._open[key] = _Stay(context, span.span_id, event.time_us, event.kind == EventKind.SENT)

    def _proceed(self, key: Key, event: FeedEvent) -> None:
        stay = self._open.get(key)
        if event.kind == EventKind.MOVED and event.origin:
            stay = self._open.pop((event.source, event.ordinal, event.origin), stay)
            if stay is not None:
                self._open[key] = stay
        if stay is None:
            return
        if event.kind == EventKind.RETURNED:
            stay.since_us = event.time_us
        if event.kind in _END or (event.kind == EventKind.MOVED and not event.origin):
            del self._open[key]
            self._exporter.add(self._stayed(stay, event))
        elif len(stay.events) < _MOST_EVENTS:
            stay.events.append((event.time_us, EventKind(event.kind).name.lower()))

    def _accepted(self, event: FeedEvent, failure: str = "") -> Span:
        message_id = event.source + event.ordinal.to_bytes(4, "little")
        derived, noted = derived_context(message_id), self._context_of(message_id)
        came = noted or derived
        name = self._name_of(event.queue)
        span_id = hop_span(message_id, self._manager, name, "accept")
        parent = came.span_id
        first = event.kind in (EventKind.SENT, EventKind.ARRIVED)
        if noted is None and first and event.source == self._manager:
            span_id, parent = derived.span_id, b""
        return Span(
            "msmq.accept",
            Kind.SERVER,
            came.trace_id,
            span_id,
            parent,
            event.time_us,
            event.time_us,
            self._attributes(event, message_id, name, failure),
            links=() if noted is None else (derived,),
            error=failure,
        )

    def _stayed(self, stay: _Stay, event: FeedEvent) -> Span:
        message_id = event.source + event.ordinal.to_bytes(4, "little")
        name = self._name_of(event.queue)
        step = "transfer" if stay.outgoing else "deliver"
        failure = _reason(event) if event.kind in _FAILED else ""
        return Span(
            f"msmq.{step}",
            Kind.CLIENT if stay.outgoing else Kind.SERVER,
            stay.context.trace_id,
            hop_span(message_id, self._manager, name, step),
            stay.parent,
            stay.since_us,
            event.time_us,
            self._attributes(event, message_id, name, failure),
            events=[*stay.events, (event.time_us, EventKind(event.kind).name.lower())],
            error=failure,
        )

    def _attributes(
        self, event: FeedEvent, message_id: bytes, name: str, failure: str
    ) -> dict[str, str | int | bool]:
        found: dict[str, str | int | bool] = {
            "messaging.system": "msmq",
            "messaging.message.id": format_message_id(message_id),
            "messaging.message.envelope.size": event.size,
            "messaging.msmq.class": event.message_class,
        }
        if event.kind in (EventKind.SENT, EventKind.ARRIVED):  # others use the field for something else
            found["messaging.msmq.transactional"] = event.sequence_number > 0
        if name:
            found["messaging.destination.name"] = name
        if event.lookup_id:
            found["messaging.msmq.lookup_id"] = event.lookup_id & 0x7FFF_FFFF_FFFF_FFFF
            found["messaging.msmq.sequence"] = event.arrival_seq
        if event.flags in tuple(Transport):
            found["network.protocol.name"] = Transport(event.flags).name.lower()
        if failure:
            found["error.type"] = failure
        return found

    def _admits(self, now_us: int) -> bool:
        """Whether the rate allows one more message at a time in Unix microseconds."""
        passed = max(now_us - self._at_us, 0) / 1e6
        self._at_us = max(now_us, self._at_us)
        self._left = min(self._left + passed * self._rate, float(self._rate))
        if self._left < 1:
            self._exporter.drop(1)
            return False
        self._left -= 1
        return True


def _reason(event: FeedEvent) -> str:
    """Return the name of the class that says why a message failed, else the name of the event."""
    kind = message_class(event.reason or event.message_class)
    if isinstance(kind, MessageClass) and (event.reason or event.kind == EventKind.NACKED):
        return kind.name
    return EventKind(event.kind).name
