"""The quotas of the queue manager: as configured, or derived from the size of the disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msmq_fast.config.sections import Config
from msmq_fast.qm.settings import UNLIMITED

__all__ = ["computer_quota", "deadletter_quota", "journal_quota"]

_KIB: Final = 1 << 10
_WINDOWS: Final = 8 << 20  # KB: the default of Windows
_PART: Final = 8  # of the computer's quota, for its journal and for each dead-letter queue


def computer_quota(config: Config) -> int:
    """Return the quota of all messages in KB. The default is half of the disk, but at least the default of
    Windows.
    """
    configured = config.queue_manager.quota
    if configured is not None:
        return configured
    return min(max(_WINDOWS, _size_of_disk(config.data) // 2 // _KIB), UNLIMITED - 1)


def journal_quota(config: Config) -> int:
    """Return the quota of the computer journal in KB."""
    return _part(config, config.queue_manager.journal_quota)


def deadletter_quota(config: Config) -> int:
    """Return the quota of each dead-letter queue in KB."""
    return _part(config, config.queue_manager.deadletter_quota)


def _part(config: Config, configured: int | None) -> int:
    if configured is not None:
        return configured
    whole = computer_quota(config)
    return whole if whole == UNLIMITED else whole // _PART


def _size_of_disk(directory: Path) -> int:
    """Return the size in bytes of the file system on which the directory is, or will be created; 0 if the
    size is unknown.
    """
    for place in (directory, *directory.absolute().parents):
        try:
            figures = os.statvfs(place)
        except FileNotFoundError:
            continue
        except OSError:
            return 0
        return figures.f_blocks * figures.f_frsize
    return 0
