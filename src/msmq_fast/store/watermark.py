"""Flow control for a disk that is nearly full: starts when less than `low` bytes are available, and ends when
at least `high` bytes are available again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msmq_fast._native.lmdbstore import LmdbTables


@dataclass(frozen=True, slots=True)
class SpaceFigures:
    """Sizes in bytes. `file`: the data file. `used`: the pages of the data file that hold data. `reusable`:
    the free pages of the data file. `available`: how much can still be stored.
    """

    file: int
    used: int
    reusable: int
    available: int


def space_figures(tables: LmdbTables, directory: Path) -> SpaceFigures:
    """Returns the sizes of the store. The available size is limited by the free space of the disk or by the
    size of the memory map, whichever is less.
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
    """Calls `on_change(True)` when too little space is available, `on_change(False)` when there is enough
    again.
    """

    def __init__(self, low: int, high: int, on_change: Callable[[bool], object]) -> None:
        """Flow control starts when fewer than `low` bytes are available, and ends when at least `high` bytes
        are. Raises ValueError unless low < high.
        """
        if low >= high:
            raise ValueError("the low mark must lie below the high one")
        self.low = low
        self.high = high
        self.throttled = False
        self._on_change = on_change

    def update(self, available: int) -> None:
        """Start or end flow control if the new number of available bytes requires it."""
        throttled = available < (self.high if self.throttled else self.low)
        self._set(throttled)

    def storage_full(self) -> None:
        """Start flow control although the last `update` did not. Call this if a commit fails because the disk
        or the memory map is full.
        """
        self._set(True)

    def _set(self, throttled: bool) -> None:
        if throttled != self.throttled:
            self.throttled = throttled
            self._on_change(throttled)
