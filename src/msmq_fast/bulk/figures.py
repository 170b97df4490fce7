"""Counters of the bulk API since the server started."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Figures"]


@dataclass(slots=True)
class Figures:
    """Counters for each API call. `call` is the name of the call, such as `rows` or `publish`."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by call and HTTP status
    bytes_out: int = 0  # of streams
    bytes_in: int = 0  # of stages
    streams: int = 0  # that are open now
    broken: int = 0  # that did not come to their end
