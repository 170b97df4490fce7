"""Section [log]: the log, which is written to stderr."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key

__all__ = ["LogConfig"]


@dataclass(slots=True)
class LogConfig:
    """Section [log]: the log, which is written to stderr."""

    level: str = key(
        kinds.choice("debug", "info", "warning", "error"),
        "info",
        "least severe level of the lines that are written",
        live=True,
    )
    format: str = key(
        kinds.choice("text", "json"),
        "text",
        "text: lines for people; json: one JSON object per line",
        live=True,
    )
    refusals_per_second: int = key(
        kinds.integer(1, 1_000_000),
        5,
        "maximum number of lines per second about refused messages and connections, and again about messages "
        "that expired, failed or wait for a peer",
        live=True,
    )
