"""Section [tracing]: spans of messages for OpenTelemetry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["TracingConfig"]


@dataclass(slots=True)
class TracingConfig:
    """Section [tracing]: spans of messages for OpenTelemetry."""

    endpoint: str = key(
        name_kinds.HTTP_URL,
        "",
        "URL of the collector that takes spans as OTLP/JSON over HTTP, such as "
        "http://collector:4318/v1/traces; empty: no spans",
    )
    token_file: Path | None = key(
        kinds.PATH, None, "file that holds the bearer token for the collector; empty: no token"
    )
    ratio: float = key(
        kinds.fraction(),
        0.0,
        "share of the messages that have spans, besides those whose HTTP request carries a sampled context; "
        "servers with the same ratio choose the same messages",
    )
    messages_per_second: int = key(
        kinds.integer(1, 100_000), 100, "maximum number of messages per second that have spans"
    )
