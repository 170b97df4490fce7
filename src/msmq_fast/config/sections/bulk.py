"""Section [bulk]: the bulk API on the admin port."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import GIB, TIB, key

__all__ = ["BulkConfig"]


@dataclass(slots=True)
class BulkConfig:
    """Section [bulk]: the bulk API on the admin port."""

    access: str = key(
        kinds.choice("administrators", "loopback", "token", "off"),
        "administrators",
        "callers without a token: administrators and readers of this machine; loopback: all its users; "
        "token: none",
    )
    share: float = key(
        kinds.fraction(), 0.5, "of one processor core that reading in bulk takes at most; 0: no limit"
    )
    streams: int = key(kinds.integer(1, 10_000), 32, "rows that are read at the same time; others wait")
    uploads: int = key(kinds.integer(1, 10_000), 32, "stages that are taken in at the same time; others wait")
    max_stage_bytes: int = key(
        kinds.size(1 << 20, 64 * TIB), GIB, "bytes of one stage, as it comes and as it is kept"
    )
    stage_lifetime: float = key(
        kinds.duration(1, 31_536_000),
        3600.0,
        "stages that nobody publishes are thrown away so long after the last of their batch",
    )
    writer_lifetime: float = key(
        kinds.duration(1, 10**8),
        7_776_000.0,
        "a writer that publishes nothing is forgotten after so long: what it repeats then comes twice",
    )
    lease: float = key(
        kinds.duration(1, 86_400), 900.0, "messages given to a subscription come back after so long"
    )
