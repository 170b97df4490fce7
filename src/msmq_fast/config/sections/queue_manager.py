"""Section [queue_manager]: quotas and defaults of all queues."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import MIB, TIB, key

__all__ = ["QueueManagerConfig"]


@dataclass(slots=True)
class QueueManagerConfig:
    """Section [queue_manager]: quotas and defaults of all queues."""

    # Quotas are in KB; None is "auto".
    quota: int | None = key(
        kinds.quota(auto=True),
        None,
        "maximum size of all messages together; auto: half of the disk, at least 8 GiB",
    )
    journal_quota: int | None = key(
        kinds.quota(auto=True),
        None,
        "maximum size of the messages in the computer journal; auto: an eighth of quota",
    )
    deadletter_quota: int | None = key(
        kinds.quota(auto=True),
        None,
        "maximum size of the messages in each dead-letter queue; auto: an eighth of quota",
    )
    cache: int = key(kinds.size(0, TIB), 64 * MIB, "memory for the bodies of recoverable messages")
    express_memory: int = key(
        kinds.size(0, TIB),
        0,
        "memory for express messages; when it is full, the server accepts no more messages; 0: half "
        "of the memory of this computer",
    )
    time_to_reach_queue: float = key(
        kinds.duration(0, 2**32 - 1),
        345_600.0,
        "default time to reach the queue, for messages that are sent without one",
    )
    hardened: bool = key(
        kinds.FLAG,
        False,
        "hardened mode: MS-MQQB neither sends nor listens, and messages leave over HTTP only",
    )
    transaction_idle: float = key(
        kinds.duration(1, 2_592_000), 600.0, "a transaction without activity is aborted after this time"
    )
    outgoing_idle: float = key(
        kinds.duration(0, 31_536_000),
        86_400.0,
        "an outgoing queue that is empty and not open is deleted after this time; 0: never",
    )
