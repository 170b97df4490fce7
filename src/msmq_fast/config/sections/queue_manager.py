"""Section [queue_manager]: quotas and defaults of all queues."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import MIB, TIB, key

__all__ = ["QueueManagerConfig"]


@dataclass(slots=True)
class QueueManagerConfig:
    """Section [queue_manager]: quotas and defaults of all queues."""

    quota_kb: int | None = key(
        kinds.QUOTA,
        None,
        "bytes of all messages, in KB; auto: half of the disk, at least 8 GiB; 4294967295: no limit",
    )
    journal_quota_kb: int | None = key(
        kinds.QUOTA, None, "bytes of the computer journal, in KB; auto: an eighth of quota_kb"
    )
    deadletter_quota_kb: int | None = key(
        kinds.QUOTA, None, "bytes of each dead-letter queue, in KB; auto: an eighth of quota_kb"
    )
    cache: int = key(kinds.size(0, TIB), 64 * MIB, "bodies of recoverable messages kept in memory")
    express_memory: int = key(
        kinds.size(0, TIB),
        0,
        "express messages in memory beyond which nothing is taken in; 0: half of this machine's memory",
    )
    time_to_reach_queue: float = key(kinds.duration(0, 2**32 - 1), 345_600.0, "for messages sent without one")
    hardened: bool = key(
        kinds.FLAG, False, "hardened mode: MS-MQQB neither sends nor listens; messages leave by HTTP only"
    )
    transaction_idle: float = key(
        kinds.duration(1, 2_592_000), 600.0, "after which a transaction in which nothing happens is aborted"
    )
    outgoing_idle: float = key(
        kinds.duration(0, 31_536_000),
        86_400.0,
        "after which an outgoing queue goes that is empty and not open; 0: never",
    )
