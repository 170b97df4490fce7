"""Spans as OTLP/JSON has them (opentelemetry-proto, trace/v1), and the identifiers of the spans of a hop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from typing import Any, Final

from msmq_fast.bodies.tracecontext import TraceContext

__all__ = ["Attributes", "Kind", "Span", "hop_span", "request"]

Attributes = Mapping[str, str | int | bool]

_ERROR: Final = 2  # STATUS_CODE_ERROR
_SCOPE: Final = "msmq_fast.server"


class Kind(IntEnum):
    """Kinds of spans, with the numbers of OTLP."""

    SERVER = 2
    CLIENT = 3


@dataclass(slots=True)
class Span:
    """A finished span. Times are Unix microseconds; `parent` is the id of the parent span, b"" for a root.
    `error` is a text about the failure, "" if there was none.
    """

    name: str
    kind: Kind
    trace_id: bytes
    span_id: bytes
    parent: bytes
    start_us: int
    end_us: int
    attributes: Attributes
    events: list[tuple[int, str]] = field(default_factory=list)
    links: tuple[TraceContext, ...] = ()
    error: str = ""

    def as_map(self) -> dict[str, Any]:
        """Return the span in the form of OTLP/JSON."""
        found: dict[str, Any] = {
            "traceId": self.trace_id.hex(),
            "spanId": self.span_id.hex(),
            "name": self.name,
            "kind": int(self.kind),
            "startTimeUnixNano": f"{self.start_us}000",
            "endTimeUnixNano": f"{max(self.end_us, self.start_us)}000",
            "attributes": _attributes(self.attributes),
        }
        if self.parent:
            found["parentSpanId"] = self.parent.hex()
        if self.events:
            found["events"] = [{"timeUnixNano": f"{when}000", "name": name} for when, name in self.events]
        if self.links:
            found["links"] = [
                {"traceId": link.trace_id.hex(), "spanId": link.span_id.hex()} for link in self.links
            ]
        if self.error:
            found["status"] = {"code": _ERROR, "message": self.error}
        return found


def hop_span(message_id: bytes, manager: bytes, queue: str, step: str) -> bytes:
    """Return the id of the span of one step (such as "accept") of a message in a queue of the queue manager
    with the GUID `manager`. All parts of the server compute it by themselves, also after a restart.

    `queue` is the name of the queue; for an outgoing queue, its destination with or without DIRECT=.
    """
    name = queue.casefold().removeprefix("direct=")
    return sha256(b"\0".join((message_id, manager, name.encode(), step.encode()))).digest()[:8]


def request(spans: Iterable[Span], resource: Attributes) -> dict[str, Any]:
    """Return the body of an export request."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": {"name": _SCOPE}, "spans": [span.as_map() for span in spans]}],
            }
        ]
    }


def _attributes(given: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in given.items()]


def _value(value: str | int | bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
