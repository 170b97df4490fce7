"""Divides the rendering of a page into short parts, between which the server does its other work."""

from __future__ import annotations

import asyncio
import time
from typing import Final

__all__ = ["SLICE", "Slices"]

SLICE: Final = 0.0003
"""Seconds that a rendering holds the event loop at a time: a message that arrives meanwhile waits as long."""


class Slices:
    """The parts of one rendering."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def pause(self) -> None:
        """Let other tasks run if the rendering has held the event loop for `SLICE` seconds."""
        if time.perf_counter() - self._began >= SLICE:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
