"""Section [store]: the disk."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import GIB, MIB, TIB, key

__all__ = ["StoreConfig"]


@dataclass(slots=True)
class StoreConfig:
    """Section [store]: the disk."""

    map_size: int = key(
        kinds.size(16 * MIB, 64 * TIB), TIB, "address space reserved for the data file, which grows as needed"
    )
    feed: bool = key(kinds.FLAG, True, "record events in the event feed")
    feed_max_age: float = key(kinds.duration(60, 10**9), 604_800.0, "events are deleted at this age")
    feed_max_size: int = key(
        kinds.size(1 << 20, 64 * TIB), GIB, "the oldest events are deleted beyond this size"
    )
    log: bool = key(kinds.FLAG, True, "commit to a redo log first, and to the data file later")
    log_size: int = key(kinds.size(MIB, 2 * GIB), 16 * MIB, "size of the redo log, on the disk and in memory")
    inline_commit_us: int = key(
        kinds.integer(0, 1_000_000),
        5000,
        "the event loop commits a single message itself, unless such a commit took more than this "
        "number of microseconds in the last 10 s; 0: the writer thread commits all messages",
    )
    disk_low: int = key(
        kinds.size(0, 64 * TIB),
        256 * MIB,
        "free space of the disk below which the server accepts no messages",
    )
    disk_check_interval: float = key(
        kinds.duration(0.1, 3600), 2.0, "interval between two checks of the free space"
    )
    allow_any_filesystem: bool = key(
        kinds.FLAG, False, "allow a data directory on a network or overlay file system"
    )
