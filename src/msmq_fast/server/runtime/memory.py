"""Determines how much memory this server may use."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory"]

_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def available_memory(limits: tuple[Path, ...] = _LIMITS) -> int:
    """Return the memory of the machine in bytes, or the limit of its container, whichever is less."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in limits:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means unlimited
            found = min(found, int(text))
    return found
