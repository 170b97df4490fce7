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
        "callers that are admitted without a token. administrators: administrators and readers of "
        "this computer; loopback: all users of this computer; token: none; off: the bulk API is off",
    )
    share: float = key(
        kinds.fraction(), 0.5, "maximum share of one processor core for bulk reading; 0: no limit"
    )
    streams: int = key(
        kinds.integer(1, 10_000), 32, "maximum number of row streams at the same time; further requests wait"
    )
    uploads: int = key(
        kinds.integer(1, 10_000),
        32,
        "maximum number of stages that are uploaded at the same time; further uploads wait",
    )
    max_stage_bytes: int = key(
        kinds.size(1 << 20, 64 * TIB),
        GIB,
        "maximum size of a stage, both as uploaded and as stored",
    )
    stage_lifetime: float = key(
        kinds.duration(1, 31_536_000),
        3600.0,
        "an unpublished stage is deleted once its batch has received no stage for this time",
    )
    writer_lifetime: float = key(
        kinds.duration(1, 10**8),
        7_776_000.0,
        "an idle writer is forgotten after this time; a batch that the writer retries later is "
        "published again",
    )
    lease: float = key(
        kinds.duration(1, 86_400),
        900.0,
        "default time after which a leased message returns to its queue",
    )
