"""Section [audit]: the ring of audit entries in the store."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import MIB, key

__all__ = ["AuditConfig"]


@dataclass(slots=True)
class AuditConfig:
    """Section [audit]: the ring of audit entries in the store."""

    entries: int = key(
        kinds.integer(100, 100_000),
        10_000,
        "number of entries that the store keeps: one half for acts, one half for denials and log-ons",
    )
    max_size: int = key(
        kinds.size(MIB, 256 * MIB), 8 * MIB, "the oldest entries are deleted beyond this size"
    )
