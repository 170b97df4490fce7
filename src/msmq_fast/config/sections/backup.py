"""Section [backup]: snapshots that the server keeps in object storage."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds, url_kinds
from msmq_fast.config.kinds import GIB, key

__all__ = ["BackupConfig"]


@dataclass(slots=True)
class BackupConfig:
    """Section [backup]: snapshots that the server keeps in object storage."""

    url: str = key(
        url_kinds.OBJECTS,
        "",
        "object storage for `backup create` without a directory: s3://bucket/path, gs://bucket/path, "
        "az://container/path or file:///path; credentials come from the environment",
    )
    every: float = key(
        kinds.duration(0, 10**8),
        0.0,
        "interval between snapshots that the server makes by itself; 0: it makes none",
    )
    keep: int = key(
        kinds.integer(1, 10_000), 7, "number of snapshots of this server that stay; older ones are deleted"
    )
    rate: int = key(
        kinds.size(0, 64 * GIB),
        0,
        "maximum number of bytes per second that are copied and sent for such a snapshot, from 64 KiB; "
        "0: no limit",
    )
