"""Flow control when the disk is nearly full: it goes on below the low mark and off above the high one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msmq_fast._native.lmdbstore import LmdbTables


@dataclass(frozen=True, slots=True)
class SpaceFigures:
    """Sizes in bytes: of the data file, of the used and reusable parts inside it, and what can still be
    stored.
    """

    file: int
    used: int
    reusable: int
    available: int


def space_figures(tables: LmdbTables, directory: Path) -> SpaceFigures:
    """Returns the sizes of the store. The space that is left is limited by the disk or by the map, whichever
    is less.
    """
    space = tables.space()
    page = space["page_size"]
    reusable = space["free_pages"] * page
    pages = space["pages"] * page
    disk = os.statvfs(directory)
    growth = min(disk.f_bavail * disk.f_frsize, space["map_size"] - pages)
    file = (directory / "data.mdb").stat().st_size
    # Records in the redo log need about the same space again in the data file.
    available = max(0, growth + reusable - 2 * space["log_bytes"])
    return SpaceFigures(file=file, used=pages - reusable, reusable=reusable, available=available)


class Watermark:
    """Calls `on_change(True)` when too little is available, `on_change(False)` when there is enough again."""

    def __init__(self, low: int, high: int, on_change: Callable[[bool], object]) -> None:
        """`low` and `high` are bytes available; raises ValueError unless low < high."""
        if low >= high:
            raise ValueError("the low mark must lie below the high one")
        self.low = low
        self.high = high
        self.throttled = False
        self._on_change = on_change

    def update(self, available: int) -> None:
        """Processes a new value of the available bytes."""
        throttled = available < (self.high if self.throttled else self.low)
        self._set(throttled)

    def storage_full(self) -> None:
        """Call this if a commit fails because the disk or the map is full: flow control goes on whatever
        `update` was given.
        """
        self._set(True)

    def _set(self, throttled: bool) -> None:
        if throttled != self.throttled:
            self.throttled = throttled
            self._on_change(throttled)
