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
        "callers that are admitted without a token: administrators: the administrators and readers of "
        "this computer; loopback: all its users; token: none; off: no bulk API",
    )
    share: float = key(
        kinds.fraction(), 0.5, "share of one processor core that bulk reading may take; 0: no limit"
    )
    streams: int = key(kinds.integer(1, 10_000), 32, "row streams at the same time; others wait")
    uploads: int = key(kinds.integer(1, 10_000), 32, "stages that are uploaded at the same time; others wait")
    max_stage_bytes: int = key(
        kinds.size(1 << 20, 64 * TIB),
        GIB,
        "maximum size of a stage; applies both to the upload and to the stored form",
    )
    stage_lifetime: float = key(
        kinds.duration(1, 31_536_000),
        3600.0,
        "an unpublished stage is deleted this long after the last stage of its batch",
    )
    writer_lifetime: float = key(
        kinds.duration(1, 10**8),
        7_776_000.0,
        "an idle writer is forgotten after this time; a batch that it retries later is published again",
    )
    lease: float = key(
        kinds.duration(1, 86_400),
        900.0,
        "a message that a subscription leases returns to its queue after this time",
    )
